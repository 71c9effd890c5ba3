"""Measure the peak memory of recording states, for n sequences and for 4n: it must not grow with them.

    python bench/states.py --sequences 1024

Each recording runs in a process of its own, because a process only ever reports the peak of its whole life. The first
line is a process that records nothing.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", default="transformer", help="default: transformer")
    parser.add_argument("--sequences", type=int, default=1024, help="the smaller number, n (default 1024)")
    parser.add_argument("--width", type=int, default=128, help="width of the stream (default 128)")
    parser.add_argument("--length", type=int, default=40, help="tokens a sequence (default 40)")
    parser.add_argument("--layers", type=int, default=4, help="blocks (default 4)")
    parser.add_argument("--record", type=int, help="record so many sequences in this process and print its peak")
    return parser.parse_args()


def record(options: argparse.Namespace) -> int:
    """Record `options.record` sequences and return the peak memory of this process in bytes."""
    sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
    import numpy as np
    import torch

    from stateatlas import blocks, compiler, recording
    from stateatlas.residual import ResidualModel, matched_shape

    torch.set_num_threads(1)
    torch.manual_seed(0)
    blocks.use_backend(options.architecture, "compiled" if compiler.available() else "torch")
    model = ResidualModel(matched_shape(options.architecture, options.width, options.layers, 6, 6))
    tokens = np.random.default_rng(0).integers(0, 6, (options.record, options.length))
    with tempfile.TemporaryDirectory() as folder:
        recording.record(model, tokens, Path(folder), "test")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def main() -> None:
    options = arguments()
    if options.record is not None:
        print(record(options))
        return
    print(f"{options.architecture}, length {options.length}, width {options.width}, {options.layers} layers; MB")
    print(f"{'sequences':>9} {'states':>8} {'peak':>8} {'above none':>11}")
    peaks = {}
    for count in (0, options.sequences, 4 * options.sequences):
        command = [sys.executable, *sys.argv, "--record", str(count)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        peaks[count] = int(done.stdout)
        size = count * options.length * options.width * 4 * (options.layers + 1)
        print(f"{count:9} {size / 1e6:8.1f} {peaks[count] / 1e6:8.1f} {(peaks[count] - peaks[0]) / 1e6:11.1f}")
    print(f"4n / n: {peaks[4 * options.sequences] / peaks[options.sequences]:.3f}")


if __name__ == "__main__":
    main()
