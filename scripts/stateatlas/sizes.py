"""What the settings say about one task or one architecture."""

FORMS = {"stock": {"mlp_width": 0}, "nope": {"positions": False}}  # suffixes of an architecture's name


def per_task(setting: dict, task: str) -> int:
    """Return a per-task setting's value for `task`."""
    return setting.get(task, setting.get("default"))


def recipe(settings: dict, task: str) -> dict:
    """Return the training recipe of a task: the common one, with what the task changes."""
    return {**settings["training"], **settings["training_by_task"].get(task, {})}


def lengths(settings: dict, task: str) -> list[int]:
    """Return the evaluation lengths of a task in ascending order, the training length among them."""
    length = per_task(settings["train_length"], task)
    return sorted({length, *(round(length * factor) for factor in settings["length_factors"])})


def architecture(name: str) -> tuple[str, dict]:
    """Split an architecture's name into its module and what its form changes: `mamba-stock`, `transformer-nope`."""
    module, _, form = name.partition("-")
    return module, dict(FORMS[form]) if form else {}
