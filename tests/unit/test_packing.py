"""Packing: segments of 24 to 160 tokens, one `<bos>` before each, every window of one split."""

from itertools import islice

import numpy as np
import pytest

from stateatlas import packing
from stateatlas.job import InputError
from stateatlas.packing import BOS, LONGEST, SHORTEST, Documents, batches, segments, windows


def documents(first: int, sizes=(5, 23, 24, 400, 1000, 3000)) -> list[np.ndarray]:
    """Documents whose tokens count up from `first`, so that every token says where it comes from."""
    ends = first + np.cumsum(sizes)
    return [np.arange(end - size, end, dtype=np.uint16) for end, size in zip(ends, sizes, strict=True)]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def packed(rows: np.ndarray) -> list[np.ndarray]:
    """The segments in a row of windows, without `<bos>`; the last may be cut."""
    row = rows.ravel()
    starts = np.flatnonzero(row == BOS)
    assert starts[0] == 0
    return [part[1:] for part in np.split(row, starts[1:])]


def test_segments_are_pieces_of_documents_in_the_published_range():
    found = segments(documents(1), rng())
    assert {SHORTEST <= len(segment) <= LONGEST for segment in found} == {True}
    edges = np.cumsum([0, 5, 23, 24, 400, 1000, 3000]) + 1
    for segment in found:
        assert (np.diff(segment.astype(int)) == 1).all()
        document = np.searchsorted(edges, segment, side="right")
        assert (document == document[0]).all(), "a segment spans two documents"


def test_segments_overlap_nowhere_and_leave_out_ends_alone():
    held = documents(1)
    tokens = np.concatenate(segments(held, rng()))
    assert len(tokens) == len(set(tokens))
    missing = sum(map(len, held)) - len(tokens)
    assert missing < SHORTEST * len(held)


def test_lengths_of_segments_are_uniform():
    found = segments([np.zeros(2_000_000, np.uint16)], rng())
    counts = np.bincount([len(segment) for segment in found[:-1]])[SHORTEST:]
    expected = len(found) / (LONGEST - SHORTEST + 1)
    assert len(counts) == LONGEST - SHORTEST + 1
    # Each count is binomial: five standard deviations.
    assert abs(counts - expected).max() < 5 * expected**0.5 + 1


def test_every_segment_has_one_bos_before_it():
    held = documents(1)
    rows = windows(held, 128, rng())
    assert rows.dtype == np.uint16
    assert rows.shape[1] == 128
    found, expected = packed(rows), segments(held, rng())
    assert (rows.ravel()[1:][rows.ravel()[:-1] == BOS] != BOS).all(), "<bos> stands twice"
    for ours, segment in zip(found[:-1], expected, strict=False):
        np.testing.assert_array_equal(ours, segment)
    assert sum(map(len, expected)) + len(expected) - rows.size < 128


def test_windows_never_cross_splits(tmp_path):
    splits = {"train": documents(1), "validation": documents(10_000), "test": documents(20_000)}
    packing.save(tmp_path / "tokens.safetensors", splits)
    held = Documents(tmp_path / "tokens.safetensors")
    for split, parts in splits.items():
        for found, expected in zip(held.get(split), parts, strict=True):
            np.testing.assert_array_equal(found, expected)
        tokens = windows(held.get(split), 64, rng())
        assert set(tokens[tokens != BOS]) <= set(np.concatenate(parts))


def drawn(steps: int, names: tuple = ("t",)) -> list[np.ndarray]:
    return list(islice(batches(documents(1), 8, 64, 0, names), steps))


def test_batches_are_named_and_go_on_past_one_pass():
    assert windows(documents(1), 64, rng()).shape[0] < 10 * 8
    first, second, other = drawn(30), drawn(30), drawn(30, ("u",))
    assert {rows.shape for rows in first} == {(8, 64)}
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert len({rows.tobytes() for rows in first}) == 30, "a pass repeats an earlier one"


def test_too_little_text_is_refused():
    with pytest.raises(InputError, match="do not fill one window of 128 tokens: add text"):
        windows([np.ones(40, np.uint16)], 128, rng())
    with pytest.raises(InputError, match="a batch needs 100: add text"):
        next(batches(documents(1), 100, 64, 0, ("t",)))
