"""What the settings say about one task or one architecture, and what their names mean.

A task is `<module>` or `<module>-<target>`: the same strings with another target. An architecture is `<module>`,
with forms and recipe changes behind it: `mamba-noconv`, `lstm-std1`, `lstm-std0.02-lr2`.
"""

import re

# Suffixes of an architecture's name, and what they change in the model.
FORMS = {"stock": {"mlp_width": 0}, "nope": {"positions": False}, "noconv": {"conv": False}}
# Suffixes with a number behind, and what they change in the recipe.
CHANGES = {"std": "embedding_std", "lr": "learning_rate"}
CHANGE = re.compile(rf"({'|'.join(CHANGES)})(\d+(?:\.\d+)?)")


def per_task(setting: dict, task: str) -> int:
    """Return a per-task setting's value for `task`; one with another target has its own or its module's."""
    module = task_parts(task)[0]
    return next((setting[key] for key in (task, module, "default") if key in setting), None)


def recipe(settings: dict, task: str, name: str) -> dict:
    """Return the training recipe of an architecture on a task: the common one, with what either changes.

    `std` sets the standard deviation of initial embeddings, `lr` multiplies the learning rate.
    """
    by_task = settings["training_by_task"]
    chosen = {**settings["training"], **by_task.get(task_parts(task)[0], {}), **by_task.get(task, {})}
    changed = recipe_changes(name)
    if "embedding_std" in changed:
        chosen["embedding_std"] = changed["embedding_std"]
    chosen["learning_rate"] *= changed.get("learning_rate", 1.0)
    return chosen


def lengths(settings: dict, task: str) -> list[int]:
    """Return the evaluation lengths of a task in ascending order, the training length among them."""
    length = per_task(settings["train_length"], task)
    return sorted({length, *(round(length * factor) for factor in settings["length_factors"])})


def task_parts(name: str) -> tuple[str, str]:
    """Split a task's name into its module and the target that models are trained on ("" for the module's own)."""
    module, _, target = name.partition("-")
    return module, target


def architecture(name: str) -> tuple[str, dict]:
    """Split an architecture's name into its module and what its forms change in the model."""
    module, *suffixes = name.split("-")
    forms = [FORMS[suffix] for suffix in suffixes if not CHANGE.fullmatch(suffix)]
    return module, {key: value for form in forms for key, value in form.items()}


def recipe_changes(name: str) -> dict[str, float]:
    """Return what an architecture's name changes in the recipe: setting -> number."""
    found = [CHANGE.fullmatch(suffix) for suffix in name.split("-")[1:]]
    return {CHANGES[match[1]]: float(match[2]) for match in found if match}


def unvaried(name: str) -> str:
    """Return the name without its recipe changes: `mamba-noconv-std1` gives `mamba-noconv`."""
    module, *suffixes = name.split("-")
    return "-".join([module, *(suffix for suffix in suffixes if not CHANGE.fullmatch(suffix))])


def varied(name: str, embedding_std: float | None, learning_rate: float) -> str:
    """Return the name of an architecture trained with another recipe; None and 1 leave it as it is."""
    std = "" if embedding_std is None else f"-std{embedding_std:g}"
    return f"{name}{std}" + (f"-lr{learning_rate:g}" if learning_rate != 1 else "")
