"""Token classes and windows around a boundary."""

import numpy as np
import pytest

from stateatlas import annotation, packing, tokenization
from stateatlas.job import InputError
from stateatlas.token_classes import CLASSES, classify


def classes_of(text, spans):
    return [CLASSES[i] for i in classify(text, spans)]


def spans_of(text, pieces):
    """Offsets of pieces that make up the text."""
    ends = np.cumsum([len(piece) for piece in pieces])
    assert "".join(pieces) == text
    return [(end - len(piece), end) for piece, end in zip(pieces, ends, strict=True)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["The", " cat"], ["function_word", "content"]),
        (["he", "llo", " w", "e", "re"], ["content", "content", "function_word", "function_word", "function_word"]),
        (["End", ".", "\n", "Next", ","], ["content", "period", "newline", "content", "comma"]),
        (["a", " 4", "2", " (", ").", " "], ["function_word", "digit", "digit", "punctuation", "punctuation", "other"]),
        (["x", "=", "1", ";\n"], ["content", "other", "digit", "newline"]),
        (["caf", "é", " ", "…", "“", "don", "’", "t"],
         ["content", "content", "other", "punctuation", "punctuation", "content", "punctuation", "content"]),
        (["foo", "_", "bar", "3"], ["content", "punctuation", "content", "digit"]),
        ([" to", "."], ["function_word", "period"]),
        (["\r\n", "\t", "\x0c"], ["newline", "other", "other"]),
        (["x1", "٣"], ["other", "digit"]),
    ],
)  # fmt: skip
def test_a_token_s_class_is_that_of_its_text(pieces, expected):
    text = "".join(pieces)
    assert classes_of(text, spans_of(text, pieces)) == expected


def test_a_word_is_one_class_however_it_is_spelt():
    text = "between and nowhere"
    for step in (1, 2, 3, 50):
        found = {}
        for word in ("between", "and", "nowhere"):
            start = text.index(word)
            for first in range(start, start + len(word), step):
                found.setdefault(word, set()).update(classes_of(text, [(first, min(first + step, start + len(word)))]))
        assert found == {"between": {"function_word"}, "and": {"function_word"}, "nowhere": {"content"}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    texts = [
        f"Section {i}.\n\nThe value of x, y and z is {i * 7}; see the other pages for more.\n" * 12 for i in range(40)
    ]
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenization.save(tokenization.train(texts, 280), folder)
    return texts, annotation.tokenizer(folder)


def test_annotation_keeps_the_ids_of_the_tokenizer_and_adds_no_bos(made):
    texts, tokenizer = made
    for text, document in zip(texts, annotation.annotate(tokenizer, texts), strict=True):
        assert tokenizer.decode(document[:, 0].tolist()) == text
        assert (document[:, 0] != packing.BOS).all()
        assert (document[:, 1] != CLASSES.index("bos")).all()
        assert (document[:, 1] == CLASSES.index("newline")).sum() == text.count("\n")
        assert (document[:, 1] == CLASSES.index("digit")).sum() == sum(c.isdigit() for c in text)


@pytest.mark.parametrize("boundary", ["bos", "newline", "period"])
def test_windows_end_eight_tokens_after_their_boundary_and_stay_in_one_document(made, boundary):
    texts, tokenizer = made
    documents = annotation.annotate(tokenizer, texts)
    # Mark documents: no two of them share a long run of tokens.
    tokens, origin = annotation.windows(documents, boundary, 64, 50, np.random.default_rng(0))
    assert tokens.shape[1] == 64
    assert 10 < len(tokens) <= 50
    place = 64 - 1 - annotation.MEASURED
    assert (tokens[:, place + 1 :] != packing.BOS).all()
    for row, index in zip(tokens, origin, strict=True):
        text = tokenizer.decode([t for t in row.tolist() if t != packing.BOS])
        assert text in texts[index] or text[:30] in texts[index]
        if boundary == "bos":
            assert row[place] == packing.BOS
        else:
            assert tokenizer.decode([row[place]]) == {"newline": "\n", "period": "."}[boundary]


def test_too_few_boundaries_give_fewer_windows(made):
    texts, tokenizer = made
    documents = annotation.annotate(tokenizer, texts[:1])
    assert len(annotation.windows(documents, "bos", 64, 500, np.random.default_rng(0))[0]) < 10
    assert annotation.windows(documents, "bos", 10_000, 5, np.random.default_rng(0))[0].shape == (0, 10_000)


def test_a_checkpoint_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json: no tokenizer can be read there"):
        annotation.tokenizer(tmp_path)
