"""The tokenizer: exact on every text, digits and newlines one by one, no boundary of its own, the same bytes always."""

import os
import subprocess
import sys

import numpy as np
import pytest

from stateatlas import tokenization
from stateatlas.job import InputError

TEXTS = [
    "def double(x):\n\treturn 2 * x  # twice\n\n\ndouble(1234)\n",
    "The documentation says 12 things, and 12 things again.\r\n",
    "for i in range(100):\n    print(i, i + 1)\n",
]
VOCABULARY = 300
TRICKY = [
    "def f(x):\n\treturn 'é日本'  # \U0001f600\r\n\x0c\n",
    "1234567890 ٣٤ ½ 0x1F 3.14e-10",
    "  two  spaces , spaced ( marks ) . do n't ?  and trailing  ",
    "\x00\x1c\x7f\u2028\ufeff",
    "<bos>is text here<bos>",
    "",
]


@pytest.fixture(scope="module")
def tokenizer():
    return tokenization.train(TEXTS, VOCABULARY)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer")
    tokenization.save(tokenizer, path)
    return path


@pytest.mark.parametrize("text", TEXTS + TRICKY)
def test_a_text_comes_back_exactly(tokenizer, text):
    (ids,) = tokenization.encode(tokenizer, [text])
    assert ids.dtype == np.uint16
    assert tokenizer.decode(ids.tolist(), skip_special_tokens=False) == text


def test_digits_and_newlines_are_always_tokens_of_their_own(tokenizer):
    tokens = tokenizer.encode("x = 2026\n\n\n  1 2\n34").tokens
    for character, as_token in [*((d, d) for d in "0123456789"), ("\n", "Ċ")]:
        assert all(token == as_token for token in tokens if as_token in token), (character, tokens)
    assert tokens.count("Ċ") == 4


def test_bos_is_id_0_and_the_bytes_follow(tokenizer):
    assert tokenizer.token_to_id(tokenization.BOS) == 0
    assert tokenizer.get_vocab_size() == VOCABULARY
    assert {tokenizer.id_to_token(i) for i in range(1, 257)} == {
        token for token in tokenizer.get_vocab() if len(token) == 1
    }


@pytest.mark.parametrize("text", ["<bos>", "a<bos>b", " <bos>\n<bos>"])
def test_a_document_cannot_hold_a_boundary(tokenizer, text):
    (ids,) = tokenization.encode(tokenizer, [text])
    assert 0 not in ids


def test_transformers_loads_it_and_adds_no_token(tokenizer, folder):
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(folder)
    texts = [text for text in TEXTS + TRICKY if "<bos>" not in text]
    for text, ids in zip(texts, tokenization.encode(tokenizer, texts), strict=True):
        assert loaded(text).input_ids == ids.tolist()
        assert loaded.decode(ids.tolist()) == text
    assert (loaded.bos_token, loaded.bos_token_id) == ("<bos>", 0)
    assert loaded("<bos>ab").input_ids[:1] == [0]
    assert len(loaded) == VOCABULARY


def test_the_same_corpus_gives_the_same_bytes_in_another_process(folder, root, tmp_path):
    code = (
        "import sys; from pathlib import Path; from stateatlas import tokenization\n"
        f"tokenization.save(tokenization.train({TEXTS!r}, {VOCABULARY}), Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts"), "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.parametrize("vocabulary", [256, (1 << 16) + 1])
def test_a_vocabulary_that_cannot_be_is_refused(vocabulary):
    with pytest.raises(InputError, match=f"vocabulary {vocabulary}: must be from 257 to 65536"):
        tokenization.train(TEXTS, vocabulary)


def test_a_corpus_too_small_for_the_vocabulary_is_refused():
    with pytest.raises(InputError, match=r"vocabulary 5000: the corpora give .* tokens only"):
        tokenization.train(TEXTS, 5000)
