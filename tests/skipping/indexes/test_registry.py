"""The table of indexes, and those of other packages."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from numparq import col
from numparq.skipping.indexes import registry
from support.store_parts import skipped, write_part


class Entry:
    """Entry point of a package with an index of lengths."""

    name = "length"

    def load(self):
        return Lengths


class Lengths:
    """Answers equality of texts by their lengths."""

    cost: ClassVar[int] = 0

    def may_match(self, cells, tests):
        (leaf,) = cells.rows.part.leaves(cells.index.column)
        lengths = cells.rows.column(leaf, cells.chosen).values
        may = np.ones(cells.count, np.bool_)
        for test in tests:
            if getattr(test, "op", "") == "==" and isinstance(test.operand, str):
                may &= lengths == len(test.operand)
        return may


def test_indexes_of_other_packages(tmp_path, monkeypatch):
    asked = []

    def entry_points(group, name):
        asked.append((group, name))
        return [Entry()] if name == "length" else []

    monkeypatch.setattr(registry, "entry_points", entry_points)
    registry.cell_reader.cache_clear()
    cells = {"c": pa.array([3, 4], pa.int64()), "d": pa.array([3, 4], pa.int64())}
    write_part(tmp_path, {"c": ("length", "x"), "d": ("unknown", "y")}, cells)
    assert skipped(tmp_path, col("x") == "abc") == "b"
    assert skipped(tmp_path, col("y") == "abc") == ""
    assert set(asked) == {("numparq.skipping_indexes", "length"), ("numparq.skipping_indexes", "unknown")}
    registry.cell_reader.cache_clear()


def test_own_indexes():
    assert set(registry.CELL_READERS) == {"minmax", "valuelist", "bloomfilter", "gaplist", "prefixlist", "suffixlist"}
