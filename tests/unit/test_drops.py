"""Drops of single directions, layer by layer, on made-up counts whose answer is known."""

import numpy as np
import pytest

from stateatlas import drops


@pytest.mark.parametrize(("blocks", "sites"), [(1, []), (2, [2]), (4, [2, 3]), (12, [4, 5, 6, 7, 8, 9])])
def test_the_middle_half_of_the_depth(blocks, sites):
    assert drops.middle(blocks) == sites


def found(clean, edited, probes, length=10):
    rows = drops.measure(np.array(clean), {k: np.array(v) for k, v in edited.items()}, probes, length, 500, RNG())
    return {(site, metric): (value, low, high) for site, metric, value, low, high in rows}


def RNG():
    return np.random.default_rng(0)


CLEAN = [10] * 8
EDITED = {1: [10] * 8, 2: [2] * 4 + [6] * 4, 3: [9] * 4 + [1] * 4, 4: [9] * 8}


def test_sites_are_chosen_on_the_first_half_and_measured_on_the_second():
    rows = found(CLEAN, EDITED, {1: 0.6, 2: 0.7, 3: 0.8, 4: 1.0})
    assert [rows[site, "drop"][0] for site in (1, 2, 3, 4)] == pytest.approx([0, 0.4, 0.9, 0.1])
    assert rows[-1, "final_site_drop"][0] == pytest.approx(0.1)
    assert rows[-1, "middle_drop"][0] == pytest.approx(0.4), "L1 is hurt most on the choosing half"
    assert rows[-1, "middle_drop_minus_3_best_probe"][0] == pytest.approx(0.4 - 3 * 0.1)


def test_a_best_probe_layer_that_gains_takes_nothing_off():
    edited = EDITED | {4: [11] * 8}  # more right than before: a drop below 0
    rows = found(CLEAN, edited, {1: 0.6, 2: 0.7, 3: 0.8, 4: 1.0})
    assert rows[-1, "middle_drop_minus_3_best_probe"] == rows[-1, "middle_drop"]


def test_intervals_resample_the_second_half():
    edited = {1: [10] * 4 + [0, 0, 10, 10]}
    value, low, high = found(CLEAN, edited, {1: 1.0})[1, "drop"]
    assert value == pytest.approx(0.5) and low < 0.25 and high > 0.75
    exact = found(CLEAN, {1: [0] * 4 + [7] * 4}, {1: 1.0})[1, "drop"]
    assert exact == pytest.approx((0.3, 0.3, 0.3))
