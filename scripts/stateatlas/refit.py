"""The refitted probe (protocol A, the revision's control): is a subspace *needed*, or only where the probe looked?"""

from collections.abc import Iterator

import numpy as np

from stateatlas.probes import Probe, fit
from stateatlas.subspaces import probe_subspaces, random_subspaces


def measure(
    probe: Probe,
    fit_set: tuple[np.ndarray, np.ndarray],
    test_set: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
) -> Iterator[tuple[dict, np.ndarray]]:
    """Yield (identity, right tokens per sequence) of the probe before and after a subspace is taken out.

    fit_set, test_set: states (sequences, length, width) and labels (sequences, length). The subspaces are the top
    direction and the row space of `probe`, and one random subspace of either dimension. `accuracy_ablated` is the
    same probe after the projection, `accuracy_refitted` a probe fitted on projected states.
    """
    (fit_states, fit_labels), (states, labels) = fit_set, test_set
    own = probe_subspaces(probe.weights)
    sizes = sorted({subspace.k for subspace in own})
    for subspace in [*own, *random_subspaces(rng, states.shape[-1], sizes, 1)]:
        projected = subspace.project_out(states)
        refitted = fit(subspace.project_out(fit_states), fit_labels)
        rights = {
            "accuracy_original": probe.right(states, labels),
            "accuracy_ablated": probe.right(projected, labels),
            "accuracy_refitted": refitted.right(projected, labels),
        }
        for metric, right in rights.items():
            row = {"subspace": subspace.name, "k": subspace.k, "draw": subspace.draw, "metric": metric}
            yield row | {"tokens": labels.shape[1]}, right
