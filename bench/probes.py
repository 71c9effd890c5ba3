"""Time refitted probes against scikit-learn's logistic regression as it is commonly written, and compare accuracies.

    python bench/probes.py --others 20

The states are those of a small Transformer that is first trained on Dyck for a few hundred steps. A refitted probe is
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
    parser.add_argument("--probes", type=int, default=200, help="probes that ours fits (default 200)")
    parser.add_argument("--others", type=int, default=20, help="of these, fitted by the other side (default 20)")
    parser.add_argument("--converged", type=int, default=10, help="of these, also run to convergence (default 10)")
    parser.add_argument("--width", type=int, default=32, help="width of the stream (default 32, as at laptop)")
    parser.add_argument("--length", type=int, default=16, help="tokens a sequence (default 16, as at laptop)")
    parser.add_argument("--sequences", type=int, default=256, help="sequences to fit on and to test on (default 256)")
    parser.add_argument("--layers", type=int, default=4, help="blocks (default 4)")
    parser.add_argument("--steps", type=int, default=300, help="training steps (default 300)")
    parser.add_argument("--max-iter", type=int, default=10_000, help="of the other side (default 10000)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: time of this process alone")
    return parser.parse_args()


class Data:
    """States at every site of a small trained model, with directions to take out of them."""

    def __init__(self, options: argparse.Namespace):
        import numpy as np
        import torch

        from stateatlas.residual import ResidualModel, matched_shape
        from stateatlas.subspaces import random_subspaces
        from stateatlas.tasks.dyck import Task

        torch.manual_seed(0)
        rng, task, n = np.random.default_rng(0), Task(options.length), options.sequences
        shape = matched_shape("transformer", options.width, options.layers, task.vocabulary, task.targets["state"])
        model = ResidualModel(shape)
        for table in (model.embedding, model.position):
            torch.nn.init.normal_(table.weight, std=0.1)
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(options.steps):
            tokens = task.sample(rng, 64, options.length)
            labels = torch.from_numpy(task.label(tokens)["state"])
            logits = model(torch.from_numpy(tokens))
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        print(f"trained for {options.steps} steps to a loss of {loss.item():.3f}")
        tokens = task.sample(rng, 2 * n, options.length)
        labels = task.label(tokens)["state"]
        with torch.inference_mode():
            streams = [stream.numpy() for stream in model.states(torch.from_numpy(tokens))]
        self.fit_labels, self.labels = labels[:n], labels[n:]
        self.fitted, self.tested = [s[:n] for s in streams], [s[n:] for s in streams]
        self.removed = list(random_subspaces(rng, options.width, [1], options.probes))

    def job(self, index: int) -> tuple:
        """Return the states to fit and to test a probe on. The sites take turns, so that a subset has all."""
        site, subspace = index % len(self.fitted), self.removed[index]
        return subspace.project_out(self.fitted[site]), subspace.project_out(self.tested[site])


def flat(states):
    return states.reshape(-1, states.shape[-1])


def ours(data: Data, count: int, clock) -> tuple[list[float], list[float]]:
    """Return the accuracies of the refitted probes and the seconds that each took."""
    from threadpoolctl import threadpool_limits

    from stateatlas import probes

    found, taken = [], []
    for index in range(count):
        fitted, tested = data.job(index)
        with threadpool_limits(1):
            started = clock()
            probe = probes.fit(fitted, data.fit_labels)
            taken.append(clock() - started)
        found.append(probe.right(tested, data.labels).sum() / data.labels.size)
    return found, taken


def theirs(data: Data, count: int, clock, max_iter: int) -> tuple[list[float], list[float], int]:
    """Return the same for scikit-learn's regression as it is commonly written, and how many gave a warning."""
    from sklearn.linear_model import LogisticRegression

    found, taken, warned = [], [], 0
    for index in range(count):
        fitted, tested = data.job(index)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            started = clock()
            regression = LogisticRegression(max_iter=max_iter).fit(flat(fitted), data.fit_labels.ravel())
            taken.append(clock() - started)
        warned += bool(said)
        found.append(regression.score(flat(tested), data.labels.ravel()))
    return found, taken, warned


def converged(data: Data, count: int) -> list[float]:
    """Return the accuracies of our regression by Newton's method, which gets to a gradient of 1e-8 in few steps."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = []
    for index in range(count):
        fitted, tested = data.job(index)
        regression = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-8))
        regression.fit(flat(fitted), data.fit_labels.ravel())
        found.append(regression.score(flat(tested), data.labels.ravel()))
    return found


def main() -> None:
    options = arguments()
    import numpy as np
    import sklearn
    import torch
    from threadpoolctl import threadpool_info

    clock = time.perf_counter if options.clock == "wall" else time.process_time
    torch.set_num_threads(1)  # a small model's steps are too short to be shared; numpy keeps its own threads
    data = Data(options)
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    print(
        f"{options.sequences} x {options.length} tokens, width {options.width}, {options.layers} layers, "
        f"scikit-learn {sklearn.__version__}, {options.clock} clock; ours 1 thread, theirs {threads}"
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
