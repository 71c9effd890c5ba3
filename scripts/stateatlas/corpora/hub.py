"""A data set of the Hugging Face hub, by name and pinned revision, through `datasets`."""

import re
from collections.abc import Iterator

from stateatlas.job import InputError


def rows(name: str, folder: str, revision: str, fields: set[str]) -> Iterator[tuple[str, dict]]:
    """Yield where a row stands, and those of `fields` that it has, split by split, of the files in `folder`.

    Only Parquet is read: a data set that is a script must be asked for at a commit of `refs/convert/parquet`, where
    the hub keeps its own conversion.

    Raises
    ------
    InputError
        If `datasets` is not installed, the revision is no commit in full, or the hub does not give the data set.
    """
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise InputError(f"corpus {name}: revision {revision!r} is no commit; give all its 40 hexadecimal digits")
    try:
        import datasets
    except ImportError as error:
        remedy = "install it (pip install datasets), or give the corpus as local JSON lines"
        raise InputError(f"corpus {name}: the package datasets is not installed; {remedy}") from error
    try:
        parts = datasets.load_dataset(name, data_dir=folder, revision=revision)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        remedy = "give a commit of its branch refs/convert/parquet, or local JSON lines"
        raise InputError(f"corpus {name} at {revision}: it is a script, which datasets refuses; {remedy}") from error
    except (
        OSError,
        ValueError,
        datasets.exceptions.DatasetsError,
    ) as error:  # no such data set or revision, no network, no such files
        remedy = "check name, revision and network, or give local JSON lines"
        raise InputError(f"corpus {name} at {revision}: {error}; {remedy}") from error
    for split, part in parts.items():
        wanted = part.select_columns([field for field in part.column_names if field in fields])
        yield from ((f"{name}, {split}, row {number}", row) for number, row in enumerate(wanted))
