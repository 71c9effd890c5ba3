"""Time a whole training step of each kind of model, ours and those of transformers, against the matched Transformer.

    python bench/blocks.py --threads 2

A step is forward, cross-entropy, backward, gradient clipping and AdamW. All models take turns, so that whatever else
the machine does meets all of them; a ratio is the median over the turns of a model's time to the Transformer's in the
same turn. Models of transformers have no MLP, so they stand beside ours without MLP (stock).
"""

import argparse
import importlib.util
import os
import statistics
import sys
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of torch and of the kernels (default 2)")
    parser.add_argument("--width", type=int, default=128, help="width of the stream (default 128)")
    parser.add_argument("--length", type=int, default=40, help="tokens a sequence (default 40)")
    parser.add_argument("--batch", type=int, default=64, help="sequences a batch (default 64)")
    parser.add_argument("--layers", type=int, default=4, help="blocks (default 4)")
    parser.add_argument("--turns", type=int, default=9, help="turns that are timed (default 9)")
    parser.add_argument(
        "--others", type=int, default=1, help="turns in which transformers' models run (default 1; 0: none)"
    )
    parser.add_argument(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="cpu: time of this process alone, for one thread on a busy machine (default wall)",
    )
    return parser.parse_args()


def ours(options: argparse.Namespace) -> dict:
    """Return name -> (backend, model) of our models."""
    from stateatlas import compiler
    from stateatlas.residual import ResidualModel, matched_shape

    def model(architecture, **form):
        return ResidualModel(matched_shape(architecture, options.width, options.layers, 6, 6, **form))

    found = {name: ("torch", model(name)) for name in ("transformer", "lstm", "gru")}
    backends = ["compiled", "torch"] if compiler.available() else ["torch"]
    if len(backends) == 1:
        print("compiled forms are left out: no working C compiler")
    for backend in backends:
        for name in ("mamba", "mamba2"):
            found[f"{name}, {backend}"] = (backend, model(name))
            found[f"{name} stock, {backend}"] = (backend, model(name, mlp_width=0))
    return found


def theirs(options: argparse.Namespace) -> dict:
    """Return name -> (backend, model) of the models of transformers, in the sizes of our stock models."""
    if importlib.util.find_spec("transformers") is None:
        print("the other side is left out: transformers is not installed")
        return {}
    import transformers

    transformers.logging.set_verbosity_error()
    size = {"vocab_size": 6, "hidden_size": options.width, "num_hidden_layers": options.layers}
    ssd = size | {"state_size": 32, "head_dim": 16, "num_heads": options.width // 8, "n_groups": 1}

    def mamba(**config):
        return "torch", transformers.MambaForCausalLM(transformers.MambaConfig(**size, **config))

    def mamba2(**config):
        return "torch", transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**ssd, **config))

    found = {"transformers mamba stock": mamba()}
    if importlib.util.find_spec("mambapy") is None:
        print("transformers' Mamba with mambapy is left out: mambapy is not installed")
    else:
        found["transformers mamba stock, mambapy"] = mamba(use_mambapy=True)
    found["transformers mamba2 stock"] = mamba2()
    found["transformers mamba2 stock, chunk 32"] = mamba2(chunk_size=32)
    gpt2 = {"vocab_size": 6, "n_positions": 256, "n_embd": options.width, "n_layer": options.layers, "n_head": 4}
    found["transformers gpt2"] = "torch", transformers.GPT2LMHeadModel(transformers.GPT2Config(**gpt2))
    return found


def step_of(backend: str, model, options: argparse.Namespace):
    """Return a function that makes one training step."""
    import torch

    from stateatlas import kernels

    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(0, 6, (options.batch, options.length))
    targets = torch.randint(0, 6, (options.batch, options.length))

    def step():
        kernels.use(backend)
        logits = model(tokens)
        logits = getattr(logits, "logits", logits)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def main() -> None:
    options = arguments()
    # The thread libraries read this when they are loaded.
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    own, other = ours(options), theirs(options) if options.others else {}
    models = own | other
    steps = {name: step_of(*entry, options) for name, entry in models.items()}
    for name in own:
        steps[name]()  # memory is laid out and kernels are compiled before anything is timed
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(options.turns):
        for name in own if turn >= options.others else steps:
            started = clock()
            steps[name]()
            times[name].append(1000 * (clock() - started))

    print(
        f"batch {options.batch}, length {options.length}, width {options.width}, {options.layers} layers, "
        f"{options.threads} threads, torch {torch.__version__}, {options.clock} clock; ms a training step"
    )
    print(f"{'':36} {'parameters':>10} {'median':>8} {'min':>8} {'max':>8} {'ratio':>7}")
    for name, taken in times.items():
        ratio = statistics.median(t / r for t, r in zip(taken, times["transformer"], strict=False))
        count = sum(p.numel() for p in models[name][1].parameters())
        print(f"{name:36} {count:10,} {statistics.median(taken):8.1f} {min(taken):8.1f} {max(taken):8.1f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
