"""Time a sweep of ablations that runs on from recorded states, against the same edits inside full forwards.

    python bench/ablation.py --architectures transformer mamba --layers 4 8 12

A sweep is every site times every edit. Both sides run as many edits in one batch as `stateatlas.ablation` does; ours
also pays for recording the states, once. Sides take turns, a ratio is the median over the turns of the full forwards'
time to ours in the same turn. Right tokens are counted on both sides and have to be equal.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", nargs="+", default=["transformer"], help="default: transformer")
    parser.add_argument("--layers", nargs="+", type=int, default=[4, 8, 12], help="blocks (default 4 8 12)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch and of the kernels (default 1)")
    parser.add_argument("--width", type=int, default=128, help="width of the stream (default 128)")
    parser.add_argument("--length", type=int, default=40, help="tokens a sequence (default 40)")
    parser.add_argument("--sequences", type=int, default=64, help="test sequences (default 64)")
    parser.add_argument("--draws", type=int, default=4, help="random subspaces of each dimension (default 4)")
    parser.add_argument("--turns", type=int, default=3, help="turns that are timed (default 3)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: time of this process alone")
    return parser.parse_args()


class Sweep:
    """One untrained model with its test sequences and the edits of a sweep."""

    def __init__(self, architecture: str, layers: int, options: argparse.Namespace):
        import numpy as np
        import torch

        from stateatlas import ablation, subspaces
        from stateatlas.residual import ResidualModel, matched_shape

        rng = np.random.default_rng(0)
        self.model = ResidualModel(matched_shape(architecture, options.width, layers, 6, 6)).eval()
        self.tokens = torch.from_numpy(rng.integers(0, 6, (options.sequences, options.length)))
        self.labels = torch.from_numpy(rng.integers(0, 6, (options.sequences, options.length)))
        self.mean = torch.zeros(options.width)
        taken = list(subspaces.random_subspaces(rng, options.width, [1, 5], options.draws))
        self.edits = [(method, subspace) for subspace in taken for method in ablation.METHODS]

    def resumed(self) -> list:
        """Return the right tokens of every edit, by site, running on from states that are recorded first."""
        import torch

        from stateatlas.ablation import Site

        with torch.inference_mode():
            streams = self.model.states(self.tokens)
        found = []
        for site, stream in enumerate(streams):
            place = Site(self.model, site, stream.numpy(), self.labels.numpy(), self.mean.numpy())
            found.append([right for _, right in place.right(self.edits)])
        return found

    def forwards(self) -> list:
        """Return the same, with every edit inside a forward from the tokens on."""
        import torch

        from stateatlas.ablation import CHUNK

        together = max(1, CHUNK // len(self.tokens))
        groups = [self.edits[i : i + together] for i in range(0, len(self.edits), together)]
        with torch.inference_mode():
            return [
                [right for group in groups for right in self._forward(group, site)] for site in range(self.model.sites)
            ]

    def _forward(self, group: list, site: int):
        import torch

        from stateatlas.ablation import edit

        stream = self.model.embed(self.tokens.repeat(len(group), 1))
        for index in range(site):
            stream = self.model.block(index, stream)
        parts = []
        for (method, subspace), part in zip(group, stream.chunk(len(group)), strict=True):
            basis = torch.tensor(subspace.basis, dtype=torch.float32)
            parts.append(edit(method, basis, self.mean, part.roll(len(part) // 2, dims=0))(part))
        logits = self.model.resume(torch.cat(parts), site)
        return (logits.argmax(-1).unflatten(0, (len(group), -1)) == self.labels).sum(-1).numpy()


def main() -> None:
    options = arguments()
    # The thread libraries read this when they are loaded.
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
    import numpy as np
    import torch

    from stateatlas import blocks, compiler

    backend = "compiled" if compiler.available() else "torch"
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    print(
        f"{options.sequences} sequences, length {options.length}, width {options.width}, {options.threads} threads, "
        f"torch {torch.__version__}, {options.clock} clock; seconds a sweep, medians of {options.turns} turns"
    )
    print(f"{'':12} {'blocks':>6} {'edits':>6} {'resumed':>9} {'forwards':>9} {'ratio':>6} {'largest difference':>19}")
    for architecture in options.architectures:
        blocks.use_backend(architecture, backend)
        for layers in options.layers:
            sweep = Sweep(architecture, layers, options)
            times, ratios, apart = {"resumed": [], "forwards": []}, [], 0
            for _ in range(options.turns):
                found = {}
                for side, taken in times.items():
                    started = clock()
                    found[side] = np.array(getattr(sweep, side)())
                    taken.append(clock() - started)
                ratios.append(times["forwards"][-1] / times["resumed"][-1])
                apart = max(apart, int(np.abs(found["resumed"] - found["forwards"]).max()))
            edits = len(sweep.edits) * sweep.model.sites
            ours, theirs = (statistics.median(taken) for taken in times.values())
            print(
                f"{architecture:12} {layers:6} {edits:6} {ours:9.2f} {theirs:9.2f} {statistics.median(ratios):6.2f} "
                f"{apart:12} tokens"
            )


if __name__ == "__main__":
    main()
