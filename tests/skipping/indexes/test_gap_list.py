"""Gap lists: intervals between the largest gaps, and what they rule out."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import UnsupportedError, col
from numparq.skipping import GapList, Store
from support.random_stores import recent_files
from support.store_parts import skipped, write_part

x = col("x")


def intervals(kind, cells):
    return pa.array(
        [None if cell is None else [dict(zip(("min", "max"), each, strict=True)) for each in cell] for cell in cells],
        pa.list_(pa.field("element", pa.struct([("min", kind), ("max", kind)]))),
    )


def test_cells(tmp_path):
    cells = intervals(pa.int64(), [[(1, 3), (100, 100)], [(50, 60)], [], None])
    write_part(tmp_path, {"c": ("gaplist", "x")}, {"c": cells})
    assert skipped(tmp_path, x == 50) == "ac"
    assert skipped(tmp_path, (x > 3) & (x < 100)) == "ac"
    assert skipped(tmp_path, x > 60) == "bc"
    assert skipped(tmp_path, x != 50) == "c"
    assert skipped(tmp_path, x.is_not_null()) == "c"
    assert skipped(tmp_path, x.is_null()) == ""
    assert skipped(tmp_path, x == "text") == ""


def test_cells_of_floats(tmp_path):
    cells = intervals(pa.float64(), [[(1.0, 2.0), (math.nan, math.nan)], [(-0.0, 0.0)]])
    write_part(tmp_path, {"c": ("gaplist", "x")}, {"c": cells, "d": pa.array([1, 1])})
    assert skipped(tmp_path, x == 5) == "ab"
    assert skipped(tmp_path, x.is_nan()) == "b"
    assert skipped(tmp_path, ~(x < 5)) == "b"
    assert skipped(tmp_path, x == 0) == "a"


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_cells_of_other_shapes_say_nothing(tmp_path, kind):
    for number, cells in enumerate((pa.array([1], pa.int64()), pa.array([[1]]), intervals(kind, [[(None, None)]]))):
        write_part(tmp_path / str(number), {"c": ("gaplist", "x")}, {"c": cells})
        assert skipped(tmp_path / str(number), x == 5) == ("a" if number == 2 and kind == pa.int64() else "")


def test_built(tmp_path):
    (tmp_path / "d").mkdir()
    times = [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2), datetime.datetime(2030, 1, 1)]
    table = {"x": [1, 2, 1000], "t": times, "f": [1.0, math.nan, 9.0], "s": ["a"] * 3}
    pq.write_table(pa.table(table), tmp_path / "d/a.parquet")
    with recent_files():
        store = Store.build(tmp_path / "d", base=tmp_path, indexes=[GapList(name, 1) for name in "xtf"])
        with pytest.raises(UnsupportedError, match="numbers and times, not strings"):
            Store.build(tmp_path / "d", folder=tmp_path / "s", indexes=[GapList("s")])
        store.compact()
    assert numparq.read_parquet(store.folder)["x_gaplist_1"][0].tolist() == [
        {"min": 1, "max": 2},
        {"min": 1000, "max": 1000},
    ]
    assert len(store.select(x == 500).skipped) == 1
    assert len(store.select(x == 2).skipped) == 0
    assert len(store.select(col("t") == datetime.datetime(2027, 1, 1)).skipped) == 1
    assert len(store.select(col("f") == 5).skipped) == 1
    assert len(store.select(col("f").is_nan()).skipped) == 0
    frame = numparq.read_parquet(tmp_path / "d", filters=x == 500, skipping=store)
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(tmp_path / "d", filters=x == 500))
    assert np.all([index.params == {"io.numparq.index.gaplist.gaps": "1"} for index in store.indexes])
