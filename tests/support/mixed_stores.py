"""Small datasets of values that indexes get wrong easily, in files of several types, with a store."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import numparq
from numparq import col
from numparq.skipping import BloomFilter, GapList, MinMax, PrefixList, Store, SuffixList, ValueList

from .random_stores import outcome, recent_files

NAN = math.nan
NOON = datetime.datetime(2024, 1, 1, 12)
# By column: the types that a dataset may mix, and values.
COLUMNS: dict[str, tuple[list[list[pa.DataType]], list[Any]]] = {
    "f": (
        [[pa.float32()], [pa.float64()], [pa.float32(), pa.float64()]],
        [None, NAN, 0.0, -0.0, 0.1, 0.5, float(np.float32(0.1)), 1e10, -1.0, math.inf, 16777216.0],
    ),
    "i": (
        [[pa.int16()], [pa.int64()], [pa.int32(), pa.int64()], [pa.int16(), pa.float32()], [pa.int32(), pa.float64()]],
        [None, 0, 1, 2, 5, -7, 32767, 300],
    ),
    # Without nulls: beside them, a dtype follows from the values that a read decodes.
    "l": ([[pa.int64()], [pa.uint64()]], [2**53, 2**53 + 1, 2**53 - 1, 2**62, 2**63 - 1, 0]),
    "s": (
        [[pa.string()]],
        [None, "", "a", "ab", "b", "a\ue000", "a\U00010000", "\U00010000", "\uffff", "é", "a" * 40],
    ),
    "t": (
        [
            [pa.timestamp("ns")],
            [pa.timestamp("us")],
            [pa.timestamp("us", "Europe/Berlin")],
            [pa.timestamp("ms", "UTC")],
        ],
        [
            None,
            NOON,
            NOON + datetime.timedelta(hours=1),
            NOON + datetime.timedelta(days=2),
            datetime.datetime(1950, 1, 1),
        ],
    ),
    "d": ([[pa.decimal128(9, 2)], [pa.decimal128(20, 2)]], [None, Decimal("0.1"), Decimal("0.10"), Decimal(5)]),
}
BLOOMS = ("i", "s")


def _file(rng: np.random.Generator, types: dict[str, list[pa.DataType]]) -> pa.Table:
    rows = int(rng.integers(0, 4))
    arrays = {}
    for name, kinds in types.items():
        kind = kinds[int(rng.integers(len(kinds)))]
        pool = COLUMNS[name][1]
        few = [pool[at] for at in rng.integers(0, len(pool), 2)]
        values = [few[at] for at in rng.integers(0, 2, rows)]
        if pa.types.is_floating(kind) and name == "i":
            values = [None if value is None else float(value) for value in values]
        arrays[name] = pa.array(values, kind)
    return pa.table(arrays)


def _literal(rng: np.random.Generator, name: str) -> Any:
    pool = [value for value in COLUMNS[name][1] if value is not None]
    value = pool[int(rng.integers(len(pool)))]
    how = int(rng.integers(4))
    if name == "t":
        return [value, value.replace(tzinfo=datetime.UTC), value.isoformat(), value.date()][how]
    if name in ("f", "l", "i") and not (isinstance(value, float) and not math.isfinite(value)):
        return [value, float(value), value + rng.choice([0, 0.5, 0.001]), np.float32(value)][how]
    return value


def _predicate(rng: np.random.Generator, depth: int = 0) -> Any:
    if depth < 2 and rng.random() < 0.35:
        first, second = (_predicate(rng, depth + 1) for _ in range(2))
        return first & second if rng.random() < 0.6 else first | second
    name = str(rng.choice(list(COLUMNS)))
    column = col(name)
    kind = int(rng.integers(11))
    literal = _literal(rng, name)
    if kind < 6:
        made = [
            column == literal,
            column != literal,
            column < literal,
            column <= literal,
            column > literal,
            column >= literal,
        ]
        predicate = made[kind]
    elif kind == 6:
        predicate = column.isin([literal, _literal(rng, name)])
    elif kind == 7:
        predicate = column.between(literal, _literal(rng, name))
    elif kind == 8:
        predicate = column.is_null() if rng.random() < 0.5 else column.is_not_null()
    elif kind == 9:
        text = ["a%", "%b", "%\ue000", "a_", "%a%", "_"][int(rng.integers(6))]
        predicate = column.is_nan() if name != "s" else column.like(text)
    else:
        other = col({"f": "i", "i": "f", "l": "i"}.get(name, name))
        predicate = column < other if rng.random() < 0.5 else column == other
    return ~predicate if rng.random() < 0.3 else predicate


def check_seed(seed: int, folder: Path, asks: int) -> int:
    """Compare reads with a store and without; return how many files were skipped."""
    rng = np.random.default_rng([seed, 99])
    data = folder / "data"
    data.mkdir()
    types = {name: choices[int(rng.integers(len(choices)))] for name, (choices, _) in COLUMNS.items()}
    for number in range(10):
        pq.write_table(
            _file(rng, types),
            data / f"{number}.parquet",
            row_group_size=2,
            write_statistics=bool(rng.random() < 0.8),
            use_dictionary=bool(rng.random() < 0.5),
        )
    indexes: list[Any] = []
    for name in COLUMNS:
        kinds = [MinMax, ValueList, *([BloomFilter] if name in BLOOMS else [])]
        kinds += [PrefixList, SuffixList] if name == "s" else [GapList]
        indexes += [kind(name) for kind in kinds if rng.random() < (0.6 if seed % 2 else 0.3)]
        if rng.random() < 0.3:
            indexes.append(PrefixList(name, 1) if name == "s" else GapList(name, 1))
    indexes = [*{(index.name, index.column): index for index in indexes}.values()]
    with recent_files():
        store = Store.build(data, base=folder, indexes=indexes or [MinMax("s")])
    skipped = 0
    for number in range(asks):
        predicate = _predicate(rng)
        want = outcome(lambda: numparq.read_parquet(data, filters=predicate))  # noqa: B023
        got = outcome(lambda: numparq.read_parquet(data, filters=predicate, skipping=store))  # noqa: B023
        try:
            if isinstance(want, str) or isinstance(got, str):
                assert repr(want) == repr(got)
            else:
                pd.testing.assert_frame_equal(got, want, check_exact=True)
        except AssertionError as error:
            error.add_note(f"seed {seed}, case {number}: {predicate!r}, types {types}\n{store.describe()}")
            raise
        skipped += len(store.select(predicate).skipped)
    return skipped
