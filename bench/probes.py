"""Time refitted probes against scikit-learn's logistic regression as it is commonly written, and compare accuracies.

    python bench/probes.py results/laptop --others 40

The states are those of a finished run's trained models, cells and sites taking turns. A refitted probe is
`stateatlas.probes.fit` on states with a random direction taken out, as in `stateatlas.refit`, on one thread as in a
job. The other side is `LogisticRegression(max_iter=...)` on the same states as they are, with default threads; it may
take a subset of the probes and is then scaled to all. Accuracies on test sequences are held against the same
regression taken to a gradient of 1e-8 by Newton's method.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the results of a run, such as results/laptop")
    parser.add_argument("--probes", type=int, default=200, help="probes that ours fits (default 200)")
    parser.add_argument("--others", type=int, default=40, help="of these, fitted by the other side (default 40)")
    parser.add_argument("--converged", type=int, default=40, help="of these, also run to convergence (default 40)")
    parser.add_argument("--max-iter", type=int, default=10_000, help="of the other side (default 10000)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: time of this process alone")
    return parser.parse_args()


class Data:
    """States of a run's trained models at every block, with directions to take out of them."""

    def __init__(self, options: argparse.Namespace):
        import numpy as np

        study = options.results / "encoding"
        folders = sorted(study.glob("states/*/*/seed*/states/trained"))
        if not folders:
            sys.exit(f"{study}: no recorded states; make them with ./reproduce measurements")
        self.places = [(folder, int(path.stem.split("site")[1])) for folder in folders for path in blocks(folder)]
        np.random.default_rng(0).shuffle(self.places)
        self.study = study

    def job(self, index: int) -> tuple:
        """Return the states to fit and to test a probe on, and their labels."""
        import numpy as np

        from stateatlas import states
        from stateatlas.sequences import Sequences
        from stateatlas.subspaces import random_subspaces

        folder, site = self.places[index % len(self.places)]
        fitted, tested = (np.array(states.load(folder, split, site)) for split in ("fit", "test"))
        sequences = Sequences(self.study / "sequences" / folder.parts[-5] / "sequences.safetensors")
        labels = [sequences.get(split, fitted.shape[1], "state") for split in ("fit", "test")]
        [removed] = random_subspaces(np.random.default_rng(index), fitted.shape[-1], [1], 1)
        return removed.project_out(fitted), removed.project_out(tested), *labels


def blocks(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("test.site*.npy")) if "site0" not in path.name]


def flat(states):
    return states.reshape(-1, states.shape[-1])


def ours(data: Data, count: int, clock) -> tuple[list[float], list[float]]:
    """Return the accuracies of the refitted probes and the seconds that each took."""
    from threadpoolctl import threadpool_limits

    from stateatlas import probes

    found, taken = [], []
    for index in range(count):
        fitted, tested, fit_labels, labels = data.job(index)
        with threadpool_limits(1):
            started = clock()
            probe = probes.fit(fitted, fit_labels)
            taken.append(clock() - started)
        found.append(probe.right(tested, labels).sum() / labels.size)
    return found, taken


def theirs(data: Data, count: int, clock, max_iter: int) -> tuple[list[float], list[float], int]:
    """Return the same for scikit-learn's regression as it is commonly written, and how many gave a warning."""
    from sklearn.linear_model import LogisticRegression

    found, taken, warned = [], [], 0
    for index in range(count):
        fitted, tested, fit_labels, labels = data.job(index)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            started = clock()
            regression = LogisticRegression(max_iter=max_iter).fit(flat(fitted), fit_labels.ravel())
            taken.append(clock() - started)
        warned += bool(said)
        found.append(regression.score(flat(tested), labels.ravel()))
    return found, taken, warned


def converged(data: Data, count: int) -> list[float]:
    """Return the accuracies of our regression by Newton's method, which gets to a gradient of 1e-8 in few steps."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = []
    for index in range(count):
        fitted, tested, fit_labels, labels = data.job(index)
        regression = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-8))
        regression.fit(flat(fitted), fit_labels.ravel())
        found.append(regression.score(flat(tested), labels.ravel()))
    return found


def main() -> None:
    options = arguments()
    import numpy as np
    import sklearn
    from threadpoolctl import threadpool_info

    clock = time.perf_counter if options.clock == "wall" else time.process_time
    data = Data(options)
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    print(
        f"{len(data.places)} cells x sites of {options.results}, scikit-learn {sklearn.__version__}, "
        f"{options.clock} clock; ours 1 thread, theirs {threads}"
    )
    own, own_taken = ours(data, options.probes, clock)
    other, other_taken, warned = theirs(data, options.others, clock, options.max_iter)
    subset = sum(own_taken[: options.others])
    print(
        f"ours:   {options.probes} probes in {sum(own_taken):.1f} s; the first {options.others} in {subset:.1f} s",
        flush=True,
    )
    scaled = sum(other_taken) * options.probes / options.others
    print(f"theirs: the first {options.others} in {sum(other_taken):.1f} s, all would take {scaled:.1f} s", end="")
    print(f"; {warned} did not converge" if warned else "")
    print(f"ratio on the first {options.others}: {sum(other_taken) / subset:.2f}")
    apart = 100 * np.abs(np.array(own[: options.converged]) - converged(data, options.converged))
    print(f"accuracy, ours - converged: at most {apart.max():.3f} points on the first {options.converged}")
    apart = 100 * np.abs(np.array(own[: options.others]) - other)
    print(f"accuracy, ours - theirs: at most {apart.max():.3f} points; ours {100 * np.mean(own):.2f} % in the mean")


if __name__ == "__main__":
    main()
