"""Work on a batch that a GPU's memory is too small for: the same work on smaller ones."""

import logging
from collections.abc import Callable
from typing import TypeVar

import torch

Found = TypeVar("Found")
log = logging.getLogger(__name__)


def in_parts(work: Callable[[slice], Found], rows: int, size: int) -> list[Found]:
    """Return what `work` makes of `rows` rows, at most `size` at a time; fewer where the memory is not enough.

    `work` is given a slice of the rows and may be called again for a part of it: it must change nothing.

    Raises
    ------
    torch.OutOfMemoryError
        If the memory is not enough for one row.
    """
    found: list[Found] = []
    start, size = 0, min(size, rows)
    while start < rows:
        part = slice(start, min(start + size, rows))
        try:
            found.append(work(part))
            start = part.stop
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            size = -(-size // 2)
            torch.cuda.empty_cache()
            log.warning("the GPU's memory is not enough for %d rows at a time: going on with %d", 2 * size, size)
    return found
