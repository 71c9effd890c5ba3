"""Byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2) for the minis, by the `tokenizers` library."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from stateatlas.job import InputError

BOS = "<bos>"
SMALLEST = 257  # BOS and every byte
LARGEST = 1 << 16  # token ids are kept as uint16


def train(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Return a tokenizer trained on `texts`; id 0 is `<bos>`, ids 1 to 256 are the bytes.

    An ASCII digit and a newline are always tokens of their own, so that the digits of a needle and the newline class of
    study C are counted one by one. No token is added to a text: who builds a window places `<bos>`.

    Raises
    ------
    InputError
        If `vocabulary` does not hold the bytes or does not fit uint16, or if the texts are too few to fill it.
    """
    if not SMALLEST <= vocabulary <= LARGEST:
        raise InputError(f"vocabulary {vocabulary}: must be from {SMALLEST} to {LARGEST}; change it in config.yaml")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n|\p{Nd}"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocabulary:
        raise InputError(
            f"vocabulary {vocabulary}: the corpora give {tokenizer.get_vocab_size()} tokens only; "
            "lower it or add text to the corpora"
        )
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the files from which `transformers.AutoTokenizer` loads this tokenizer."""
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BOS).save_pretrained(folder)


def encode(tokenizer: Tokenizer, texts: Iterable[str]) -> list[np.ndarray]:
    """Return the ids of every text, uint16, without `<bos>`.

    `<bos>` written out in a text is text: its characters are encoded, so that a document cannot hold a boundary.
    """
    special = tokenizer.encode_special_tokens
    tokenizer.encode_special_tokens = True
    try:
        return [np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.uint16) for text in texts]
    finally:
        tokenizer.encode_special_tokens = special
