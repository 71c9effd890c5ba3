"""The cyclic group of order 6, as large as S3 but commutative: held out beside S3 (protocol A, A18)."""

from stateatlas.tasks.counter import Counter


class Task(Counter):
    """Uniform elements of Z6; the state is their sum modulo 6."""

    vocabulary = 6
    min_length = 12
