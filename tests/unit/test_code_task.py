"""Code-Depth as a task: beginnings of functions, each set from its own part of the corpus, labels as code has them."""

import shutil
import sysconfig
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from stateatlas import sequences, tasks
from stateatlas.balance import balanced_accuracy
from stateatlas.code_depth import KINDS, at_ends, depths, tokens
from stateatlas.corpora import SPLITS, file
from stateatlas.job import InputError
from stateatlas.seeds import stream
from stateatlas.training import Batches, Recipe

PACKAGES = ["asyncio", "email", "http", "importlib", "json", "logging", "multiprocessing", "urllib", "xml"]
RECIPE = Recipe(
    steps=30, batch=64, learning_rate=1e-2, betas=(0.9, 0.98), weight_decay=0.1, warmup=5, decay=0.5, clip=1.0,
    embedding_std=0.1, curriculum=0, advance=0.3, evaluate_every=5, stop_accuracy=0.995, stops=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A corpus of some real packages."""
    folder = tmp_path_factory.mktemp("corpus")
    for package in PACKAGES:
        shutil.copytree(Path(sysconfig.get_paths()["stdlib"], package), folder / "library" / package)
    file.write("stdlib", {"root": str(folder / "library")}, folder / "corpus.parquet", folder / "corpus.json")
    return folder / "corpus.parquet"


@pytest.fixture
def task(corpus):
    return tasks.load("code", 40, corpus=corpus)


def beginnings(corpus: Path, split: str, length: int) -> set[bytes]:
    return {kinds[:length] for kinds in file.read(corpus, split, "kinds") if len(kinds) >= length}


def strings(rows: np.ndarray) -> set[bytes]:
    return {row.astype(np.uint8).tobytes() for row in rows}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("length", [16, 40, 120])
def test_a_sequence_is_the_beginning_of_a_function_of_its_split_that_is_long_enough(task, corpus, split, length):
    drawn = task.sample(stream(0, split, length), 20_000, length, split)
    assert drawn.shape == (20_000, length) and drawn.dtype == np.int64
    assert strings(drawn) == beginnings(corpus, split, length), "every one is drawn in the long run, and nothing else"


def test_functions_are_drawn_alike(task):
    functions = Counter(row.tobytes() for row in task.sample(stream(0, "even"), 100_000, 120, "train"))
    counts = np.array(list(functions.values()))
    # Every function is binomial; some beginnings are shared by a few functions.
    assert counts.min() > counts.mean() - 6 * np.sqrt(counts.mean())


def test_labels_are_the_depths_of_the_text(task, corpus):
    deepest = 0
    for text, kinds in zip(file.read(corpus, "train", "text"), file.read(corpus, "train", "kinds"), strict=True):
        ends = np.array([end for _, _, end in tokens(text)])
        states = task.label(np.frombuffer(kinds, dtype=np.uint8)[None].astype(np.int64))["state"]
        assert states.dtype == np.int64
        assert (states[0] == at_ends(depths(text), ends)).all()
        deepest = max(deepest, states.max())
    assert deepest >= 4


@pytest.mark.parametrize("train_length", [12, 16, 40])
def test_the_cap_is_ten_at_every_length(corpus, train_length):
    task = tasks.load("code", train_length, corpus=corpus)
    assert task.targets == {"state": 11} and task.vocabulary == len(KINDS)
    opening, closing = KINDS.index("("), KINDS.index("]")
    deep = np.array([[opening] * 12 + [closing] * 12])
    assert task.label(deep)["state"][0].tolist() == [*range(1, 11), 10, 10, 10, 10, *range(9, -1, -1)]


def test_a_label_depends_on_the_tokens_up_to_its_place_alone(task):
    drawn = task.sample(stream(0, "prefix"), 50, 60, "train")
    assert (task.label(drawn[:, :17])["state"] == task.label(drawn)["state"][:, :17]).all()


def test_every_set_comes_from_its_part_of_the_corpus(task, corpus):
    arrays = sequences.draw(task, "code", 0, 40, [40, 80], {"validation": 20, "fit": 30, "test": 20})
    for key, rows in arrays.items():
        split, length, kind = key.split("/")
        if kind == "tokens":
            part = "train" if split == "fit" else split
            assert strings(rows) <= beginnings(corpus, part, int(length)), key
            assert (task.label(rows.astype(np.int64))["state"] == arrays[f"{split}/{length}/state"]).all()
    rows = [row.tobytes() for key, rows in arrays.items() if key.endswith("tokens") for row in rows]
    assert len(set(rows)) == len(rows)


def test_training_draws_from_its_part_and_nothing_that_is_held_out(task, corpus):
    held_out = task.sample(stream(0, "held"), 50, 40, "train")
    batches = Batches(task, RECIPE, [held_out], 0, ("t",))
    drawn = set.union(*(strings(batches.draw(step, 40)) for step in range(30)))
    assert drawn <= beginnings(corpus, "train", 40) - strings(held_out)
    assert len(drawn) > 100


@pytest.mark.parametrize("name", ["parity", "s3", "dyck"])
def test_formal_tasks_draw_every_set_as_they_are(name):
    task = tasks.load(name, 12)
    for split in ("train", "validation", "fit", "test"):
        assert sequences.sampler(task, split) == task.sample


def test_a_length_that_no_function_reaches_is_one_clear_error(task):
    with pytest.raises(ValueError, match="no function of the corpus has 100000 tokens: take a larger one or shorter"):
        task.sample(stream(0), 2, 100_000, "test")


def test_a_corpus_is_asked_for_where_one_is_read_and_only_there(corpus):
    with pytest.raises(ValueError, match="task code reads a corpus of code"):
        tasks.load("code", 40)
    with pytest.raises(ValueError, match="task parity reads no corpus"):
        tasks.load("parity", 40, corpus=corpus)
    with pytest.raises(ValueError, match="task code: training length 11 is under its minimum of 12"):
        tasks.load("code", 11, corpus=corpus)


def test_a_file_that_is_no_corpus_is_one_clear_error(tmp_path):
    (tmp_path / "corpus.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match="no readable corpus"):
        tasks.load("code", 40, corpus=tmp_path / "corpus.parquet")


def test_balanced_accuracy_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 1, 2, 5], p=[0.9, 0.06, 0.03, 0.01], size=(200, 30))
    found = np.where(rng.random(labels.shape) < 0.7, labels, rng.choice([0, 1, 2], size=labels.shape))
    expected = balanced_accuracy_score(labels.ravel(), found.ravel())
    assert balanced_accuracy(found == labels, labels) == pytest.approx(expected, abs=1e-12)
    assert balanced_accuracy(np.zeros_like(labels) == labels, labels) == pytest.approx(1 / 4)
