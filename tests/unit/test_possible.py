"""What the config is checked against is what the files of tasks and blocks hold."""

import importlib

import pytest

from stateatlas import possible


def test_what_is_read_from_the_files_of_tasks_and_blocks_is_what_they_hold():
    torch = pytest.importorskip("torch")
    from stateatlas import blocks, residual

    for name, path in possible.modules("tasks", "Task").items():
        task = importlib.import_module(f"stateatlas.tasks.{name}").Task
        for literal in ("min_length", "vocabulary", "reads"):
            assert possible.literal(path, literal) == getattr(task, literal, None)
    for name, path in possible.modules("blocks", "Mixer").items():
        mixer = blocks.load(name)
        assert possible.literal(path, "positions") == mixer.positions and issubclass(mixer, torch.nn.Module)
        assert possible.literal(path, "heads") == getattr(mixer, "heads", None)
    assert possible.literal(possible.PACKAGE / "residual.py", "POSITIONS") == residual.POSITIONS


def test_a_length_that_the_config_lets_through_is_one_that_the_task_takes():
    from stateatlas import tasks

    for name, path in possible.modules("tasks", "Task").items():
        if possible.literal(path, "reads"):
            continue  # it needs a corpus
        least = possible.literal(path, "min_length")
        tasks.load(name, least)
        with pytest.raises(ValueError, match=f"minimum of {least}"):
            tasks.load(name, least - 1)
