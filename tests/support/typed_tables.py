"""Tables with columns of all types, and writers, for tests of what summaries and profiles say of them."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid

import numpy as np
import pandas as pd
import pytest

import numparq

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

EPOCH = datetime.datetime(1970, 1, 1)


def table(seed: int, count: int = 400) -> pa.Table:
    """Return columns of all types, with nulls, repeated values, NaNs and both zeros."""
    rng = np.random.default_rng(seed)

    def sample(values: list, kind: pa.DataType) -> pa.Array:
        picked = [values[at] for at in rng.integers(0, len(values), count)]
        empty = rng.random(count) < 0.1
        return pa.array([None if is_null else value for value, is_null in zip(picked, empty, strict=True)], kind)

    def numbers(low: int, high: int) -> list[int]:
        return [int(value) for value in rng.integers(low, high, 300)]

    moments = [EPOCH + datetime.timedelta(microseconds=n) for n in numbers(-(10**15), 10**15)]
    texts = ["".join(rng.choice(list("abcdé\U0001f600"), rng.integers(0, 90))) for _ in range(200)]
    return pa.table(
        {
            "i8": sample(numbers(-128, 128), pa.int8()),
            "u8": sample(numbers(0, 256), pa.uint8()),
            "i32": sample(numbers(-(2**31), 2**31), pa.int32()),
            "u32": sample(numbers(0, 2**32), pa.uint32()),
            "i64": sample(numbers(-(2**63), 2**63), pa.int64()),
            "u64": sample([0, 1, 2**63, 2**64 - 1, *numbers(0, 2**62)], pa.uint64()),
            "flag": sample([True, False], pa.bool_()),
            "f16": sample([np.float16(v) for v in (0.0, -0.0, 1.5, -7.25, math.nan)], pa.float16()),
            "f32": sample([0.0, -0.0, 1.5, 1e30, math.nan, -math.inf], pa.float32()),
            "f64": sample([*rng.normal(size=250).tolist(), math.nan, 0.0, -0.0], pa.float64()),
            "text": sample(texts, pa.string()),
            "bytes": sample([text.encode() for text in texts], pa.binary()),
            "fixed": sample([uuid.UUID(int=int(n)).bytes for n in rng.integers(0, 2**62, 250)], pa.binary(16)),
            "dec9": sample([decimal.Decimal(n).scaleb(-2) for n in numbers(-(10**8), 10**8)], pa.decimal128(9, 2)),
            "dec38": sample(
                [decimal.Decimal(n).scaleb(-3) for n in (*numbers(-(10**15), 10**15), 10**33, -(10**33))],
                pa.decimal128(38, 3),
            ),
            "date": sample([(EPOCH + datetime.timedelta(days=n)).date() for n in numbers(-9000, 9000)], pa.date32()),
            "time": sample([n * 1000 for n in numbers(0, 86_400_000)], pa.time64("us")),
            "ts": sample(moments, pa.timestamp("us")),
            "utc": sample(moments, pa.timestamp("us", "UTC")),
            "nothing": pa.nulls(count, pa.int32()),
            "empty": pa.nulls(count),
            "one": pa.array(["same"] * count),
            "list": sample([[1, 2, None], [], [7], None, [3] * 5], pa.list_(pa.int64())),
            "struct": sample(
                [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 5, "b": None}, None],
                pa.struct([("a", pa.int32()), ("b", pa.string())]),
            ),
        }
    )


def leaves(column: pa.ChunkedArray, name: str) -> dict[str, tuple[pa.Array, int]]:
    """Return the non-null values of each leaf column, and `num_values`."""
    if name == "list":
        flat = column.combine_chunks().flatten()
        num_values = sum(max(len(item), 1) if item is not None else 1 for item in column.to_pylist())
        return {"list.list.element": (flat.drop_null(), num_values)}
    if name == "struct":
        fields = {f"struct.{key}": [None if row is None else row[key] for row in column.to_pylist()] for key in "ab"}
        kinds = {"struct.a": pa.int32(), "struct.b": pa.string()}
        return {key: (pa.array(items, kinds[key]).drop_null(), len(items)) for key, items in fields.items()}
    return {name: (column.combine_chunks().drop_null(), len(column))}


WRITERS = {
    "numparq": lambda rows, path, rng: numparq.to_parquet(
        rows.to_pandas(types_mapper=pd.ArrowDtype),
        path,
        row_group_size=int(rng.integers(50, 500)),
        max_rows_per_page=37,
        use_dictionary=bool(rng.integers(2)),
        index=False,
        compression=str(rng.choice(["snappy", "zstd", "none"])),
    ),
    "pyarrow": lambda rows, path, rng: pq.write_table(
        rows,
        path,
        row_group_size=int(rng.integers(50, 500)),
        use_dictionary=bool(rng.integers(2)),
        write_page_index=bool(rng.integers(2)),
        data_page_size=500,
    ),
    "pyarrow without statistics": lambda rows, path, rng: pq.write_table(rows, path, write_statistics=False),
    "pyarrow, INT96": lambda rows, path, rng: pq.write_table(rows, path, use_deprecated_int96_timestamps=True),
}
