"""The formal tasks against definitions that are written down a second time, slowly."""

import itertools

import numpy as np
import pytest
from sympy.combinatorics import Permutation

from stateatlas import possible, sequences, tasks
from stateatlas.seeds import stream
from stateatlas.tasks import s3

# Tasks that make up their sequences; those that read a corpus have tests of their own.
NAMES = [name for name, path in possible.modules("tasks", "Task").items() if not possible.literal(path, "reads")]
LENGTH = 40


def drawn(name: str, n: int = 400, length: int = LENGTH):
    task = tasks.load(name, LENGTH)
    tokens = task.sample(stream(0, "test", name), n, length)
    return task, tokens, task.label(tokens)


@pytest.mark.parametrize("name", NAMES)
def test_every_task_keeps_to_the_interface(name):
    task, tokens, labels = drawn(name, length=57)
    assert tokens.shape == (400, 57) and tokens.dtype == np.int64
    assert set(np.unique(tokens)) == set(range(task.vocabulary))
    assert next(iter(task.targets)) == "state" and labels.keys() == task.targets.keys()
    for target, classes in task.targets.items():
        assert labels[target].shape == tokens.shape and labels[target].dtype == np.int64
        assert set(np.unique(labels[target])) == set(range(classes)), target


@pytest.mark.parametrize("name", NAMES)
def test_the_same_stream_draws_the_same_sequences(name):
    assert (drawn(name)[1] == drawn(name)[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_label_depends_on_the_tokens_up_to_its_place_and_on_all_of_them(name):
    task, tokens, labels = drawn(name)
    for target in task.targets:
        assert (task.label(tokens[:, :17])[target] == labels[target][:, :17]).all()


def test_parity_is_the_parity_of_all_bits_so_far():
    _, tokens, labels = drawn("parity")
    slow = [[sum(row[: t + 1]) % 2 for t in range(LENGTH)] for row in tokens.tolist()]
    assert (labels["state"] == np.array(slow)).all()
    assert abs(tokens.mean() - 0.5) < 0.02


def test_s3_multiplies_in_the_order_of_sympy():
    """The left factor acts first, as in sympy: (p * q)(x) = q(p(x))."""
    _, tokens, labels = drawn("s3", n=60)
    elements = [Permutation(element) for element in s3.ELEMENTS.tolist()]
    for row, states in zip(tokens, labels["state"], strict=True):
        product = Permutation(2)
        for token, state in zip(row, states, strict=True):
            product = product * elements[token]
            assert product == elements[state]
    p, q = Permutation([1, 0, 2]), Permutation([0, 2, 1])
    assert all((p * q)(x) == q(p(x)) for x in range(3)) and p * q != q * p


def test_the_table_of_s3_is_a_group_that_does_not_commute():
    table = s3.PRODUCT
    identity = s3.ELEMENTS.tolist().index([0, 1, 2])
    assert (table[identity] == np.arange(6)).all() and (table[:, identity] == np.arange(6)).all()
    for a, b, c in itertools.product(range(6), repeat=3):
        assert table[table[a, b], c] == table[a, table[b, c]]
    assert all(sorted(row) == list(range(6)) for row in [*table.tolist(), *table.T.tolist()])
    assert (table != table.T).any()


@pytest.mark.parametrize("train_length", [12, 16, 40])
def test_dyck_keeps_a_stack_of_bounded_depth(train_length):
    task = tasks.load("dyck", train_length)
    assert task.cap == train_length // 4 and task.targets == {"state": task.cap + 1, "stack_top": 3}
    tokens = task.sample(stream(1, "dyck"), 200, 3 * train_length)
    labels = task.label(tokens)
    for row, depths, tops in zip(tokens, labels["state"], labels["stack_top"], strict=True):
        stack = []
        for token, depth, top in zip(row, depths, tops, strict=True):
            if token < 2:
                stack.append(token)
            else:
                assert stack.pop() == token - 2  # a closing bracket matches the top
            assert len(stack) == depth <= task.cap
            assert top == (stack[-1] + 1 if stack else 0)


def test_dyck_opens_half_of_the_time_where_it_has_a_choice():
    task, tokens, labels = drawn("dyck", n=2000)
    before = np.pad(labels["state"], ((0, 0), (1, 0)))[:, :-1]
    free = (before > 0) & (before < task.cap)
    assert abs((tokens < 2)[free].mean() - 0.5) < 0.01
    assert (tokens < 2)[before == 0].all() and (tokens >= 2)[before == task.cap].all()
    assert (labels["state"] == task.cap).any(), "the published cap of 10 is met at length 40"
    assert abs((tokens[tokens < 2] == 1).mean() - 0.5) < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_no_sequence_stands_in_two_sets(name):
    task = tasks.load(name, 12)
    sizes = {"validation": 200, "fit": 150, "test": 150}
    arrays = sequences.draw(task, name, 0, 12, [12, 18, 24], sizes)
    sets = {key: arrays[key] for key in arrays if key.endswith("/tokens")}
    assert {key.split("/")[0]: len(rows) for key, rows in sets.items()} == sizes
    strings = [row.tobytes() for rows in sets.values() for row in rows]
    assert len(set(strings)) == len(strings)
    for key, rows in sets.items():
        assert (task.label(rows.astype(np.int64))["state"] == arrays[key.replace("tokens", "state")]).all()


def test_what_a_set_holds_does_not_depend_on_other_sets_sizes():
    task = tasks.load("parity", 20)
    one = sequences.draw(task, "parity", 0, 20, [20, 30], {"validation": 50, "fit": 30, "test": 40})
    two = sequences.draw(task, "parity", 0, 20, [20, 30], {"validation": 50, "fit": 60, "test": 40})
    assert (one["test/20/tokens"] == two["test/20/tokens"]).all()
    assert (one["validation/20/tokens"] == two["validation/20/tokens"]).all()


def test_more_sequences_than_there_are_is_one_clear_error():
    task = tasks.load("parity", 12)
    with pytest.raises(ValueError, match="new sequences of length 12: lower validation, fit and test"):
        sequences.draw(task, "parity", 0, 12, [12], {"validation": 4000, "fit": 64, "test": 64})


def test_sequences_come_back_from_their_file(tmp_path):
    task = tasks.load("dyck", 12)
    arrays = sequences.draw(task, "dyck", 0, 12, [12, 24], {"validation": 20, "fit": 20, "test": 20})
    sequences.save(tmp_path / "s.safetensors", arrays)
    back = sequences.Sequences(tmp_path / "s.safetensors")
    assert back.targets() == ["state", "stack_top"]
    tokens = back.get("test", 24)
    assert tokens.dtype == np.int64 and (back.get("test", 24, "stack_top") == task.label(tokens)["stack_top"]).all()
