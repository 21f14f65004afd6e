"""Small files by pyarrow that together have every kind of page and column."""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Callable
from typing import Any

import numpy as np

WORDS = ["", "a", "bb", "grün", "中文", "a longer string, of more than thirty-two bytes", "x" * 70]


def _table(rows: int, nulls: bool) -> Any:
    """Return a table with a column of every physical type and most logical types."""
    import pyarrow as pa

    rng = np.random.default_rng(rows)
    missing = rng.random(rows) < 0.3 if nulls else np.zeros(rows, bool)

    def column(arrow_type: Any, values: list) -> Any:
        return pa.array([None if null else value for value, null in zip(values, missing, strict=True)], arrow_type)

    numbers = rng.integers(-100, 100, rows).tolist()
    words = [WORDS[i] for i in rng.integers(0, len(WORDS), rows)]
    moments = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=number) for number in numbers]
    return pa.table(
        {
            "bool": column(pa.bool_(), [number > 0 for number in numbers]),
            "int8": column(pa.int8(), numbers),
            "int32": column(pa.int32(), numbers),
            "int64": column(pa.int64(), [number * 10**15 for number in numbers]),
            "uint64": column(pa.uint64(), [abs(number) for number in numbers]),
            "float": column(pa.float32(), numbers),
            "double": column(pa.float64(), numbers),
            "half": column(pa.float16(), [np.float16(number) for number in numbers]),
            "string": column(pa.string(), words),
            "binary": column(pa.binary(), [word.encode() for word in words]),
            "fixed": column(pa.binary(5), [f"{number:5d}".encode() for number in numbers]),
            "date": column(pa.date32(), [moment.date() for moment in moments]),
            "time": column(pa.time64("us"), [moment.time() for moment in moments]),
            "moment": column(pa.timestamp("us", "Europe/Paris"), moments),
            "span": column(pa.duration("ns"), [datetime.timedelta(hours=number) for number in numbers]),
            "decimal": column(pa.decimal128(9, 2), [decimal.Decimal(number) / 4 for number in numbers]),
            "category": column(pa.string(), words).dictionary_encode(),
            "nothing": pa.nulls(rows),
        }
    )


def _nested(rows: int) -> Any:
    """Return a table of lists, structs and maps, also nested in each other."""
    import pyarrow as pa

    rng = np.random.default_rng(rows)

    def some(make: Callable[[], Any], most: int = 3) -> Any:
        return None if rng.random() < 0.2 else [make() for _ in range(rng.integers(0, most + 1))]

    def number() -> int | None:
        return None if rng.random() < 0.3 else int(rng.integers(-100, 100))

    def word() -> str:
        return WORDS[rng.integers(0, len(WORDS))]

    def struct() -> dict | None:
        moment = datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(rng.integers(0, 100)))
        return None if rng.random() < 0.2 else {"n": number(), "w": word(), "t": moment, "l": some(number)}

    kind = pa.struct(
        [("n", pa.int64()), ("w", pa.string()), ("t", pa.timestamp("us", "Europe/Paris")), ("l", pa.list_(pa.int32()))]
    )
    return pa.table(
        {
            "list": pa.array([some(number) for _ in range(rows)], pa.list_(pa.int64())),
            "words": pa.array([some(word) for _ in range(rows)], pa.large_list(pa.string())),
            "struct": pa.array([struct() for _ in range(rows)], kind),
            "structs": pa.array([some(struct) for _ in range(rows)], pa.list_(kind)),
            "map": pa.array([some(lambda: (word(), number())) for _ in range(rows)], pa.map_(pa.string(), pa.int64())),
            "lists": pa.array([some(lambda: some(number)) for _ in range(rows)], pa.list_(pa.list_(pa.float32()))),
            "fixed": pa.array([[number(), number()] for _ in range(rows)], pa.list_(pa.int16(), 2)),
            "flat": pa.array([number() for _ in range(rows)]),
        }
    )


def _pairs() -> bytes:
    """Write a column that is a struct only in the file."""
    import pandas as pd

    import numparq

    intervals = pd.arrays.IntervalArray.from_tuples([(0.0, 1.0), None, (2.0, 3.0)])
    index = pd.IntervalIndex.from_breaks(range(4))
    frame = pd.DataFrame({"i": intervals, "c": [1 + 2j, complex("nan"), 0j]}, index=index)
    return numparq.to_parquet(frame)


def _alp(**options: Any) -> bytes:
    """Write floats with ALP integers, and some exceptions."""
    import pandas as pd

    import numparq

    decimals = [number / 100 for number in range(50)]
    frame = pd.DataFrame(
        {
            "x": [*decimals[2:], -0.0, float("inf")],
            "y": pd.array(decimals, "Float32"),
            "z": [[number, 1 / 3] for number in decimals],
        }
    )
    frame.loc[::7, "y"] = None
    return numparq.to_parquet(frame, column_encoding="ALP", max_rows_per_page=20, **options)


def _few_columns(rows: int, nulls: bool) -> Any:
    return _table(rows, nulls).select(["int64", "string", "bool", "category"])


def write_by_pyarrow(table: Any, **options: Any) -> bytes:
    """Write a table with pyarrow."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


# The encodings, besides PLAIN and dictionaries, of the columns of `_table`.
_DELTA = {
    **dict.fromkeys(("int8", "int32", "int64", "uint64", "date", "time", "moment", "span"), "DELTA_BINARY_PACKED"),
    **dict.fromkeys(("float", "double", "half"), "BYTE_STREAM_SPLIT"),
    **dict.fromkeys(("string", "fixed", "decimal"), "DELTA_BYTE_ARRAY"),
    "binary": "DELTA_LENGTH_BYTE_ARRAY",
}


def _delta(rows: int, nulls: bool, **options: Any) -> bytes:
    table = _table(rows, nulls).select(list(_DELTA))
    return write_by_pyarrow(table, use_dictionary=False, column_encoding=_DELTA, **options)


def _frame() -> bytes:
    """Write a frame that uses every part of the pandas metadata."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.Categorical(["x", None, "y"], ordered=True),
            "c": pd.date_range("2020", periods=3, tz="Europe/Paris"),
            "d": pd.period_range("2020", periods=3, freq="M"),
            "e": pd.array(["x", None, "z"], dtype="string"),
        },
        index=pd.MultiIndex.from_arrays([[1, 2, 3], list("pqr")], names=["n", None]),
    )
    frame.attrs = {"k": [1]}
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow")
    return buffer.getvalue()


def _no_rows() -> bytes:
    return write_by_pyarrow(_table(3, True).slice(0, 0))


def _no_columns() -> bytes:
    import pandas as pd

    buffer = io.BytesIO()
    pd.DataFrame(index=range(3)).to_parquet(buffer, engine="pyarrow")
    return buffer.getvalue()


# Name -> what makes the file's bytes.
SAMPLES: dict[str, Callable[[], bytes]] = {
    "every type": lambda: write_by_pyarrow(_table(20, False), compression="none", use_dictionary=False),
    "every type, nulls": lambda: write_by_pyarrow(_table(20, True), compression="snappy"),
    "every type, V2": lambda: write_by_pyarrow(_table(20, True), compression="zstd", data_page_version="2.0"),
    "checksums": lambda: write_by_pyarrow(_few_columns(60, True), compression="snappy", write_page_checksum=True),
    "checksums, V2": lambda: write_by_pyarrow(
        _few_columns(60, True), compression="snappy", write_page_checksum=True, data_page_version="2.0"
    ),
    "row groups": lambda: write_by_pyarrow(_few_columns(50, True), compression="none", row_group_size=11),
    "pages": lambda: write_by_pyarrow(
        _few_columns(300, True),
        compression="snappy",
        data_page_size=100,
        write_batch_size=10,
        use_dictionary=["string"],
    ),
    "dictionary given up": lambda: write_by_pyarrow(
        _few_columns(300, False),
        compression="none",
        data_page_size=200,
        write_batch_size=20,
        dictionary_pagesize_limit=150,
    ),
    "delta": lambda: _delta(20, False, compression="none"),
    "delta, nulls": lambda: _delta(200, True, compression="snappy", data_page_size=100, write_batch_size=10),
    "delta, V2": lambda: _delta(20, True, compression="zstd", data_page_version="2.0"),
    "alp": lambda: _alp(compression=None, write_page_checksum=False),
    "alp, V2": lambda: _alp(write_page_checksum=False, data_page_version="2.0"),
    "gzip": lambda: write_by_pyarrow(_few_columns(60, True), compression="gzip"),
    "brotli": lambda: write_by_pyarrow(_few_columns(60, True), compression="brotli"),
    "lz4": lambda: write_by_pyarrow(_few_columns(60, True), compression="lz4", data_page_version="2.0"),
    "zstd": lambda: write_by_pyarrow(_few_columns(60, True), compression="zstd"),
    "page index": lambda: write_by_pyarrow(_few_columns(60, True), write_page_index=True, compression="none"),
    "int96": lambda: write_by_pyarrow(
        _table(20, True).select(["moment", "int32"]), use_deprecated_int96_timestamps=True, compression="none"
    ),
    "no Arrow schema": lambda: write_by_pyarrow(
        _table(20, True), store_schema=False, version="1.0", compression="none"
    ),
    "required": lambda: write_by_pyarrow(_required(), compression="none"),
    "nested": lambda: write_by_pyarrow(_nested(20), compression="none", use_dictionary=False),
    "nested, pages": lambda: write_by_pyarrow(_nested(60), compression="snappy", data_page_size=60, write_batch_size=5),
    "nested, V2": lambda: write_by_pyarrow(_nested(40), compression="none", data_page_version="2.0", row_group_size=15),
    "nested, delta": lambda: write_by_pyarrow(
        _nested(20),
        compression="none",
        use_dictionary=False,
        store_schema=False,
        column_encoding={"list.list.element": "DELTA_BINARY_PACKED", "words.list.element": "DELTA_BYTE_ARRAY"},
    ),
    "pairs": _pairs,
    "pandas": _frame,
    "no rows": _no_rows,
    "no columns": _no_columns,
}


def _required() -> Any:
    import pyarrow as pa

    table = _few_columns(40, False)
    return table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))
