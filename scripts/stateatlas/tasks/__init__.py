"""Tasks: each yields tokens and per-position targets. A new task is one more file in this folder.

A task module `tasks/<name>.py` defines a class `Task` with

- `Task(train_length)`: some tasks scale with the length that models are trained on;
- `vocabulary`: number of tokens;
- `targets`: classes of every target, in a dict whose first key, `state`, is the one that models are trained on;
- `min_length`: the shortest training length at which the task makes sense;
- `sample(rng, n, length) -> (n, length) int64` tokens;
- `label(tokens) -> {target: (n, length) int64}`: the state *after* each token.

A task that draws from a corpus names the kind of corpus in `reads`. It is made by `Task(train_length, corpus)`, and
`sample(rng, n, length, split)` draws from the `train`, `validation` or `test` part alone.
"""

import importlib
from pathlib import Path


def load(name: str, train_length: int, corpus: Path | None = None):
    """Return the task `name` for models that are trained at `train_length`; `corpus` is the file that it reads, if any.

    Raises
    ------
    ValueError
        If `train_length` is shorter than the task allows, or if a corpus is missing or too many.
    """
    # Loaded by name, so that the code of one task is not part of another task's results.
    kind = importlib.import_module(f"stateatlas.tasks.{name}").Task
    if hasattr(kind, "reads") != (corpus is not None):
        raise ValueError(f"task {name} reads {f'a corpus of {kind.reads}' if hasattr(kind, 'reads') else 'no corpus'}")
    task = kind(train_length) if corpus is None else kind(train_length, corpus)
    if train_length < task.min_length:
        raise ValueError(f"task {name}: training length {train_length} is under its minimum of {task.min_length}")
    return task
