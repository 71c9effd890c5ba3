"""Parity of a bit string: a commutative state of one bit (protocol A)."""

from stateatlas.tasks.counter import Counter


class Task(Counter):
    """Uniform bits; the state is the parity of all bits so far (2 classes)."""

    vocabulary = 2
    min_length = 12
