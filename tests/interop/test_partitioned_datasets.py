"""Partitioned datasets of other writers, read; and ours, read by them: values and partition columns are equal.

Spark has a file of its own, ``spark/jvm/test_partitioned_datasets.py``.
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

# fastparquet escapes nothing, and leaves out rows whose key is null.
FASTPARQUET = ["int", "decimal", "moment", "flag", "double"]
SEVERAL = [*KEYS, ("int with null", "text"), ("date", "text with null", "flag")]


# --- writers ----------------------------------------------------------------------------------------------------------


def write_pyarrow(of: pa.Table, folder: Path) -> None:
    module = pytest.importorskip("pyarrow.parquet")
    module.write_to_dataset(of, folder, partition_cols=key_columns(of))


def write_polars(of: pa.Table, folder: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.from_arrow(of).write_parquet(folder, partition_by=key_columns(of), mkdir=True)


def write_duckdb(of: pa.Table, folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    by = ", ".join(f'"{key}"' for key in key_columns(of))
    with duckdb.connect(config={"threads": 1}) as session:
        session.register("rows", of)
        session.execute(f"copy rows to '{folder}' (format parquet, partition_by ({by}))")


def write_fastparquet(of: pa.Table, folder: Path) -> None:
    fastparquet = pytest.importorskip("fastparquet")
    frame = of.to_pandas()
    fastparquet.write(str(folder), frame, file_scheme="hive", partition_on=key_columns(of), row_group_offsets=20)


WRITERS = {"pyarrow": write_pyarrow, "polars": write_polars, "duckdb": write_duckdb}


def table(kinds: str | tuple[str, ...]) -> Any:
    return partitioned_tables.table(*([kinds] if isinstance(kinds, str) else kinds))


@pytest.mark.parametrize("kinds", SEVERAL, ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_others_write(tmp_path, writer, kinds):
    of = table(kinds)
    WRITERS[writer](of, tmp_path / "a")
    partitioned_tables.assert_same_rows(partitioned_tables.read(tmp_path / "a", of), of)


@pytest.mark.parametrize("kind", ["int", "text", "decimal", "moment", "flag", "double"])
@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_types_are_inferred_as_pandas_does(tmp_path, writer, kind):
    """Without null partitions, and without the string views of polars, of which it makes nothing."""
    WRITERS[writer](table(kind), tmp_path / "a")
    untyped = pd.read_parquet(tmp_path / "a", engine="pyarrow")
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "a"), untyped)


@pytest.mark.parametrize("kind", FASTPARQUET)
def test_fastparquet_writes(tmp_path, kind):
    """With a ``_metadata`` of all files, and several row groups in it."""
    of = table(kind)
    write_fastparquet(of, tmp_path / "a")
    assert (tmp_path / "a" / "_metadata").exists()
    partitioned_tables.assert_same_rows(partitioned_tables.read(tmp_path / "a", of), of)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("writer", WRITERS)
def test_filters_on_what_others_write(tmp_path, writer, kind):
    of = table(kind)
    WRITERS[writer](of, tmp_path / "a")
    keys = of["key"].to_pylist()
    for value in dict.fromkeys(keys):
        wanted = col("key").is_null() if value is None else col("key") == value
        got = partitioned_tables.read(tmp_path / "a", of, columns=["n"], filters=wanted)
        assert sorted(got["n"]) == [n for n, key in enumerate(keys) if key == value]


# --- readers ----------------------------------------------------------------------------------------------------------


def read_pyarrow(folder: Path, of: pa.Table) -> pa.Table:
    dataset = pytest.importorskip("pyarrow.dataset")
    keys = pa.schema([of.schema.field(key) for key in key_columns(of)])
    return dataset.dataset(folder, partitioning=dataset.partitioning(keys, flavor="hive")).to_table()


def read_polars(folder: Path, of: pa.Table) -> pa.Table:
    polars = pytest.importorskip("polars")
    schema = polars.from_arrow(of.select(key_columns(of)).slice(0, 0)).schema
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


def read_duckdb(folder: Path, of: pa.Table) -> pa.Table:
    duckdb = pytest.importorskip("duckdb")
    types = ", ".join(f"'{key}': {DUCKDB[str(of.schema.field(key).type)]}" for key in key_columns(of))
    query = f"select * from read_parquet('{folder}/**/*.parquet', hive_partitioning=true, hive_types={{{types}}})"
    with duckdb.connect(config={"threads": 1}) as session:
        return session.sql(query).to_arrow_table()


def read_fastparquet(folder: Path) -> pd.DataFrame:
    fastparquet = pytest.importorskip("fastparquet")
    return fastparquet.ParquetFile(str(folder)).to_pandas()


READERS = {"pyarrow": read_pyarrow, "polars": read_polars, "duckdb": read_duckdb}
# They take no decimals as types of partitions.
UNREADABLE = {("pyarrow", "decimal"), ("duckdb", "decimal")}
READABLE = [(reader, kinds) for reader in READERS for kinds in SEVERAL if (reader, kinds) not in UNREADABLE]


@pytest.mark.parametrize(("reader", "kinds"), READABLE, ids=str)
def test_others_read(tmp_path, reader, kinds):
    of = table(kinds)
    partitioned_tables.write(of, tmp_path / "a")
    partitioned_tables.assert_same_rows(READERS[reader](tmp_path / "a", of), of)


@pytest.mark.parametrize("write_metadata_file", [False, True])
@pytest.mark.parametrize("kind", ["int", "double"])
def test_fastparquet_reads(tmp_path, kind, write_metadata_file):
    """It takes names of directories as they are, and makes of each what the text looks like."""
    of = table(kind)
    options = {"partition_cols": ["key"], "write_metadata_file": write_metadata_file}
    numparq.to_parquet(of.to_pandas(), tmp_path / "a", **options)
    partitioned_tables.assert_same_rows(read_fastparquet(tmp_path / "a"), of)
