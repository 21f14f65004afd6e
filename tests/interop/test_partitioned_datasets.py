"""Partitioned datasets: numparq reads those of other writers, and other readers read its own.

Spark's tests are in ``spark/jvm/test_partitioned_datasets.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")

import numparq  # noqa: E402
from numparq import col  # noqa: E402
from support.data import partitioned_tables  # noqa: E402
from support.data.partitioned_tables import KEYS, key_columns  # noqa: E402

# fastparquet does not escape keys, and drops rows with a null key.
FASTPARQUET = ["int", "decimal", "moment", "flag", "double"]
SEVERAL = [*KEYS, ("int with null", "text"), ("date", "text with null", "flag")]


# --- writers ----------------------------------------------------------------------------------------------------------


def write_pyarrow(data: pa.Table, folder: Path) -> None:
    module = pytest.importorskip("pyarrow.parquet")
    module.write_to_dataset(data, folder, partition_cols=key_columns(data))


def write_polars(data: pa.Table, folder: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.from_arrow(data).write_parquet(folder, partition_by=key_columns(data), mkdir=True)


def write_duckdb(data: pa.Table, folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    by = ", ".join(f'"{key}"' for key in key_columns(data))
    with duckdb.connect(config={"threads": 1}) as session:
        session.register("rows", data)
        session.execute(f"copy rows to '{folder}' (format parquet, partition_by ({by}))")


def write_fastparquet(data: pa.Table, folder: Path) -> None:
    fastparquet = pytest.importorskip("fastparquet")
    frame = data.to_pandas()
    fastparquet.write(str(folder), frame, file_scheme="hive", partition_on=key_columns(data), row_group_offsets=20)


WRITERS = {"pyarrow": write_pyarrow, "polars": write_polars, "duckdb": write_duckdb}


def table(kinds: str | tuple[str, ...]) -> Any:
    return partitioned_tables.table(*([kinds] if isinstance(kinds, str) else kinds))


@pytest.mark.parametrize("kinds", SEVERAL, ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_datasets_of_other_writers(tmp_path, writer, kinds):
    data = table(kinds)
    WRITERS[writer](data, tmp_path / "a")
    partitioned_tables.assert_same_rows(partitioned_tables.read(tmp_path / "a", data), data)


@pytest.mark.parametrize("kind", ["int", "text", "decimal", "moment", "flag", "double"])
@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_types_are_inferred_as_by_pandas(tmp_path, writer, kind):
    """Without null partitions, and without polars' string views, which pandas cannot read."""
    WRITERS[writer](table(kind), tmp_path / "a")
    untyped = pd.read_parquet(tmp_path / "a", engine="pyarrow")
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "a"), untyped)


@pytest.mark.parametrize("kind", FASTPARQUET)
def test_fastparquet_datasets(tmp_path, kind):
    """The dataset has a ``_metadata`` file with several row groups."""
    data = table(kind)
    write_fastparquet(data, tmp_path / "a")
    assert (tmp_path / "a" / "_metadata").exists()
    partitioned_tables.assert_same_rows(partitioned_tables.read(tmp_path / "a", data), data)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("writer", WRITERS)
def test_filters_on_datasets_of_other_writers(tmp_path, writer, kind):
    data = table(kind)
    WRITERS[writer](data, tmp_path / "a")
    keys = data["key"].to_pylist()
    for value in dict.fromkeys(keys):
        condition = col("key").is_null() if value is None else col("key") == value
        got = partitioned_tables.read(tmp_path / "a", data, columns=["n"], filters=condition)
        assert sorted(got["n"]) == [n for n, key in enumerate(keys) if key == value]


# --- readers ----------------------------------------------------------------------------------------------------------


def read_pyarrow(folder: Path, data: pa.Table) -> pa.Table:
    dataset = pytest.importorskip("pyarrow.dataset")
    keys = pa.schema([data.schema.field(key) for key in key_columns(data)])
    return dataset.dataset(folder, partitioning=dataset.partitioning(keys, flavor="hive")).to_table()


def read_polars(folder: Path, data: pa.Table) -> pa.Table:
    polars = pytest.importorskip("polars")
    schema = polars.from_arrow(data.select(key_columns(data)).slice(0, 0)).schema
    return polars.read_parquet(folder, hive_partitioning=True, hive_schema=schema).to_arrow()


DUCKDB = {
    "int64": "bigint",
    "int32": "int",
    "string": "varchar",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "bool": "boolean",
    "double": "double",
}


def read_duckdb(folder: Path, data: pa.Table) -> pa.Table:
    duckdb = pytest.importorskip("duckdb")
    types = ", ".join(f"'{key}': {DUCKDB[str(data.schema.field(key).type)]}" for key in key_columns(data))
    query = f"select * from read_parquet('{folder}/**/*.parquet', hive_partitioning=true, hive_types={{{types}}})"
    with duckdb.connect(config={"threads": 1}) as session:
        return session.sql(query).to_arrow_table()


def read_fastparquet(folder: Path) -> pd.DataFrame:
    fastparquet = pytest.importorskip("fastparquet")
    return fastparquet.ParquetFile(str(folder)).to_pandas()


READERS = {"pyarrow": read_pyarrow, "polars": read_polars, "duckdb": read_duckdb}
# These readers accept no decimal partition types.
UNREADABLE = {("pyarrow", "decimal"), ("duckdb", "decimal")}
READABLE = [(reader, kinds) for reader in READERS for kinds in SEVERAL if (reader, kinds) not in UNREADABLE]


@pytest.mark.parametrize(("reader", "kinds"), READABLE, ids=str)
def test_other_readers(tmp_path, reader, kinds):
    data = table(kinds)
    partitioned_tables.write(data, tmp_path / "a")
    partitioned_tables.assert_same_rows(READERS[reader](tmp_path / "a", data), data)


@pytest.mark.parametrize("write_metadata_file", [False, True])
@pytest.mark.parametrize("kind", ["int", "double"])
def test_fastparquet_reader(tmp_path, kind, write_metadata_file):
    """fastparquet does not unescape directory names, and infers the type of each from its text."""
    data = table(kind)
    options = {"partition_cols": ["key"], "write_metadata_file": write_metadata_file}
    numparq.to_parquet(data.to_pandas(), tmp_path / "a", **options)
    partitioned_tables.assert_same_rows(read_fastparquet(tmp_path / "a"), data)
