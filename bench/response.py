"""Time what study B does to a GPT-2 of random weights, in float64, against how it is commonly done.

    python bench/response.py --widths 64 128 256 --layers 4 12

sensitivity: every site and token in one backward pass, in units of a forward pass.
green: the Green block from a token to a token, against central differences one direction at a time. row: that from all
tokens of a site to a token, as study B takes it; of the differences those from one token are timed and counted for all.
patching: every site and token patched once, run on from recorded states (recording included), against whole forwards
with as many patches in a batch.

Sides take turns, a ratio is the median over the turns of the other side's time to ours in the same turn. Differences
are relative to the largest number of the other side.
"""

import argparse
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", nargs="+", type=int, default=[64, 128, 256, 768], help="of Green blocks")
    parser.add_argument("--layers", nargs="+", type=int, default=[4, 12], help="blocks, of patching (default 4 12)")
    parser.add_argument("--width", type=int, default=128, help="of sensitivity and patching (default 128)")
    parser.add_argument("--length", type=int, default=20, help="tokens a prompt (default 20)")
    parser.add_argument("--vocabulary", type=int, default=1024, help="tokens (default 1024)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default 1)")
    parser.add_argument("--turns", type=int, default=3, help="turns that are timed (default 3)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: time of this process alone")
    return parser.parse_args()


class Prompt:
    """A model of random weights with one prompt."""

    def __init__(self, width: int, layers: int, options: argparse.Namespace):
        import torch

        from stateatlas import adapters, prompted
        from stateatlas.response import Observable

        sizes = {"n_embd": width, "n_layer": layers, "n_head": max(1, width // 32), "vocab_size": options.vocabulary}
        torch.manual_seed(0)
        model = adapters.build({"model_type": "gpt2"} | sizes, Path("gpt2"))
        model.hub.set_attn_implementation("math")
        self.model = prompted.fused(model.eval().requires_grad_(False).double())
        self.tokens = torch.randint(options.vocabulary, (options.length,))
        self.observable = Observable(3, 5)
        self.vectors = torch.randn(self.model.sites, options.length, width, dtype=torch.float64)

    def forward(self):
        """A forward pass, up to the answer."""
        import torch

        from stateatlas.response import answers

        with torch.no_grad():
            return answers(self.model, self.model.states(self.tokens[None])[-1])

    def sensitivity(self):
        from stateatlas.response import sensitivity

        return sensitivity(self.model, self.tokens, self.observable)[1]

    def green(self):
        """The block from the middle token of the embedding to the last one behind the last block."""
        from stateatlas.response import Place, green

        return green(self.model, self.clean(), self.place(Place, 0), self.place(Place, self.model.depth))

    def row(self):
        """The same from all tokens of the embedding; the part from the middle token is returned."""
        from stateatlas.response import Place, green

        every = Place(0, tuple(range(len(self.tokens))))
        block = green(self.model, self.clean(), every, self.place(Place, self.model.depth))
        return block.unflatten(1, (len(self.tokens), -1))[:, len(self.tokens) // 2]

    def place(self, kind, site: int):
        return kind(site, (len(self.tokens) // 2 if site == 0 else len(self.tokens) - 1,))

    def differences(self, step: float = 1e-5):
        """The same by central differences, one direction at a time."""
        import torch

        clean, middle = self.clean()[0], len(self.tokens) // 2
        columns = []
        with torch.no_grad():
            for k in range(self.model.width):
                ends = []
                for sign in (1, -1):
                    stream = clean.clone()
                    stream[0, middle, k] += sign * step
                    for index in range(self.model.depth):
                        stream = self.model.block(index, stream)
                    ends.append(stream[0, -1])
                columns.append((ends[0] - ends[1]) / (2 * step))
        return torch.stack(columns, dim=1)

    def clean(self):
        import torch

        with torch.no_grad():
            return self.model.states(self.tokens[None])

    def patched(self):
        """y with every place patched once, run on from states that are recorded first."""
        from stateatlas.response import Source, measured

        cases = [(Source(site, x, self.vectors[site, x]),) for site, x in self.places()]
        return measured(self.model, self.clean(), cases, self.observable)

    def places(self) -> list[tuple[int, int]]:
        return [(site, x) for site in range(self.model.sites) for x in range(len(self.tokens))]

    def forwards(self):
        """The same, every patch inside a forward from the tokens on."""
        import torch

        from stateatlas.response import CHUNK, answers

        together, places, found = max(1, CHUNK // len(self.tokens)), self.places(), []
        with torch.no_grad():
            for start in range(0, len(places), together):
                part = places[start : start + together]
                stream = self.model.embed(self.tokens.repeat(len(part), 1))
                for site in range(self.model.sites):
                    stream = stream if site == 0 else self.model.block(site - 1, stream)
                    rows = [row for row, (here, _) in enumerate(part) if here == site]
                    tokens = [part[row][1] for row in rows]
                    if rows:
                        stream = stream.index_put(
                            (torch.tensor(rows), torch.tensor(tokens)), self.vectors[site, tokens], accumulate=True
                        )
                found.append(self.observable(answers(self.model, stream)))
        return torch.cat(found)


def over(side, times: int = 20):
    """Run a short side so many times."""
    for _ in range(times):
        found = side()
    return found


def compared(ours, other, turns: int, clock, times_over: int = 1) -> tuple[float, float, float, float]:
    """Return seconds of both sides, the ratio of the other to ours, and the relative difference of their results.

    times_over: how often the other side would have to run for what ours does at once.
    """
    times, ratios, apart = ([], []), [], float("nan")
    for _ in range(turns):
        found = []
        for side, taken in zip((ours, other), times, strict=True):
            started = clock()
            found.append(side())
            taken.append((clock() - started) * (times_over if side is other else 1))
        ratios.append(times[1][-1] / times[0][-1])
        if found[0].shape == found[1].shape:
            apart = ((found[0] - found[1]).abs().max() / found[1].abs().max()).item()
    return *map(statistics.median, times), statistics.median(ratios), apart


def main() -> None:
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
    import torch

    torch.set_num_threads(options.threads)
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    print(
        f"length {options.length}, float64, {options.threads} threads, torch {torch.__version__}, {options.clock} clock"
    )
    print(f"{'':12} {'width':>6} {'blocks':>6} {'ours, s':>9} {'other, s':>9} {'ratio':>7} {'difference':>11}")

    def told(name: str, width: int, layers: int, row: tuple) -> None:
        ours, other, ratio, apart = row
        print(f"{name:12} {width:6} {layers:6} {ours:9.4f} {other:9.4f} {ratio:7.2f} {apart:11.1e}", flush=True)

    for layers in options.layers:
        prompt = Prompt(options.width, layers, options)
        prompt.sensitivity(), prompt.forward()
        repeated = [partial(over, side) for side in (prompt.forward, prompt.sensitivity)]
        told("sensitivity", options.width, layers, compared(*repeated, options.turns, clock))
    for width in options.widths:
        prompt = Prompt(width, 2, options)
        prompt.green()
        told("green", width, 2, compared(prompt.green, prompt.differences, options.turns, clock))
        told("row", width, 2, compared(prompt.row, prompt.differences, options.turns, clock, options.length))
    for layers in options.layers:
        prompt = Prompt(options.width, layers, options)
        prompt.patched()
        told("patching", options.width, layers, compared(prompt.patched, prompt.forwards, options.turns, clock))


if __name__ == "__main__":
    main()
