"""Activation patching: the two identities, what holds by construction, and a model whose answer is known."""

import numpy as np
import psutil
import pytest
import torch

from stateatlas import patching, sequences, tasks
from stateatlas.residual import ResidualModel, matched_shape
from stateatlas.seeds import stream
from stateatlas.sizes import task_parts

LENGTH = 12


def pairs(name: str, n: int = 40, length: int = LENGTH):
    module, target = task_parts(name)
    task = tasks.load(module, length, target)
    return task, *sequences.draw_pairs(task, stream(0, name), n, length)


@pytest.mark.parametrize("name", ["parity", "s3", "dyck", "dyck-parity", "queue", "z6"])
@pytest.mark.parametrize("length", [12, 40])
def test_pairs_are_valid_and_differ_in_one_token_before_the_middle_and_in_the_state_there(name, length):
    task, clean, corrupt = pairs(name, length=length)
    assert clean.shape == corrupt.shape == (40, length)
    differ = clean != corrupt
    assert (differ.sum(axis=1) == 1).all() and not differ[:, length // 2 :].any()
    assert task.valid(clean).all() and task.valid(corrupt).all()
    states = [task.label(tokens)["state"][:, length // 2] for tokens in (clean, corrupt)]
    assert (states[0] != states[1]).all()


def test_pairs_stand_in_the_file_and_are_not_trained_on(tmp_path):
    task = tasks.load("dyck", LENGTH)
    sizes = {"validation": 20, "fit": 20, "test": 20, "pairs": 20}
    sequences.save(tmp_path / "s.safetensors", sequences.draw(task, "dyck", 0, LENGTH, [LENGTH, 18], sizes))
    file = sequences.Sequences(tmp_path / "s.safetensors")
    kept = {row.tobytes() for part in file.evaluated(LENGTH) for row in part}
    for split in ("clean", "corrupt", "validation", "test"):
        assert {row.tobytes() for row in file.get(split, LENGTH)} <= kept
    assert not {row.tobytes() for row in file.get("fit", LENGTH)} & kept


def test_a_gap_does_not_change_when_all_logits_of_a_token_are_shifted():
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 7, 6, generator=rng, dtype=torch.float64)
    shift = 100 * torch.randn(5, 7, 1, generator=rng, dtype=torch.float64)
    labels = [torch.randint(6, (5, 7), generator=rng) for _ in range(2)]
    found = [patching.gaps(each, *labels) for each in (logits, logits + shift)]
    assert (found[0] != 0).any()
    torch.testing.assert_close(*found, rtol=0, atol=4 * 400 * torch.finfo(torch.float64).eps)  # of numbers up to 400


class Exact(torch.nn.Module):
    """Holds parity in one coordinate from site 1 on; block 2 only copies."""

    sites = 3

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def embed(self, tokens):
        return torch.stack([tokens.float(), torch.zeros_like(tokens, dtype=torch.float32)], dim=-1)

    def block(self, index, stream):
        if index == 0:  # parity after each token, from the tokens alone
            return torch.stack([stream[..., 0], stream[..., 0].cumsum(1) % 2], dim=-1)
        # The state is the one at the patched position, carried on by the later tokens.
        first = stream[:, : LENGTH // 2 + 1, 1]
        later = (first[:, -1:] + stream[:, LENGTH // 2 + 1 :, 0].cumsum(1)) % 2
        return torch.stack([stream[..., 0], torch.cat([first, later], dim=1)], dim=-1)

    def read(self, stream):
        return torch.stack([1 - stream[..., 1], stream[..., 1]], dim=-1)

    def states(self, tokens):
        streams = [self.embed(tokens)]
        for index in range(2):
            streams.append(self.block(index, streams[-1]))
        return streams

    def resume(self, stream, site, edit=None):
        for index in range(site, 2):
            stream = self.block(index, stream)
        return self.read(stream)


def file_of(name: str, tmp_path, n: int = 40):
    module, target = task_parts(name)
    task = tasks.load(module, LENGTH, target)
    sizes = {"validation": 20, "fit": 20, "test": 20, "pairs": n}
    sequences.save(tmp_path / "s.safetensors", sequences.draw(task, module, 0, LENGTH, [LENGTH], sizes))
    return sequences.Sequences(tmp_path / "s.safetensors")


def recoveries(measured) -> dict[tuple, float]:
    return {(row["site"], row["direction"], row["read"]): moved.sum() / whole.sum() for row, moved, whole in measured}


def test_a_state_that_later_positions_read_there_is_recovered_whole(tmp_path):
    found = recoveries(patching.measure(Exact(), file_of("parity", tmp_path), LENGTH))
    for direction in ("denoise", "noise"):
        assert found[1, direction, "later"] == found[1, direction, "patched"] == 1
        assert found[0, direction, "later"] == found[0, direction, "patched"] == 0
        assert found[2, direction, "patched"] == 1 and found[2, direction, "later"] == 0


@pytest.mark.parametrize("architecture", ["transformer", "mamba", "lstm"])
def test_what_holds_by_construction_holds_in_every_model_and_is_marked(architecture, tmp_path):
    torch.manual_seed(0)
    model = ResidualModel(matched_shape(architecture, 16, 2, 4, 4)).eval()
    measured = list(patching.measure(model, file_of("dyck", tmp_path), LENGTH))
    found = recoveries(measured)
    for direction in ("denoise", "noise"):
        assert found[0, direction, "patched"] == pytest.approx(0, abs=1e-6)
        assert found[0, direction, "later"] == pytest.approx(0, abs=1e-6)
        assert found[2, direction, "patched"] == pytest.approx(1, abs=1e-6)
        assert found[2, direction, "later"] == pytest.approx(0, abs=1e-6)
        assert abs(found[1, direction, "patched"]) > 1e-4, "at the site between, the patch bites"
    marked = {row["site"] for row, _, _ in measured if row["status"] == patching.BY_CONSTRUCTION}
    assert marked == {0, 2}


def test_patching_everything_recovers_all_and_patching_nothing_recovers_nothing(tmp_path):
    torch.manual_seed(1)
    model = ResidualModel(matched_shape("mamba", 16, 2, 2, 2)).eval()
    file = file_of("parity", tmp_path)
    tokens = {name: torch.from_numpy(file.get(name, LENGTH)) for name in ("clean", "corrupt")}
    labels = [torch.from_numpy(file.get(name, LENGTH, "state")) for name in ("clean", "corrupt")]
    with torch.inference_mode():
        streams = {name: model.states(rows) for name, rows in tokens.items()}
        clean, corrupt = (patching.gaps(model.read(streams[name][-1]), *labels) for name in ("clean", "corrupt"))
        for site in range(model.sites):
            whole = streams["corrupt"][site]
            for position in range(LENGTH):
                whole = patching.patch(whole, streams["clean"][site], position)
            torch.testing.assert_close(patching.gaps(model.resume(whole, site), *labels), clean)
            none = patching.patch(streams["corrupt"][site], streams["corrupt"][site], 3)
            torch.testing.assert_close(patching.gaps(model.resume(none, site), *labels), corrupt)
    assert (clean - corrupt).abs().sum() > 0


def test_patching_one_row_leaves_the_others_as_they_are(tmp_path):
    torch.manual_seed(2)
    model = ResidualModel(matched_shape("transformer", 16, 2, 2, 2)).eval()
    streams = torch.randn(2, 3, 6, 16)
    mixed = streams[0].clone()
    mixed[1:2] = patching.patch(streams[0][1:2], streams[1][1:2], 2)
    with torch.inference_mode():
        before, after = model.resume(streams[0], 1), model.resume(mixed, 1)
    assert torch.equal(before[[0, 2]], after[[0, 2]]) and not torch.equal(before[1], after[1])
    assert torch.equal(before[1, :2], after[1, :2]), "positions before the patch are not reached"


def test_the_gap_favours_the_clean_label_and_vanishes_where_labels_agree():
    logits = torch.tensor([[[1.0, 4.0, 2.0], [1.0, 4.0, 2.0]]])
    found = patching.gaps(logits, torch.tensor([[1, 0]]), torch.tensor([[2, 0]]))
    assert found.tolist() == [[2.0, 0.0]]


def test_the_best_earlier_site_is_chosen_on_one_half_and_measured_on_the_other():
    def measured(site, first, second, status="evidence"):
        row = {"site": site, "direction": "denoise", "read": "later", "status": status}
        return row, np.array([first, first, second, second]), np.ones(4)

    parts = [
        measured(0, 9, 9, "by construction"),
        measured(1, 0.9, 0.2),
        measured(2, 0.5, 0.8),
        measured(3, 9, 9, "by construction"),
    ]
    rows = [row for row in patching.rows(parts, 200, np.random.default_rng(0)) if row["site"] == -1]
    assert {row["metric"]: row["value"] for row in rows} == {"best_earlier_recovery": 0.2, "best_earlier_site": 1.0}


def test_sweep_after_sweep_takes_no_more_memory(tmp_path):
    """What a sweep has kept of a model would be held for ever by a hook or a cache."""
    file, process = file_of("parity", tmp_path, 256), psutil.Process()
    taken = []
    for _ in range(24):
        model = ResidualModel(matched_shape("transformer", 64, 4, 2, 2)).eval().requires_grad_(False)
        assert len(list(patching.measure(model, file, LENGTH))) > 4
        taken.append(process.memory_info().rss)
    assert taken[-1] < 1.05 * taken[11]
