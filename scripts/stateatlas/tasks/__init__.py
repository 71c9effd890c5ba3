"""Tasks: each yields tokens and per-position targets. A new task is one more file in this folder.

A task module `tasks/<name>.py` defines a class `Task` with

- `Task(train_length)`: some tasks scale with the length that models are trained on;
- `vocabulary`: number of tokens;
- `targets`: classes of every target, in a dict whose first key, `state`, is the one that models are trained on;
- `min_length`: the shortest training length at which the task makes sense;
- `other_targets`, where it has any: names of targets that models can be trained on instead, `Task(length, name)`;
- `sample(rng, n, length) -> (n, length) int64` tokens;
- `valid(tokens) -> (n,) bool`: which tokens are strings of the task;
- `label(tokens) -> {target: (n, length) int64}`: the state *after* each token.
"""

import importlib


def load(name: str, train_length: int, target: str = ""):
    """Return the task `name` for models that are trained at `train_length`, on another `target` if one is named.

    Raises
    ------
    ValueError
        If `train_length` is shorter than the task allows.
    """
    # Loaded by name, so that the code of one task is not part of another task's results.
    kind = importlib.import_module(f"stateatlas.tasks.{name}").Task
    task = kind(train_length, target) if target else kind(train_length)
    if train_length < task.min_length:
        raise ValueError(f"task {name}: training length {train_length} is under its minimum of {task.min_length}")
    return task
