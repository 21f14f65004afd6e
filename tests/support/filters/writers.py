"""Random write options for each writer."""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import numparq

from .column_kinds import KINDS
from .literals import pick
from .tables import RandomTable, TableColumn, arrow_table, num_rows

Rng = np.random.Generator
Options = dict[str, Any]


def write_table(table: RandomTable, writer: str, options: Options) -> bytes:
    """Write a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _WRITERS[writer](table, dict(options))


def random_options(rng: Rng, table: RandomTable, writer: str) -> Options:
    return _OPTIONS[writer](rng, table)


def has_statistics(writer: str, options: Options) -> bool:
    """Whether the file has trusted null counts for all columns."""
    return writer in ("numparq", "pyarrow") and options.get("write_statistics", True) is True


def _group_size(rng: Rng, table: RandomTable) -> int:
    rows = num_rows(table)
    return max(int(pick(rng, rows, rows // 2 + 1, rows // 4 + 1, rows // 10 + 1)), 5)


# --- numparq ----------------------------------------------------------------------------------------------------------


def _by_numparq(table: RandomTable, options: Options) -> bytes:
    made = arrow_table(table)
    as_arrow = options.pop("arrow_dtypes")
    frame = made.to_pandas(types_mapper=pd.ArrowDtype) if as_arrow else made.to_pandas(integer_object_nulls=True)
    index = options.pop("index")
    # Without a schema, nothing tells the pairs of a map from lists of two things.
    if index and not any(pa.types.is_map(field.type) for field in made.schema):
        frame = frame.set_index(index)
        return numparq.to_parquet(frame, **options)
    return numparq.to_parquet(frame, schema=made.schema, **options)


_ENCODINGS = (
    "PLAIN",
    "RLE_DICTIONARY",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "BYTE_STREAM_SPLIT",
    "RLE",
)


def _for_numparq(rng: Rng, table: RandomTable) -> Options:
    floats = [name for name, column in table.items() if column.kind in ("float", "double")]
    options: Options = {
        "row_group_size": _group_size(rng, table),
        "max_rows_per_page": int(pick(rng, 3, 10, 10, 64, 20_000)),
        "data_page_size": int(pick(rng, 1, 100, 1000, 1 << 20, 1 << 20)),
        "data_page_version": pick(rng, "1.0", "2.0"),
        "compression": pick(rng, None, "snappy", "zstd"),
        "use_dictionary": pick(rng, True, True, False),
        "dictionary_pagesize_limit": int(pick(rng, 1 << 20, 1 << 20, 200)),
        "write_statistics": pick(rng, True, True, True, False, list(table)[:1]),
        "write_page_index": pick(rng, True, True, False),
        "column_order": pick(rng, "type", "ieee754"),
        "store_schema": _only_arrow_knows(table) or pick(rng, True, True, True, False),
        "threads": 1,
        "arrow_dtypes": pick(rng, True, False),
        "index": pick(rng, None, *_index_columns(table)) if rng.random() < 0.2 else None,
    }
    if rng.random() < 0.3:
        options["column_encoding"] = pick(rng, *_ENCODINGS) if rng.random() < 0.8 or not floats else {floats[0]: "ALP"}
        options["use_dictionary"] = False
    if rng.random() < 0.4:
        options["bloom_filter_options"] = {
            name: pick(rng, True, {"fpp": 0.2}, {"ndv": 3})
            for name, column in table.items()
            if column.kind not in ("bool", "nothing", "map") and not column.about.fields and rng.random() < 0.7
        }
    if not all(_survives_numpy(column) for column in table.values()):
        options["arrow_dtypes"], options["index"] = True, None
    return options


def _only_arrow_knows(table: RandomTable) -> bool:
    """Whether the table has durations, which Parquet lacks."""
    return any(column.kind in ("span", "spanns") for column in table.values())


def _has_zones(table: RandomTable) -> bool:
    """Whether the table has UTC timestamps, which INT96 cannot mark."""
    return any(getattr(column.about.arrow, "tz", None) for column in table.values())


def _index_columns(table: RandomTable) -> list[str]:
    """Return columns for the index: no integers, which may become a RangeIndex, and no float16."""
    return [
        name for name, column in table.items() if not pa.types.is_integer(column.about.arrow) and column.kind != "half"
    ]


def _survives_numpy(column: TableColumn) -> bool:
    """Whether NumPy dtypes and objects keep values, NaNs and nulls."""
    about = column.about
    if column.kind in ("clockns", "uuid", "nothing", "category") or about.fields or about.element is not None:
        return False
    return not about.is_float or not any(value is not None and value != value for value in column.values)


# --- pyarrow ----------------------------------------------------------------------------------------------------------


def _by_pyarrow(table: RandomTable, options: Options) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(arrow_table(table), buffer, **options)
    return buffer.getvalue()


def _for_pyarrow(rng: Rng, table: RandomTable) -> Options:
    options: Options = {
        "row_group_size": _group_size(rng, table),
        "data_page_size": int(pick(rng, 1, 100, 1000, 1 << 20)),
        "write_batch_size": int(pick(rng, 1, 10, 10, 64, 1024)),
        "data_page_version": pick(rng, "1.0", "2.0"),
        "compression": pick(rng, "none", "snappy", "zstd"),
        "use_dictionary": pick(rng, True, True, False, list(table)[::2]),
        "dictionary_pagesize_limit": int(pick(rng, 1 << 20, 50, 500)),
        "write_statistics": pick(rng, True, True, True, False, list(table)[:1]),
        "write_page_index": pick(rng, True, True, True, False),
        "write_page_checksum": pick(rng, True, False),
        "store_schema": _only_arrow_knows(table) or pick(rng, True, True, False),
        "store_decimal_as_integer": pick(rng, True, False),
        "use_deprecated_int96_timestamps": not _has_zones(table) and pick(rng, False, False, False, True),
    }
    if num_rows(table) > 1000:
        options["write_batch_size"] = max(options["write_batch_size"], 10)
    flat = [
        name
        for name, column in table.items()
        if column.kind not in ("bool", "nothing", "category", "map", "half")
        and not column.about.fields
        and column.about.element is None
    ]
    if flat and rng.random() < 0.4:
        options["bloom_filter_options"] = {
            name: pick(rng, True, {"ndv": 100, "fpp": 0.05}) for name in flat if rng.random() < 0.8
        }
    return options


# --- the others -------------------------------------------------------------------------------------------------------


def _by_polars(table: RandomTable, options: Options) -> bytes:
    import polars as pl

    buffer = io.BytesIO()
    pl.from_arrow(arrow_table(table)).write_parquet(buffer, **options)
    return buffer.getvalue()


def _for_polars(rng: Rng, table: RandomTable) -> Options:
    return {
        "row_group_size": _group_size(rng, table),
        "data_page_size": int(pick(rng, 50, 200, 1000, 1 << 20)),
        "statistics": pick(rng, True, True, "full", False),
        "compression": pick(rng, "uncompressed", "snappy", "zstd"),
    }


def _by_duckdb(table: RandomTable, options: Options) -> bytes:
    import duckdb

    given = ", ".join(f"{name} {value}" for name, value in options.items())
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as connection:
        path = Path(folder) / "made.parquet"
        connection.register("given", arrow_table(table))
        connection.execute(f"COPY (SELECT * FROM given) TO '{path}' (FORMAT parquet, {given})")
        return path.read_bytes()


def _for_duckdb(rng: Rng, table: RandomTable) -> Options:
    return {
        "ROW_GROUP_SIZE": int(pick(rng, 2048, 100_000)),
        "COMPRESSION": pick(rng, "uncompressed", "snappy", "zstd"),
        "PARQUET_VERSION": pick(rng, "V1", "V2"),
        "DICTIONARY_SIZE_LIMIT": int(pick(rng, 1, 50, 10_000)),
    }


_WRITERS = {"numparq": _by_numparq, "pyarrow": _by_pyarrow, "polars": _by_polars, "duckdb": _by_duckdb}
_OPTIONS = {"numparq": _for_numparq, "pyarrow": _for_pyarrow, "polars": _for_polars, "duckdb": _for_duckdb}


def writers_of(table: RandomTable) -> list[str]:
    return [writer for writer in _WRITERS if all(writer in KINDS[column.kind].writers for column in table.values())]
