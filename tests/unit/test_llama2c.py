"""A model of llama2.c becomes a checkpoint of `transformers` that writes what its author published."""

import os
import struct
from pathlib import Path

import pytest
import tiny_models  # noqa: F401 (keeps transformers offline and quiet)
import torch

from stateatlas import adapters, canonical, llama2c, pretrained
from stateatlas.job import InputError

# What `run -t 0.0` prints of it (llama2.c, doc/stories260K.md): 256 tokens.
PUBLISHED = """\
Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, \
red ball. She wanted to play with it, but it was too high.
Lily's mom said, "Lily, let's go to the park." Lily was sad and didn't know what to do. She said, "I want to play with \
your ball, but I can't find it."
Lily was sad and didn't know what to do. She said, "I'm sorry, Lily. I didn't know what to do."
Lily didn't want to help her mom, so she said, "I'm sorry, mom. I didn't know what to do." Her mom said, "Don't worry, \
Lily. We can help you."""


@pytest.fixture(scope="module")
def stories():
    if "STATEATLAS_TEST_DATA" not in os.environ:
        pytest.skip("STATEATLAS_TEST_DATA is not set: no real model here")
    return Path(os.environ["STATEATLAS_TEST_DATA"], "stories260K")


@pytest.fixture(scope="module")
def folder(stories, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories260K")
    llama2c.convert(stories / "stories260K.bin", stories / "tok512.bin", folder)
    return folder


def test_the_model_is_the_one_that_was_published(stories, folder):
    origin = (stories / "ORIGIN.md").read_text()
    assert canonical.sha256_file(stories / "stories260K.bin") in origin
    assert canonical.sha256_file(stories / "tok512.bin") in origin
    assert sum(p.numel() for p in adapters.load(folder).parameters()) == 260_032


@torch.no_grad()
def test_the_adapter_writes_the_published_text_letter_by_letter(folder):
    model, tokenizer = adapters.load(folder), pretrained.tokenizer(folder)
    tokens = torch.tensor([[tokenizer.bos_token_id]])
    for _ in range(256):
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
    assert tokenizer.decode(tokens[0], skip_special_tokens=True) == PUBLISHED


def test_the_tokenizer_finds_the_tokens_that_the_model_wrote(folder):
    tokenizer = pretrained.tokenizer(folder)
    ids = tokenizer(PUBLISHED)["input_ids"]
    assert ids.count(tokenizer.bos_token_id) == 1 and ids[0] == tokenizer.bos_token_id and len(ids) == 257
    assert tokenizer.decode(ids, skip_special_tokens=True) == PUBLISHED
    unusual = "naïve ☃"  # bytes where there is no piece
    assert tokenizer.decode(tokenizer(unusual)["input_ids"], skip_special_tokens=True) == unusual


def numbers(header: tuple[int, ...], count: int) -> bytes:
    return struct.pack("<7i", *header) + bytes(4 * count)


def test_a_model_whose_head_is_its_own_is_read_too(tmp_path):
    width, hidden, heads, vocabulary, context = 8, 12, 2, 5, 6
    layer = 2 * width + 4 * width * width + 3 * width * hidden
    count = 2 * vocabulary * width + layer + width + context * width // heads
    file = tmp_path / "model.bin"
    file.write_bytes(numbers((width, hidden, 1, heads, heads, -vocabulary, context), count))
    assert not llama2c.read_model(file).config.tie_word_embeddings
    for length, message in ((count - 1, "ends before the tensors"), (count + 1, "not a legacy float32 file")):
        file.write_bytes(numbers((width, hidden, 1, heads, heads, -vocabulary, context), length))
        with pytest.raises(InputError, match=message):
            llama2c.read_model(file)
