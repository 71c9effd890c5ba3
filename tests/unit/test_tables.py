"""Tables: one schema each, nothing converted on the way, the same rows give the same bytes."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from stateatlas import tables

TEXT = {"study", "task", "architecture", "model", "metric", "target", "control", "half", "method", "subspace"}
TEXT |= {"claim", "cell", "bound", "verdict", "reason", "eraser", "family", "direction", "read", "status"}
TEXT |= {"pair", "tokens", "sites", "token", "source", "predictor"}
TEXT |= {"corpus", "class", "form", "intervention", "span", "set", "depth"}
REAL = {"value", "low", "high", "embedding_std", "rate", "tau", "eps", "share", "scale"}


def rows(name: str, n: int = 6) -> list[dict]:
    """Return n rows of the table `name`, out of order."""
    first = tables.SCHEMAS[name][0]
    return [
        {c: f"{c}{i if c == first else ''}" if c in TEXT else 0.5 if c in REAL else i
         for c in tables.SCHEMAS[name]}
        for i in reversed(range(n))
    ]  # fmt: skip


@pytest.mark.parametrize("name", tables.SCHEMAS)
def test_a_table_comes_back_as_it_was_written(name, tmp_path):
    tables.write(tmp_path / "table.parquet", name, rows(name))
    back = tables.read(tmp_path / "table.parquet", name)
    assert list(back.columns) == tables.SCHEMAS[name]
    pd.testing.assert_frame_equal(back, tables.frame(name, list(reversed(rows(name)))))
    for column, dtype in back.dtypes.items():
        kind = "str" if column in TEXT else "float64" if column in REAL else "int64"
        assert dtype == kind, column


@pytest.mark.parametrize("name", tables.SCHEMAS)
def test_the_same_rows_give_the_same_bytes_in_any_order(name, tmp_path):
    tables.write(tmp_path / "one", name, rows(name))
    tables.write(tmp_path / "two", name, pd.DataFrame(rows(name)[::-1])[tables.SCHEMAS[name][::-1]])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", tables.SCHEMAS)
def test_a_table_without_rows_keeps_its_columns(name, tmp_path):
    tables.write(tmp_path / "table.parquet", name, [])
    back = tables.read(tmp_path / "table.parquet", name)
    assert len(back) == 0 and list(back.columns) == tables.SCHEMAS[name]
    assert pq.read_schema(tmp_path / "table.parquet").equals(schema_of_full(name, tmp_path))


def schema_of_full(name, tmp_path):
    tables.write(tmp_path / "full.parquet", name, rows(name))
    return pq.read_schema(tmp_path / "full.parquet")


@pytest.mark.parametrize(
    ("column", "value"),
    [("length", 12.5), ("length", float("nan")), ("seed", "0"), ("n", None), ("value", "0.5"), ("metric", 3),
     ("metric", None), ("task", float("nan"))],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_not_converted(column, value):
    wrong = rows("behaviour")
    wrong[2][column] = value
    with pytest.raises(ValueError, match=f"column {column} holds"):
        tables.frame("behaviour", wrong)


def test_whole_numbers_may_come_as_numpys_or_as_floats():
    given = rows("behaviour")
    given[0] |= {"length": np.int32(7), "n": 12.0, "seed": np.float64(3)}
    assert tables.frame("behaviour", given)["n"].max() == 12


def test_intervals_may_be_missing():
    given = [row | {"low": np.nan, "high": float("nan")} for row in rows("behaviour")]
    assert tables.frame("behaviour", given)["low"].isna().all()


def test_unknown_and_missing_columns_are_named():
    with pytest.raises(ValueError, match=r"table probes: unknown columns \['colour'\], missing columns \['site'\]"):
        tables.frame("probes", pd.DataFrame(rows("probes")).drop(columns="site").assign(colour=1))


def test_a_row_that_stands_twice_is_named():
    with pytest.raises(ValueError, match=r"two rows for .*'study0'"):
        tables.frame("behaviour", [*rows("behaviour"), rows("behaviour")[-1] | {"value": 0.9}])


@pytest.mark.parametrize("content", [b"", b"PAR1 not really PAR1", b"a,b\n1,2\n"])
def test_a_file_that_is_no_table_is_named_with_a_remedy(tmp_path, content):
    (tmp_path / "table.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"table\.parquet: not a readable table .*delete it and run again"):
        tables.read(tmp_path / "table.parquet", "probes")


def test_a_truncated_table_is_named(tmp_path):
    path = tmp_path / "table.parquet"
    tables.write(path, "probes", rows("probes"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="not a readable table"):
        tables.read(path, "probes")


def test_another_table_is_not_taken_for_the_one_asked_for(tmp_path):
    tables.write(tmp_path / "table.parquet", "training", rows("training"))
    with pytest.raises(ValueError, match="not those of table probes; delete it and run again"):
        tables.read(tmp_path / "table.parquet", "probes")
