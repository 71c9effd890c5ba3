"""A data set of the Hugging Face hub, by name and pinned revision, through `datasets`."""

import re
from collections.abc import Iterable

from stateatlas.job import InputError


def parts(name: str, folder: str, revision: str, fields: set[str]) -> dict[str, Iterable[dict]]:
    """Return the rows of every split, with those of `fields` that they have, of the files in `folder` ("" for all).

    Only Parquet is read: a data set that is a script must be asked for at a commit of `refs/convert/parquet`, where
    the hub keeps its own conversion.

    Raises
    ------
    InputError
        If `datasets` is not installed, the revision is no commit in full, the hub does not give the data set, or it
        has none of the fields.
    """
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise InputError(f"corpus {name}: revision {revision!r} is no commit; give all its 40 hexadecimal digits")
    try:
        import datasets
    except ImportError as error:
        remedy = "install it (pip install datasets), or give the corpus as local files"
        raise InputError(f"corpus {name}: the package datasets is not installed; {remedy}") from error
    try:
        found = datasets.load_dataset(name, data_dir=folder or None, revision=revision)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        remedy = "give a commit of its branch refs/convert/parquet, or local files"
        raise InputError(f"corpus {name} at {revision}: it is a script, which datasets refuses; {remedy}") from error
    except (
        OSError,
        ValueError,
        datasets.exceptions.DatasetsError,
    ) as error:  # no such data set or revision, no network, no such files
        remedy = "check name, revision and network, or give local files"
        raise InputError(f"corpus {name} at {revision}: {error}; {remedy}") from error
    return {split: _with(name, part, fields) for split, part in found.items()}


def _with(name: str, part, fields: set[str]) -> Iterable[dict]:
    columns = [column for column in part.column_names if column in fields]
    if not columns:
        known = ", ".join(part.column_names)
        raise InputError(f"corpus {name}: its fields are {known}, none of {', '.join(sorted(fields))}; choose another")
    return part.select_columns(columns)
