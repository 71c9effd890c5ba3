"""Time the grid of study C against one full forward pass per cell and window, with equal numbers.

    python bench/grid.py results/laptop --models mini-mamba mini-mamba2 mini-gpt-neox

Models, windows and cells are those of a finished run with study C: a sample of its planned cells of every span. Ours is
`stateatlas.spans.Windows` as a job uses it, the time to make it included. The other side runs every window by itself:
under `all` from its first token on with the intervention in force; under `from_boundary` the clean tokens before the
boundary, then the rest from what the blocks know of them. Sides take turns; a ratio is the median over turns. The other
side may take a subset of the cells and is then scaled to all.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the results of a run, such as results/laptop")
    parser.add_argument("--models", nargs="+", default=["mini-mamba2"], help="default: mini-mamba2")
    parser.add_argument("--corpus", default="reference", help="default: reference")
    parser.add_argument("--context", type=int, default=256, help="tokens a window (default 256)")
    parser.add_argument("--windows", type=int, default=60, help="windows (default 60)")
    parser.add_argument("--cells", type=int, default=60, help="cells a span (default 60)")
    parser.add_argument("--others", type=int, default=6, help="of these, run by the other side (default 6)")
    parser.add_argument("--draws", type=int, default=10, help="draws of control sets (default 10)")
    parser.add_argument("--turns", type=int, default=3, help="turns that are timed (default 3)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch and of the kernels (default 1)")
    return parser.parse_args()


class Grid:
    """A model of the run with windows around BOS, and a sample of the cells of every span."""

    def __init__(self, name: str, options: argparse.Namespace):
        import numpy as np

        from stateatlas import adapters, annotation, complements, unit_cells, units
        from stateatlas.activity import Activity
        from stateatlas.corpora import file
        from stateatlas.effects_job import cells_of

        weights = options.results / "language" / name / "weights" / "trained"
        corpus = options.results / "corpora" / options.corpus / "corpus.parquet"
        place = options.results / "sink" / "activity" / name / options.corpus / "activity" / "trained.safetensors"
        if not place.exists():
            sys.exit(f"{place} is missing; make it with ./reproduce sink")
        self.model, activity, rng = adapters.load(weights), Activity.load(place), np.random.default_rng(0)
        self.kind, self.means = units.family(self.model.family), activity.means()
        documents = annotation.annotate(annotation.tokenizer(weights), file.read(corpus, "test", "text"))
        self.tokens, _ = annotation.windows(documents, "bos", options.context, options.windows, rng)
        self.boundary = options.context - 1 - annotation.MEASURED
        controlled = ["gate_zero", "output_zero", "delta_zero"]
        cfg = {"family": self.model.family, "draws": options.draws, "controlled": controlled}
        chosen, planned = cells_of(cfg, "bos", activity, rng)
        self.cells = {}
        for span in unit_cells.SPANS:
            known = [cell for cell in planned if cell.span == span and cell.status == "planned"]
            sample = rng.choice(len(known), min(options.cells, len(known)), replace=False)
            self.cells[span] = [
                (known[i].intervention, complements.as_units(chosen[known[i].set, known[i].draw])) for i in sample
            ]

    def ours(self, span: str) -> list:
        """Return the losses of every cell, (windows,) each."""
        from stateatlas.spans import Windows

        windows = Windows(self.model, self.tokens, self.boundary, self.means)
        return [windows.loss(intervention, members, span) for intervention, members in self.cells[span]]

    def theirs(self, span: str, number: int) -> list:
        """Return the same for the first cells, window by window."""
        import numpy as np

        return [np.array([self._loss(row, *cell, span) for row in self.tokens]) for cell in self.cells[span][:number]]

    def _loss(self, row, intervention: str, members: dict, span: str) -> float:
        import torch

        from stateatlas import units

        tokens = torch.from_numpy(row[None])
        edited = units.intervened(self.model, self.model.family, intervention, members, self.means)
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
    from stateatlas.loop import use_device

    use_device("cpu", options.threads)
    kernels.use("compiled" if compiler.available() else "torch")
    sizes = f"{options.windows} windows of {options.context} tokens, at most {options.cells} cells a span"
    print(f"{sizes}, torch {torch.__version__}")
    for name in options.models:
        grid = Grid(name, options)
        for span, cells in grid.cells.items():
            grid.ours(span)  # once, to warm up
            ratios, apart = [], 0.0
            for _ in range(options.turns):
                own, found = timed(grid.ours, span)
                other, expected = timed(grid.theirs, span, options.others)
                ratios.append(other * len(cells) / options.others / own)
                apart = max(apart, np.abs(np.array(found[: options.others]) - expected).max())
            speed = f"{statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})"
            each = f"{1e3 * own / len(cells):.0f} ms a cell"
            print(f"{name}, {span}: {each}, {speed}; losses at most {apart:.1e} nats apart", flush=True)


if __name__ == "__main__":
    main()
