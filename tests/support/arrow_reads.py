"""Random Arrow tables written by pyarrow and read by numparq as Arrow data, compared with pyarrow's own reader.

``python -m support.arrow_reads FIRST COUNT`` checks the tables of these seeds in a process of its own, as pyarrow may
crash; it prints the first problem.
"""

from __future__ import annotations

import faulthandler
import io
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import numparq

from .data.arrow_types import random_table

READS: dict[str, Callable[[bytes], Any]] = {
    "frame": lambda data: _frame_columns(numparq.read_parquet(data, dtype_backend="pyarrow")),
    "stream": lambda data: _table_columns(pa.table(numparq.ParquetFile(data))),
    "batches": lambda data: _table_columns(numparq.ParquetFile(data).iter_batches(batch_rows=3).reader().read_all()),
}


def check_reads(first: int, count: int) -> str | None:
    """Check the tables of `count` seeds; return the first problem, with its seed."""
    for seed in range(first, first + count):
        table = random_table(np.random.default_rng(seed))
        try:
            check_table(table)
        except Exception:
            return f"seed {seed}: {table.schema}\n{traceback.format_exc()}"
    return None


def check_table(table: Any) -> None:
    """Check that every Arrow read of a table is valid, and equal to pyarrow's, if pyarrow can write and read it."""
    buffer = io.BytesIO()
    try:
        pq.write_table(table, buffer, row_group_size=7)
        expected = pq.read_table(buffer)
    except (pa.ArrowInvalid, NotImplementedError):
        return
    for way, read in READS.items():
        columns = read(buffer.getvalue())
        for name, got in zip(expected.schema.names, columns, strict=True):
            got.validate(full=True)
            assert got.to_pylist() == expected[name].to_pylist(), (way, name)
            wanted = _documented_type(expected[name].type, way != "frame")
            assert got.type == wanted, (way, name, got.type, wanted)


def _frame_columns(frame: Any) -> list[Any]:
    return [frame[name].array.__arrow_array__() for name in frame.columns]


def _table_columns(table: Any) -> list[Any]:
    table.validate(full=True)
    return table.columns


def _documented_type(kind: Any, is_stream: bool, is_nested: bool = False) -> Any:
    """Return the type that numparq reads: lists for list views, and 32-bit indices in nested columns of streams."""
    if pa.types.is_dictionary(kind) and is_stream and is_nested and kind.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
    if not pa.types.is_nested(kind):
        return kind

    def field(inner: Any) -> Any:
        return inner.with_type(_documented_type(inner.type, is_stream, True))

    if pa.types.is_struct(kind):
        return pa.struct([field(inner) for inner in kind])
    if pa.types.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field(kind.value_field), kind.list_size)
    return (pa.large_list if pa.types.is_large_list(kind) else pa.list_)(field(kind.value_field))


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(check_reads(int(sys.argv[1]), int(sys.argv[2])))
