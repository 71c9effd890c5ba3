"""Time the grid of study C against one full forward pass per cell and window, with equal numbers.

    python bench/grid.py --families mamba mamba2 gpt_neox

The model is a mini of the config's size with new weights, the windows are random tokens, a cell silences random units
(`gate_zero`; attention heads `output_zero`). Ours is `stateatlas.spans.Windows` as a job uses it, the time to make it
included. The other side runs every window by itself from its first token: under `all` with the intervention on, under
`from_boundary` the clean tokens before the boundary first and the rest from what the blocks know of them. Sides take
turns; a ratio is the median over turns. The other side may take a subset of the cells and is then scaled to all.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=["mamba", "mamba2", "gpt_neox"], help="default: all three")
    parser.add_argument("--context", type=int, default=256, help="tokens a window (default 256)")
    parser.add_argument("--windows", type=int, default=60, help="windows (default 60)")
    parser.add_argument("--cells", type=int, default=40, help="cells a span (default 40)")
    parser.add_argument("--others", type=int, default=4, help="of these, run by the other side (default 4)")
    parser.add_argument("--units", type=int, default=6, help="units a cell (default 6)")
    parser.add_argument("--turns", type=int, default=3, help="turns that are timed (default 3)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch and of the kernels (default 1)")
    return parser.parse_args()


class Grid:
    """A mini with windows and the units of every cell."""

    def __init__(self, family: str, options: argparse.Namespace):
        import numpy as np

        from stateatlas import annotation, minis, units

        heads = 16 if family == "gpt_neox" else 0
        self.model = minis.build(minis.Mini(family, 128, 4, heads, 1024), seed=0).eval()
        self.kind = units.family(family)
        self.intervention = "output_zero" if family == "gpt_neox" else "gate_zero"
        self.boundary = options.context - 1 - annotation.MEASURED
        rng = np.random.default_rng(0)
        self.tokens = rng.integers(1, 1024, (options.windows, options.context))
        number = self.kind.number(self.kind.mixer(self.model.blocks[0]))
        self.cells = [self._units(rng, number, options.units) for _ in range(options.cells)]

    def _units(self, rng, number: int, size: int) -> dict[int, list[int]]:
        chosen: dict[int, list[int]] = {}
        for place in rng.choice(self.model.depth * number, size, replace=False):
            chosen.setdefault(int(place) // number, []).append(int(place) % number)
        return chosen

    def ours(self, span: str) -> list:
        """Return the losses of every cell, (windows,) each."""
        from stateatlas.spans import Windows

        windows = Windows(self.model, self.tokens, self.boundary, {})
        return [windows.loss(self.intervention, cell, span) for cell in self.cells]

    def theirs(self, span: str, number: int) -> list:
        """Return the same for the first cells, window by window."""
        import numpy as np

        return [np.array([self._loss(row, cell, span) for row in self.tokens]) for cell in self.cells[:number]]

    def _loss(self, row, cell: dict, span: str) -> float:
        import torch

        from stateatlas import units

        tokens = torch.from_numpy(row[None])
        edited = units.intervened(self.model, self.model.family, self.intervention, cell, {})
        with torch.inference_mode():
            if span == "all":
                with edited:
                    logits = self.model(tokens)[:, self.boundary :]
            else:
                before = self.model.states(tokens[:, : self.boundary])
                known = [self.kind.remember(self.model, i, before[i]) for i in range(self.model.depth)]
                stream = self._embedded(tokens)
                with edited:
                    for index, memory in enumerate(known):
                        stream = self.kind.advance(self.model, index, stream, memory)
                    logits = self.model.read(stream)
            chances = logits[:, :-1].log_softmax(-1)
            return -chances.gather(-1, tokens[:, self.boundary + 1 :, None]).mean().item()

    def _embedded(self, tokens):
        return self.model.embed(tokens)[:, self.boundary :]


def timed(call, *given) -> tuple[float, list]:
    started = time.perf_counter()
    found = call(*given)
    return time.perf_counter() - started, found


def main() -> None:
    options = arguments()
    import numpy as np
    import torch

    from stateatlas import compiler, kernels

    torch.set_num_threads(options.threads)
    kernels.use("compiled" if compiler.available() else "torch")
    sizes = f"{options.windows} windows of {options.context} tokens, {options.cells} cells a span"
    print(f"{sizes}, torch {torch.__version__}")
    for family in options.families:
        grid = Grid(family, options)
        for span in ("all", "from_boundary"):
            grid.ours(span)  # once, to warm up
            ratios, apart = [], 0.0
            for _ in range(options.turns):
                own, found = timed(grid.ours, span)
                other, expected = timed(grid.theirs, span, options.others)
                ratios.append(other * options.cells / options.others / own)
                apart = max(apart, np.abs(np.array(found[: options.others]) - expected).max())
            speed = f"{statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})"
            each = f"{1e3 * own / options.cells:.0f} ms a cell"
            print(f"{family}, {span}: {each}, {speed}; losses at most {apart:.1e} nats apart", flush=True)


if __name__ == "__main__":
    main()
