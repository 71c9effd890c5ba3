"""Unit activity, signatures and sets, against plain loops over all tokens."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_models
import torch

from stateatlas import activity, adapters, signatures, unit_sets, units
from stateatlas.token_classes import CLASSES

BOS, NEWLINE, CONTENT = (CLASSES.index(name) for name in ("bos", "newline", "content"))


def windows(seed=0, number=5, length=21):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, tiny_models.SIZES["vocab_size"], (number, length))
    classes = rng.choice([BOS, NEWLINE, CONTENT, len(CLASSES) - 1], (number, length), p=[0.1, 0.2, 0.5, 0.2])
    return np.stack([tokens, classes], axis=-1).astype(np.uint16)


@pytest.fixture(params=["mamba", "mamba2 grouped", "gpt_neox"])
def model(request, tmp_path):
    _, folder = tiny_models.save(request.param, tmp_path)
    options = {"attention": "math"} if request.param == "gpt_neox" else {}
    return adapters.load(folder, **options).double()


def test_moments_are_those_of_all_values_together():
    rng = np.random.default_rng(0)
    values, classes = 1e3 + rng.standard_normal((1000, 3)), rng.integers(0, 4, 1000)
    one, first, second = (activity.Moments(3) for _ in range(3))
    for part in np.array_split(np.arange(1000), [7, 8, 500]):
        one.add(values[part], classes[part])
    first.add(values[:300], classes[:300])
    second.add(values[300:], classes[300:])
    first.merge(second)
    for index in range(4):
        for found in (one, first):
            assert found.count[index] == (classes == index).sum()
            np.testing.assert_allclose(found.mean[index], values[classes == index].mean(0), rtol=1e-12)
            np.testing.assert_allclose(found.variance[index], values[classes == index].var(0), rtol=1e-9)
    assert (one.variance[5] == 0).all()


def test_activity_is_that_of_every_token_in_turn(model, monkeypatch):
    groups = [windows(seed) for seed in range(3)]
    kind = units.family(model.family)
    monkeypatch.setattr(activity, "CHUNK", 2)
    found = activity.measure(model, groups)
    everything = np.concatenate(groups)
    tokens = torch.from_numpy(everything[..., 0].astype(np.int64))
    streams = model.states(tokens)
    for index in range(model.depth):
        seen = kind.observe(model, index, streams[index])
        mixer = kind.mixer(model.blocks[index])
        number = kind.number(mixer)
        columns = kind.output(mixer).weight.detach().unflatten(1, (number, -1))
        lengths = torch.einsum("wup,blup->bluw", columns, seen.output.unflatten(-1, (number, -1))).norm(dim=-1)
        for name in (BOS, NEWLINE, CONTENT):
            at = torch.from_numpy(everything[..., 1] == name)
            signal = seen.signal[at]
            pooled = activity.pooled(found.signal, found.count)
            np.testing.assert_allclose(pooled[name, index], signal.mean(0).detach(), rtol=1e-9, atol=1e-12)
            spread = signal.std(0, correction=0).detach()
            np.testing.assert_allclose(found.spread[name, index], spread, rtol=1e-7, atol=1e-12)
            np.testing.assert_allclose(found.norm[name, index], lengths[at].mean(0).detach(), rtol=1e-7)
        at = torch.from_numpy(everything[..., 1] == CONTENT)
        for mean, values in zip(found.means()[index], (seen.gate, seen.delta, seen.output), strict=True):
            np.testing.assert_allclose(mean, values[at].mean(0).detach(), rtol=1e-9, atol=1e-12)


def test_the_most_frequent_tokens_have_a_signal_of_their_own(model, monkeypatch):
    groups = [windows(seed) for seed in range(3)]
    monkeypatch.setattr(activity, "FREQUENT", 3)
    found = activity.measure(model, groups)
    everything = np.concatenate(groups)
    inner = everything[~np.isin(everything[..., 1], [BOS, NEWLINE])][:, 0]
    chosen = sorted(set(inner.tolist()), key=lambda token: (-(inner == token).sum(), token))[:3]
    tokens = torch.from_numpy(everything[..., 0].astype(np.int64))
    for index, stream in enumerate(model.states(tokens)[:-1]):
        signal = units.family(model.family).observe(model, index, stream).signal
        expected = [signal[tokens == token].mean(0).detach() for token in chosen]
        np.testing.assert_allclose(found.frequent[:, index], np.stack(expected), rtol=1e-9, atol=1e-12)


def test_activity_is_read_as_written(model, tmp_path):
    found = activity.measure(model, [windows()])
    found.save(tmp_path / "activity.safetensors")
    back = activity.Activity.load(tmp_path / "activity.safetensors")
    for name, values in vars(found).items():
        np.testing.assert_array_equal(getattr(back, name), values)


def made(signal_bos, signal_newline, groups=4, tokens=100.0, spread=1.0):
    """Activity with given signals (blocks, units) at BOS and newline, 0 at all other classes."""
    signal_bos, signal_newline = np.array(signal_bos), np.array(signal_newline)
    signal = np.zeros((groups, len(CLASSES), *signal_bos.shape))
    signal[:, BOS], signal[:, NEWLINE] = signal_bos, signal_newline
    return activity.Activity(
        np.full((groups, len(CLASSES)), tokens), signal, np.full(signal.shape[1:], spread),
        np.zeros((groups, len(CLASSES), len(signal_bos), 2 * signal_bos.shape[1])),
        np.zeros(signal.shape[1:]), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((0, *signal_bos.shape)),
    )  # fmt: skip


def test_sets_follow_their_definition():
    known = made([[0.6, 0.6, 0.4, 0.0], [2.0, 0.51, 0, 0]], [[0.6, 0.0, 0.6, 0.0], [0.2, 0.9, 0, 0]])
    found = signatures.sets(signatures.signatures(known))
    assert found["bos"].tolist() == [[True, True, False, False], [True, True, False, False]]
    assert found["single_bos"].tolist() == [[False, True, False, False], [True, False, False, False]]
    assert found["single_newline"].tolist() == [[False, False, True, False], [False] * 4]
    assert found["dual"].tolist() == [[True, False, False, False], [False, True, False, False]]
    doubled = signatures.signatures(made([[0.6]], [[0.6]], spread=2.0), form="standardised")
    assert not signatures.sets(doubled)["bos"].any()
    rows = {name: value for name, value, _, _ in unit_sets.counts(known, np.random.default_rng(0), 20)}
    assert rows["dual_minus_3_single"] == 2 - 3 * 2
    assert rows["undercount"] == 2
    assert rows["dual_share"] == 2 / 8
    assert rows["dual_minus_single_share"] == 0


def test_pairs_of_frequent_tokens_share_what_is_above_the_threshold_for_both():
    known = made([[0.0] * 4], [[0.0] * 4])
    known = replace(known, frequent=np.array([[[0.6, 0.6, 0.0, 0.0]], [[0.6, 0.0, 0.0, 0.9]], [[0.0, 1.0, 0.7, 0.7]]]))
    assert signatures.pair_shares(known, "raw").tolist() == [1 / 4, 1 / 4, 1 / 4]
    assert signatures.pair_shares(known, "raw", tau=0.65).tolist() == [0, 0, 1 / 4]
    rows = {(form, tau, name): value for form, tau, name, value in unit_sets.thresholds(known)}
    assert rows["raw", 0.5, "pairs_median"] == rows["raw", 0.5, "pairs_95"] == 1 / 4


def test_every_unit_has_its_signature_and_its_set():
    known = made([[0.6, 0.6, 0.4, 0.0]], [[0.6, 0.0, 0.6, 0.0]])
    rows = {(row["class"], row["unit"]): row for row in unit_sets.by_unit(known)}
    assert [rows["bos", unit]["set"] for unit in range(4)] == ["dual", "single_bos", "single_newline", "none"]
    np.testing.assert_allclose([rows["newline", unit]["value"] for unit in range(4)], [0.6, 0, 0.6, 0])


def test_a_class_that_the_corpus_does_not_have_gives_no_specialists():
    known = made([[5.0]], [[5.0]])
    known.count[:, NEWLINE] = 0
    found = signatures.sets(signatures.signatures(known))
    assert found["bos"].all()
    assert not found["dual"].any()


def test_intervals_derive_the_sets_again_in_every_resample():
    known = made(np.zeros((1, 6)), np.zeros((1, 6)), groups=30)
    rng = np.random.default_rng(0)
    known.signal[:, BOS] = 0.5 + rng.standard_normal((30, 1, 6))
    value, low, high = next(row[1:] for row in unit_sets.counts(known, rng, 400) if row[0] == "class_count")
    assert low < value < high

    def draw(times):
        mean = np.average(known.signal[:, BOS], axis=0, weights=times)
        return (mean > 0.5).sum()

    expected = [draw(rng.multinomial(30, np.full(30, 1 / 30))) for _ in range(2000)]
    assert abs(np.quantile(expected, 0.025) - low) <= 1
    assert abs(np.quantile(expected, 0.975) - high) <= 1


def test_resampling_in_parts_changes_nothing(monkeypatch):
    known = made(np.linspace(0, 1, 12).reshape(2, 6), np.linspace(1, 0, 12).reshape(2, 6))
    known.signal[:] += np.random.default_rng(3).standard_normal(known.signal.shape)
    whole = list(unit_sets.counts(known, np.random.default_rng(1), 50))
    monkeypatch.setattr(unit_sets, "AT_ONCE", 200)
    assert list(unit_sets.counts(known, np.random.default_rng(1), 50)) == whole


def test_a_bucket_s_signal_is_the_mean_of_its_units():
    known = made(np.arange(12.0).reshape(1, 12), np.zeros((1, 12)))
    found = signatures.bucketed(known, 3, np.random.default_rng(0))
    assert found.signal.shape[-1] == 3
    np.testing.assert_allclose(found.signal[0, BOS].sum() * 4, np.arange(12).sum())
    same = signatures.bucketed(known, 12, np.random.default_rng(0))
    assert sorted(same.signal[0, BOS, 0]) == list(range(12))
    with pytest.raises(ValueError, match="12 units do not fill 5 buckets"):
        signatures.bucketed(known, 5, np.random.default_rng(0))


def test_buckets_are_compared_with_half_the_dual_share_of_mamba2():
    channels, heads = made(np.ones((1, 8)), np.ones((1, 8))), made([[1.0, 0.0]], [[1.0, 0.0]])
    rows = {name: rest for name, *rest in unit_sets.buckets(channels, heads, np.random.default_rng(0), 20)}
    assert rows["bucketed_dual_share"] == [1, 1, 1]
    assert rows["bucketed_dual_share_minus_half_mamba2"] == [0.75, 0.75, 0.75]


def test_write_cosines_are_those_of_the_written_vectors():
    rng = np.random.default_rng(0)
    known = made(np.ones((2, 3)), np.ones((2, 3)))
    known.output[:] = rng.standard_normal(known.output.shape)
    weights = [rng.standard_normal((5, 6)) for _ in range(2)]
    found = signatures.write_cosines(known, weights)
    mean = known.output.mean(axis=0)
    for block in range(2):
        for unit in range(3):
            own = slice(2 * unit, 2 * unit + 2)
            first, second = (weights[block][:, own] @ mean[name, block, own] for name in (BOS, NEWLINE))
            expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
            np.testing.assert_allclose(found[block, unit], expected, rtol=1e-10)


def test_dual_units_are_compared_with_units_of_the_same_blocks():
    known = made([[1.0, 1.0, 0.0, 0.0, 1.0, 0.0]], [[1.0, 1.0, 0.0, 0.0, 0.0, 0.0]], groups=6)
    known.output[:, BOS, 0], known.output[:, NEWLINE, 0] = 1.0, -1.0
    known.output[:, NEWLINE, 0, :4] = 1.0  # the two dual units write alike, all others opposite
    rows = {name: rest for name, *rest in unit_sets.writes(known, [np.eye(12)], np.random.default_rng(0), 30)}
    np.testing.assert_allclose(rows["dual_cosine"], 1)
    np.testing.assert_allclose(rows["dual_minus_single_cosine"], 2)
    np.testing.assert_allclose(rows["dual_minus_null_cosine"], 2)


def test_without_dual_units_there_is_no_cosine():
    known = made([[1.0, 0.0]], [[0.0, 0.0]])
    known.output[:] = 1.0
    assert not any("dual" in name for name, *_ in unit_sets.writes(known, [np.eye(4)], np.random.default_rng(0), 10))
