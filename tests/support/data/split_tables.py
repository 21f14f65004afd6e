"""Random tables in a folder for tests of splits: several schemas, writers and layouts."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import numparq
from numparq import col
from numparq.dataset.splits.split import Split

Rng = np.random.Generator
START, HOUR = datetime.datetime(2020, 1, 1), datetime.timedelta(hours=1)


def pick(rng: Rng, *items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


def _maybe(rng: Rng, values: list[Any]) -> list[Any]:
    """Return the values, with nulls in some of them or without any."""
    share = pick(rng, 0, 0, 0.2)
    return [None if rng.random() < share else value for value in values]


def _table(rng: Rng, rows: int, first_row: int) -> pa.Table:
    """Return the rows of one file; `id` numbers rows over all files."""
    numbers = rng.integers(-50, 50, rows).tolist()
    made = {
        "i": pa.array(_maybe(rng, numbers), pick(rng, pa.int8(), pa.int32(), pa.int64())),
        "f": pa.array(_maybe(rng, [number / 4 for number in numbers]), pick(rng, pa.float32(), pa.float64())),
        "s": pa.array(_maybe(rng, [f"text {number % 7}" for number in numbers]), pa.string()),
        "c": pa.array(_maybe(rng, [f"word {number % 3}" for number in numbers]), pa.string()).dictionary_encode(),
        "b": pa.array(_maybe(rng, [number % 2 == 0 for number in numbers]), pa.bool_()),
        "t": pa.array(_maybe(rng, [START + number * HOUR for number in numbers]), pa.timestamp("us")),
        "d": pa.array(_maybe(rng, [Decimal(number) / 2 for number in numbers]), pa.decimal128(9, 2)),
        "l": pa.array(_maybe(rng, [list(range(number % 4)) for number in numbers]), pa.list_(pa.int32())),
        "st": pa.array(
            [{"x": number, "y": str(number)} for number in numbers], pa.struct({"x": pa.int64(), "y": pa.string()})
        ),
    }
    fields = [pa.field("id", pa.int64(), nullable=False)]
    names = [name for name in made if rng.random() < 0.85]
    fields += [pa.field(name, made[name].type) for name in names]
    ids = pa.array(range(first_row, first_row + rows), pa.int64())
    return pa.Table.from_arrays([ids, *(made[name] for name in names)], schema=pa.schema(fields))


def _write(rng: Rng, table: pa.Table, path: Path, int96: bool) -> None:
    rows, page = int(rng.integers(3, 120)), int(rng.integers(30, 600))
    if rng.random() < 0.4 and not int96:
        frame = table.to_pandas(types_mapper=pd.ArrowDtype)
        if rng.random() < 0.3:
            frame = frame.set_index("id")
        numparq.to_parquet(frame, path, row_group_size=rows, data_page_size=page)
        return
    pq.write_table(
        table,
        path,
        row_group_size=rows,
        data_page_size=page,
        write_batch_size=pick(rng, 7, 40),
        compression="NONE",
        use_dictionary=bool(rng.random() < 0.6),
        write_page_index=bool(rng.random() < 0.6),
        use_deprecated_int96_timestamps=int96,
        store_schema=True,
    )


def _partition(rng: Rng, layout: str) -> str:
    number = pick(rng, "p=1", "p=2", "p=10", "p=__HIVE_DEFAULT_PARTITION__")
    return {"flat": ".", "one": number, "two": f"{number}/q={pick(rng, 'a', 'b c', '7')}"}[layout]


def random_table(rng: Rng, folder: Path) -> None:
    """Write the files of a random table."""
    layout, int96 = pick(rng, "flat", "one", "two"), bool(rng.random() < 0.2)
    first_row = 0
    for number in range(int(rng.integers(1, 7))):
        rows = int(pick(rng, 0, 1, rng.integers(2, 60), rng.integers(60, 250)))
        place = folder / _partition(rng, layout)
        place.mkdir(parents=True, exist_ok=True)
        _write(rng, _table(rng, rows, first_row), place / f"{number}.parquet", int96)
        first_row += rows


def random_filter(rng: Rng, names: set[str]) -> Any:
    """Return a filter on existing columns, or None."""
    tests = [
        ("i", col("i") < int(rng.integers(-50, 50))),
        ("i", ~(col("i") == 3)),
        ("f", col("f").between(-1, 4)),
        ("s", col("s").isin(["text 1", "text 5"])),
        ("s", col("s").startswith("text 2")),
        ("b", col("b") == True),  # noqa: E712
        ("t", col("t") >= START),
        ("p", col("p") == 2),
        ("q", col("q") != "7"),
        ("l", col("l").is_null()),
        ("c", col("c") == "word 1"),
        ("id", col("id") < int(rng.integers(0, 400))),
        ("d", col("d").is_not_null()),
    ]
    there = [test for name, test in tests if name in names]
    if rng.random() < 0.3 or not there:
        return None
    one, other = pick(rng, *there), pick(rng, *there)
    return pick(rng, one, one & other, one | other)


def numbered_frame(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return a frame with rows numbered by `id`."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"id": np.arange(rows), "x": rng.random(rows), "s": rng.choice(["a", "bb"], rows)})


def thousands(folder: Path) -> Path:
    """Write four files of 1,000 rows in two partitions: ten row groups each, sorted by id."""
    for number in range(4):
        place = folder / f"p={number // 2}"
        place.mkdir(parents=True, exist_ok=True)
        frame = numbered_frame(1000, number)
        frame["id"] += number * 1000
        numparq.to_parquet(frame, place / f"{number}.parquet", row_group_size=100)
    return folder


def read_splits(table: Any, reader: Any = None) -> pd.DataFrame:
    """Read all splits of a table with a copy of its reader."""
    reader = reader or pickle.loads(pickle.dumps(table.reader))
    return pd.concat([reader.frame(split) for split in [*table.splits, Split()]], ignore_index=True)


def first_split_of(table: Any, name: str) -> Split:
    """Return the first split that begins with the named file."""
    return next(split for split in table.splits if split.files[0].endswith(name))


def comparable(value: Any) -> Any:
    """Return a value in comparable form: one null for all missing values, lists for arrays."""
    if isinstance(value, (list, np.ndarray, tuple)):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items()}
    return None if pd.isna(value) else value


def rows_of(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return values by column, including index levels other than a RangeIndex."""
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    return {str(name): [comparable(value) for value in frame[name].astype(object)] for name in frame.columns}
