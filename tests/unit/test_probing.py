"""What a probe and its controls may and may not read."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from scipy.special import log_softmax

from stateatlas import probes, probing, results, sequences, states

N, LENGTH = 200, 6


@pytest.fixture
def measured(tmp_path):
    """Probe made-up states at one site; returns accuracy on the test sequences by control."""

    def measure(labels: dict[str, np.ndarray], stream: dict[str, np.ndarray], shuffle: int = 0) -> dict[str, float]:
        arrays = {
            f"{split}/{LENGTH}/{key}": values.astype(np.uint8)
            for split, values in labels.items()
            for key in ("tokens", "state")
        }
        sequences.save(tmp_path / "sequences.safetensors", arrays)
        for split, values in stream.items():
            np.save(states.place(tmp_path, split, 0), values.astype(np.float32))
        found = probing.measure(
            tmp_path,
            sequences.Sequences(tmp_path / "sequences.safetensors"),
            LENGTH,
            ("none", "shuffled_labels"),
            np.random.default_rng(shuffle),
        )
        return {row["control"]: right.sum() / (N * LENGTH) for row, right, _ in found}

    return measure


def drawn(what, root: int = 0) -> dict[str, np.ndarray]:
    return {split: what(np.random.default_rng([root, seed])) for seed, split in enumerate(("fit", "test"))}


def beside_noise(labels: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """States that hold the label, one axis a class, beside four axes of noise."""
    rng = np.random.default_rng(9)
    return {
        split: np.concatenate([8.0 * np.eye(6)[values], rng.standard_normal((*values.shape, 4))], axis=-1)
        for split, values in labels.items()
    }


def test_labels_of_another_sequence_take_away_what_the_states_tell_of_the_sequence(measured):
    labels = drawn(lambda rng: rng.integers(0, 6, (N, LENGTH)))
    found = [measured(labels, beside_noise(labels), shuffle) for shuffle in range(16)]
    assert min(accuracy["none"] for accuracy in found) > 0.99
    # Such a probe gives each of the six classes some class by chance: a sixth of them the right one.
    spread = np.sqrt(1 / 6 * 5 / 6 / 6 / len(found))
    assert abs(np.mean([accuracy["shuffled_labels"] for accuracy in found]) - 1 / 6) < 4 * spread


def test_labels_of_another_sequence_keep_what_position_tells(measured):
    labels = drawn(lambda _: np.tile(np.arange(LENGTH), (N, 1)))
    accuracy = measured(labels, beside_noise(labels))
    assert accuracy["none"] == accuracy["shuffled_labels"] == 1


def test_what_marks_a_sequence_is_read_across_a_split_of_tokens_but_not_across_one_of_sequences(measured):
    # Every sequence has a mark of its own on all its tokens and one label drawn by lot: there is nothing to be known.
    labels = drawn(lambda rng: np.repeat(rng.integers(0, 2, (N, 1)), LENGTH, axis=1))
    stream = drawn(lambda rng: np.repeat(rng.standard_normal((N, 1, 120)), LENGTH, axis=1), root=1)
    accuracy = measured(labels, stream)["none"]
    assert abs(accuracy - 0.5) < 4 * 0.5 / np.sqrt(N)
    half = LENGTH // 2  # the mistake: fitted on some tokens of the sequences that are tested on others
    probe = probes.fit(stream["fit"][:, :half], labels["fit"][:, :half])
    assert probe.hits(stream["fit"][:, half:], labels["fit"][:, half:]).mean() > 0.8


@pytest.mark.parametrize("classes", [2, 4])
def test_a_fitted_probe_lies_at_the_optimum_of_its_penalised_likelihood(classes):
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, (N, LENGTH))
    x = (rng.standard_normal((classes, 8))[y] + rng.standard_normal((N, LENGTH, 8))) * np.geomspace(0.01, 10, 8)
    probe = probes.fit(x, y)
    flat, scale = x.reshape(-1, 8), x.reshape(-1, 8).std(axis=0)
    features = (flat - flat.mean(axis=0)) / scale
    weights = probe.weights * scale
    share = np.exp(log_softmax(flat @ probe.weights.T + probe.bias, axis=1))
    wrong = share - np.eye(classes)[y.ravel()]
    # scikit-learn penalises one row of two classes, which is the difference of ours.
    penalty = (weights - weights[::-1]) if classes == 2 else weights
    gradient = (wrong.T @ features + penalty) / len(flat)
    assert np.abs(gradient).max() < 2e-4  # its tol is 1e-4, of the largest entry
    assert np.abs(wrong.mean(axis=0)).max() < 2e-4


def test_a_probe_that_would_change_its_solver_half_way_is_an_error(monkeypatch):
    def singular(*_, **__):
        raise scipy.linalg.LinAlgError

    monkeypatch.setattr(scipy.linalg, "solve", singular)
    rng = np.random.default_rng(0)
    with pytest.raises(scipy.linalg.LinAlgWarning):
        probes.fit(rng.standard_normal((20, 3, 4)), rng.integers(0, 2, (20, 3)))


def test_the_selectivity_of_a_site_is_its_accuracy_less_that_of_the_shuffled_labels(probe_table):
    (table,) = results.selectivity_tables(probe_table, ["parity"], ["mamba", "lstm"])
    assert (table["title"], table["header"]) == ("Parity", ["", "emb", "L0"])
    (name, embedding, first), (other, *_) = table["rows"]
    assert (name, other) == ("Mamba", "LSTM")
    assert (embedding["main"], embedding["small"]) == ("51.0", "+1.0")
    assert (first["main"], first["small"]) == ("90.0", "+30.0")


def test_an_accuracy_without_its_control_has_no_selectivity(probe_table):
    kept = probe_table[(probe_table["architecture"] != "lstm") | (probe_table["control"] == "none")]
    (table,) = results.selectivity_tables(kept, ["parity"], ["mamba", "lstm"])
    assert [cell["small"] for cell in table["rows"][1][1:]] == ["", ""]


@pytest.fixture
def probe_table():
    rows = []
    for name in ("mamba", "lstm"):
        for seed, more in enumerate((-0.02, 0.0, 0.03)):
            for site, accuracy, control in ((0, 0.51, 0.5), (1, 0.9, 0.6)):
                for kind, value in (("none", accuracy + more), ("shuffled_labels", control + more)):
                    row = {"study": "encoding", "task": "parity", "architecture": name, "model": "trained"}
                    row |= {"seed": seed, "length": 12, "site": site, "target": "state", "control": kind}
                    rows.append(row | {"half": "both", "metric": "accuracy", "value": value})
    return pd.DataFrame(rows)
