"""Compare what a run measures in float32 with the same in float64: how far rounding moves a number.

    python bench/precision.py results/laptop

Formal models: the recovery of every patch (site, direction, read-out) on pairs of the task. Language models: the loss
of every token of windows of held-out text, and the difference between the two most likely next tokens' logits, which
no shift of all logits changes. Printed: the largest difference over all numbers, beside the largest number.
Recurrences are in plain PyTorch on both sides.
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the results of a run, such as results/laptop")
    parser.add_argument("--pairs", type=int, default=64, help="pairs of strings a task (default 64)")
    parser.add_argument("--string", type=int, default=12, help="tokens a string (default 12)")
    parser.add_argument("--windows", type=int, default=16, help="windows of text a language model (default 16)")
    parser.add_argument("--length", type=int, default=128, help="tokens a window (default 128)")
    return parser.parse_args()


class Pairs:
    """Pairs of strings of a task, to be read like those of a run."""

    def __init__(self, task: str, count: int, length: int):
        import numpy as np

        from stateatlas import sequences, tasks

        kind = tasks.load(task, length)
        drawn = sequences.draw_pairs(kind, np.random.default_rng(0), count, length)
        self._arrays = {
            name: {"tokens": tokens, **kind.label(tokens)}
            for name, tokens in zip(("clean", "corrupt"), drawn, strict=True)
        }

    def get(self, name: str, _: int, target: str):
        return self._arrays[name][target]


def of_patches(folder: Path, pairs: Pairs, length: int) -> list:
    """Return the recoveries of a formal model in float32 and in float64, (sites x directions x read-outs,) each."""
    import numpy as np

    from stateatlas import patching, weights

    model, found = weights.load(folder), []
    for dtype in ("float", "double"):
        measured = patching.measure(getattr(model, dtype)(), pairs, length)
        found.append(np.array([recovered.sum() / whole.sum() for _, recovered, whole in measured]))
    return found


def of_text(folder: Path, tokens: Path, windows: int, length: int) -> dict[str, list]:
    """Return, by name, what a language model says of held-out text in float32 and in float64."""
    import numpy as np
    import torch

    from stateatlas import adapters, packing

    rows = packing.windows(packing.Documents(tokens).get("test"), length, np.random.default_rng(0))[:windows]
    rows = torch.from_numpy(rows.astype("int64"))
    model = adapters.load(folder, attention="math")
    found = {"loss of a token (nats)": [], "logit difference": []}
    with torch.inference_mode():
        for dtype in (torch.float32, torch.float64):
            logits = model.to(dtype)(rows).double()[:, :-1]
            losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
            first, second = logits.topk(2).values.unbind(-1)
            found["loss of a token (nats)"].append(losses.numpy())
            found["logit difference"].append((first - second).flatten().numpy())
    return found


def main() -> None:
    options = arguments()
    import numpy as np
    import torch

    from stateatlas import adapters, blocks

    torch.set_num_threads(1)
    for name in ("mamba", "mamba2"):
        blocks.use_backend(name, "torch")
        adapters.use_backend(name, "torch")
    print(f"{'':34} {'measure':24} {'numbers':>8} {'largest':>9} {'largest difference':>19}")

    def say(name: str, measure: str, pair: list) -> None:
        single, double = map(np.asarray, pair)
        apart = np.abs(single - double).max()
        print(f"{name:34} {measure:24} {double.size:8} {np.abs(double).max():9.3g} {apart:19.1e}", flush=True)

    for task in ("parity", "s3", "dyck"):
        pairs = Pairs(task, options.pairs, options.string)
        for folder in sorted(options.results.glob(f"encoding/models/{task}/*/seed*/weights/trained")):
            if "fine_tuning" not in (folder / "config.json").read_text():
                name = " ".join(folder.parts[-5:-2])
                say(name, "recovery of a patch", of_patches(folder, pairs, options.string))
    language = options.results / "language"
    for folder in sorted(language.glob("*/weights/trained")):
        found = of_text(folder, language / "tokenizer" / "tokens.safetensors", options.windows, options.length)
        for measure, pair in found.items():
            say(folder.parts[-3], measure, pair)


if __name__ == "__main__":
    main()
