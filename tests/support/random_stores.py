"""Random datasets with a data-skipping store: reads with the store against reads without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import ParquetError
from numparq.format.open_file import OpenFile
from numparq.skipping import BloomFilter, MinMax, Store, ValueList, index_files
from numparq.skipping.cell_types import cell_type

from .filters.literals import pick
from .filters.random_predicates import random_predicate
from .filters.tables import RandomTable, num_rows, random_table
from .filters.writers import random_options, write_table

BLOOM_TYPES = ("byte", "short", "integer", "long", "string")


@contextmanager
def recent_files() -> Iterator[None]:
    """Index files at once, although they have just been written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_files, "_QUIET_SECONDS", -3600.0)
        yield


def rows_of(table: RandomTable, start: int, stop: int) -> RandomTable:
    return {name: replace(column, values=list(column.values)[start:stop]) for name, column in table.items()}


def write_dataset(rng: np.random.Generator, folder: Path, writer: str) -> RandomTable:
    """Write a random table as several files, some in partitions; return the table."""
    table = random_table(rng, writer, most_rows=int(rng.choice([20, 200])))
    count = num_rows(table)
    cuts = sorted({0, count, *rng.integers(0, count + 1, 12).tolist()})
    is_partitioned = rng.random() < 0.3
    for number, (start, stop) in enumerate(zip(cuts, cuts[1:] or cuts, strict=False)):
        part = rows_of(table, start, stop)
        path = folder / (f"key={number % 3}" if is_partitioned else "") / f"{number:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write_table(part, writer, random_options(rng, part, writer)))
    return table


def random_indexes(rng: np.random.Generator, path: Path) -> list[Any]:
    """Draw indexes that the columns of a file can have."""
    with closing(OpenFile(path.read_bytes())) as file:
        indexes = []
        for leaf in map(file.schema.leaf, range(file.schema.num_leaves)):
            if leaf.max_repetition_level or any("." in step for step in leaf.path):
                continue
            try:
                kind, _ = cell_type(leaf)
            except ParquetError:
                continue
            kinds = [MinMax, ValueList] + [BloomFilter] * (kind.spark in BLOOM_TYPES)
            chosen = rng.permutation(len(kinds))[: int(rng.integers(1, len(kinds) + 1))]
            indexes += [kinds[number](leaf.name) for number in chosen.tolist()]
    lower = [(index.name, index.column.lower()) for index in indexes]
    return [index for index, key in zip(indexes, lower, strict=True) if lower.count(key) == 1]


def outcome(read: Any) -> pd.DataFrame | str:
    """Return a read's frame, or the name of its error's class."""
    try:
        return read()
    except (ParquetError, ValueError, TypeError) as error:
        return type(error).__name__


def check_seed(seed: int, folder: Path, writers: tuple[str, ...], asks: int = 8) -> tuple[int, int]:
    """Compare reads; return how many files stores let skip, and how many there were."""
    rng = np.random.default_rng([seed, 77])
    dataset = folder / "data"
    dataset.mkdir()
    table = write_dataset(rng, dataset, pick(rng, *writers))
    files = sorted(dataset.rglob("*.parquet"))
    with recent_files():
        store = Store.build(dataset, base=folder / "stores", indexes=random_indexes(rng, files[-1]))
    skipped = total = 0
    for number in range(asks):
        predicate = random_predicate(rng, table)
        expression = predicate.expression()
        columns = None if rng.random() < 0.5 else [name for name in table if rng.random() < 0.6]
        want = outcome(lambda: numparq.read_parquet(dataset, columns, filters=expression))  # noqa: B023
        got = outcome(lambda: numparq.read_parquet(dataset, columns, filters=expression, skipping=store))  # noqa: B023
        try:
            if isinstance(want, str) or isinstance(got, str):
                assert repr(want) == repr(got)
            else:
                pd.testing.assert_frame_equal(got, want, check_exact=True)
        except AssertionError as error:
            error.add_note(f"seed {seed}, case {number}: {expression!r}, columns {columns}\n{store.describe()}")
            raise
        selection = store.select(expression)
        skipped += len(selection.skipped)
        total += len(files)
    return skipped, total
