"""A counter modulo 3, the held-out task that the taxonomy puts beside Parity (protocol A, A18)."""

from stateatlas.tasks.counter import Counter


class Task(Counter):
    """Uniform elements of Z3; the state is their sum modulo 3."""

    vocabulary = 3
    min_length = 12
