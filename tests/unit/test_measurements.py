"""Probes, ablations and refits against the literal definition."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stateatlas import ablation, behaviour, probes, recording, refit, states, subspaces
from stateatlas.residual import ResidualModel, matched_shape


@pytest.fixture
def model():
    torch.manual_seed(0)
    return ResidualModel(matched_shape("lstm", 16, 2, 3, 4)).eval()


@pytest.fixture
def tokens():
    return np.random.default_rng(0).integers(0, 3, (20, 6))


def blobs(classes: int, rng, n: int = 60, length: int = 5, width: int = 8):
    """States with a class mean each, on axes of very different size."""
    labels = rng.integers(0, classes, (n, length))
    scale = np.geomspace(0.01, 10, width)
    return (rng.standard_normal((classes, width))[labels] * 2 + rng.standard_normal((n, length, width))) * scale, labels


@pytest.mark.parametrize("classes", [2, 4])
def test_probe_predicts_what_scikit_learn_predicts_on_standardised_features(classes):
    rng = np.random.default_rng(classes)
    x, y = blobs(classes, rng)
    probe = probes.fit(x, y)
    reference = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(x.reshape(-1, 8), y.ravel())
    expected = (reference.predict(x.reshape(-1, 8)).reshape(y.shape) == y).sum(axis=1)
    np.testing.assert_array_equal(probe.right(x, y), expected)


def test_probe_that_does_not_converge_is_an_error(monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    solver = LogisticRegression
    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", lambda **_: solver(max_iter=1))
    with pytest.raises(ConvergenceWarning):
        probes.fit(*blobs(4, np.random.default_rng(0)))


def test_probes_survive_the_file(tmp_path):
    probe = probes.fit(*blobs(3, np.random.default_rng(1)))
    probes.save(tmp_path / "probes.safetensors", {0: probe, 2: probe})
    read = probes.load(tmp_path / "probes.safetensors")
    assert list(read) == [0, 2]
    np.testing.assert_array_equal(read[2].weights, probe.weights)


def test_position_and_token_know_nothing_of_parity_but_all_of_position_and_token():
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 2, (200, 6))
    features = probes.position_token(tokens, 2)
    parity = tokens.cumsum(1) % 2
    first = probes.fit(features[:100], parity[:100])
    assert first.right(features[100:], parity[100:]).sum() / parity[100:].size < 0.7
    assert features.shape == (200, 6, 8)
    assert probes.fit(features, tokens).right(features, tokens).sum() == tokens.size


def test_directions_ignore_what_all_classes_share_and_have_the_rank_of_differences():
    weights = np.random.default_rng(0).standard_normal((4, 9))
    directions = subspaces.probe_directions(weights)
    assert directions.shape == (9, 3)
    np.testing.assert_allclose(directions.T @ directions, np.eye(3), atol=1e-12)
    shifted = subspaces.probe_directions(weights + 5 * np.ones(9))
    np.testing.assert_allclose(np.abs(np.sum(directions * shifted, axis=0)), 1, atol=1e-9)
    two = subspaces.probe_directions(np.stack([-weights[0], weights[0]]))
    np.testing.assert_allclose(np.abs(two[:, 0] @ weights[0]) / np.linalg.norm(weights[0]), 1, atol=1e-12)


def test_principal_directions_are_those_of_numpy_s_svd():
    x = np.random.default_rng(0).standard_normal((10, 5, 4)) * [1, 5, 2, 10]
    flat = x.reshape(-1, 4) - x.reshape(-1, 4).mean(0)
    expected = np.linalg.svd(flat)[2].T
    overlap = np.abs(np.sum(subspaces.principal_directions(x) * expected, axis=0))
    np.testing.assert_allclose(overlap, 1, atol=1e-9)


@pytest.mark.parametrize("method", ablation.METHODS)
def test_edit_is_its_definition_written_out(method):
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((2, 3, 4, 6))
    mean, basis = rng.standard_normal(6), subspaces.Subspace("random", 0, np.linalg.qr(rng.standard_normal((6, 2)))[0])
    args = [torch.tensor(a) for a in (basis.basis, mean, other)]
    edited = ablation.edit(method, *args)(torch.tensor(x)).numpy()
    for n, t in np.ndindex(3, 4):
        expected = x[n, t].copy()
        for v in basis.basis.T:
            aim = {"zero": 0.0, "mean": v @ mean, "resample": v @ other[n, t]}[method]
            expected += (aim - v @ x[n, t]) * v
        np.testing.assert_allclose(edited[n, t], expected, atol=1e-12)


def test_ablation_from_recorded_states_equals_a_whole_edited_forward(model, tokens, tmp_path, monkeypatch):
    recording.record(model, tokens, tmp_path, "test")
    labels = np.random.default_rng(1).integers(0, 4, tokens.shape)
    subspace = subspaces.Subspace("random", 0, np.linalg.qr(np.random.default_rng(2).standard_normal((16, 5)))[0])
    for k in states.sites(tmp_path):
        site = ablation.Site(model, k, states.load(tmp_path, "test", k), labels, np.zeros(16))
        with torch.inference_mode():
            stream = model.embed(torch.from_numpy(tokens))
            for index in range(len(model.blocks) + 1):
                if index == k:
                    stream = torch.tensor(subspace.project_out(stream.numpy()), dtype=torch.float32)
                stream = model.block(index, stream) if index < len(model.blocks) else stream
            expected = (model.read(stream).argmax(-1).numpy() == labels).sum(1)
        other = subspaces.Subspace("random", 1, subspace.basis[:, :2])
        for chunk in (7, 30, 2048):  # fewer than the sequences, and room for one edit or several
            monkeypatch.setattr(ablation, "CHUNK", chunk)
            found = list(site.right([("zero", subspace), ("zero", other), ("zero", subspace)]))
            assert [row["k"] for row, _ in found] == [5, 2, 5]
            np.testing.assert_array_equal(found[0][1], expected)
            np.testing.assert_array_equal(found[2][1], expected)


def test_resample_takes_from_another_sequence_and_uses_every_one_once(model, tokens):
    site = ablation.Site(model, 0, np.arange(20.0)[:, None, None] * np.ones((20, 6, 16)), tokens, np.zeros(16))
    taken = site.other[:, 0, 0].numpy()
    assert sorted(taken) == list(range(20))
    assert (taken != np.arange(20)).all()


def test_recorded_states_are_the_model_s(model, tokens, tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "CHUNK", 7)
    recording.record(model, tokens, tmp_path, "fit")
    with torch.inference_mode():
        expected = model.states(torch.from_numpy(tokens))
    for site, stream in enumerate(expected):
        read = states.load(tmp_path, "fit", site)
        assert read.dtype == np.float32
        assert isinstance(read, np.memmap)
        # Another batch size may take another summation order: a few units in the last place.
        np.testing.assert_allclose(read, stream.numpy(), rtol=1e-5, atol=1e-6)


def test_refit_finds_a_second_copy_of_what_was_taken_out():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (80, 5))
    # The probe leans on the small copy, whose standardised size is the same; the large one stays.
    copies = [labels * 4.0, labels * 1.0, *rng.standard_normal((2, 80, 5))]
    x = np.stack(copies, axis=-1) + rng.normal(0, 0.1, (80, 5, 4))
    probe = probes.fit(x[:40], labels[:40])
    rows = list(refit.measure(probe, (x[:40], labels[:40]), (x[40:], labels[40:]), rng))
    shares = {(r["subspace"], r["metric"]): right.sum() / 200 for r, right in rows}
    assert shares["top_direction", "accuracy_original"] > 0.99
    assert shares["top_direction", "accuracy_ablated"] < 0.75
    one = x.copy()
    one[..., 1] = rng.standard_normal((80, 5))  # without the copy there is nothing left to find
    probe = probes.fit(one[:40], labels[:40])
    gone = {
        (r["subspace"], r["metric"]): right.sum() / 200
        for r, right in refit.measure(probe, (one[:40], labels[:40]), (one[40:], labels[40:]), rng)
    }
    assert shares["top_direction", "accuracy_refitted"] > 0.95
    assert gone["top_direction", "accuracy_original"] > 0.99
    assert gone["top_direction", "accuracy_refitted"] < 0.9


def test_solved_prefix_ends_before_the_first_position_under_95_percent():
    right = np.ones((100, 5), dtype=bool)
    assert behaviour.solved_prefix(right) == 5
    right[:6, 3] = False
    assert behaviour.solved_prefix(right) == 3
    right[:6, 0] = False
    assert behaviour.solved_prefix(right) == 0
