"""Small row groups are filtered together: rows, values and errors are those of each by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.errors import CorruptPageError, UnsupportedError
from numparq.scan import filter_rows

ROWS = 700
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "n": RNG.integers(0, 9, ROWS),
        "x": np.where(RNG.random(ROWS) < 0.2, np.nan, RNG.random(ROWS)),
        "m": pd.Series(RNG.integers(0, 50, ROWS), dtype="Int32").mask(RNG.random(ROWS) < 0.3),
        "s": [None if row % 11 == 0 else f"v{row * 7 % 40}" for row in range(ROWS)],
        "c": pd.Categorical([f"c{row % 5}" for row in range(ROWS)]),
        "l": [[row % 6, row % 4] for row in range(ROWS)],
    }
)
PREDICATES = {
    "number": (col("n") == 3, lambda d: d.n == 3),
    "nulls": (col("m") < 20, lambda d: (d.m < 20).fillna(False).astype(bool)),
    "string": (col("s") == "v7", lambda d: d.s == "v7"),
    "two strings": ((col("s") > "v2") & (col("c") == "c1"), lambda d: (d.s.fillna("") > "v2") & (d.c == "c1")),
    "conjuncts": (
        (col("n") < 6) & (col("m") >= 9) & (col("s") != "v0"),
        lambda d: (d.n < 6) & (d.m >= 9).fillna(False).astype(bool) & d.s.notna() & (d.s != "v0"),
    ),
    "either": ((col("n") == 1) | (col("x") > 0.9), lambda d: (d.n == 1) | (d.x > 0.9)),
    "list": (col("l").contains(5) & (col("n") > 2), lambda d: d.l.map(lambda some: 5 in some) & (d.n > 2)),
    "none": ((col("n") == 3) & (col("s") == "absent"), lambda d: d.n < 0),
}


@pytest.fixture(scope="module", params=[3, 50])
def data(request):
    return numparq.to_parquet(FRAME, row_group_size=request.param, max_rows_per_page=20, use_dictionary=["c", "n"])


@pytest.mark.parametrize("name", PREDICATES)
@pytest.mark.parametrize("options", [{}, {"nrows": 40}, {"threads": 1}, {"row_range": (31, 655)}], ids=repr)
def test_small_row_groups(data, name, options):
    predicate, truth = PREDICATES[name]
    whole = numparq.read_parquet(data)
    start, stop = options.get("row_range", (0, ROWS))
    expected = whole[start:stop][truth(FRAME[start:stop]).to_numpy()].reset_index(drop=True)
    found = numparq.read_parquet(data, filters=predicate, **options)
    pd.testing.assert_frame_equal(found, expected[: options.get("nrows")])
    part = numparq.read_parquet(data, ["x", "c"], filters=predicate, **options)
    pd.testing.assert_frame_equal(part, found[["x", "c"]])


def test_batches_of_row_groups(monkeypatch):
    decoded = []
    match = filter_rows.FilterColumns.match

    def recorded(self, step, selections, *more):
        decoded.append([selection.row_group for selection in selections])
        return match(self, step, selections, *more)

    monkeypatch.setattr(filter_rows.FilterColumns, "match", recorded)
    monkeypatch.setattr(filter_rows, "BATCH_ROWS", 100)
    frame = pd.DataFrame({"n": np.arange(300) % 7})
    for size, expected in (
        (40, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (50, [[0, 1], [2, 3], [4, 5]]),
        (100, [[0], [1], [2]]),
        (150, [[0], [1]]),
    ):
        decoded.clear()
        assert len(numparq.read_parquet(numparq.to_parquet(frame, row_group_size=size), filters=col("n") == 3)) == 43
        assert sorted(decoded) == expected


def test_error_names_the_row_group_that_is_damaged():
    written = bytearray(numparq.to_parquet(FRAME[["n", "x"]], row_group_size=10, use_dictionary=False))
    with numparq.ParquetFile(bytes(written)) as file:
        chunk = file.metadata.row_groups[37].columns[0].meta_data
    written[chunk.data_page_offset + chunk.total_compressed_size - 2] ^= 0x55
    with pytest.raises(CorruptPageError) as caught:
        numparq.read_parquet(bytes(written), filters=col("n") == 3)
    assert (caught.value.where["row_group"], caught.value.where["column"]) == (37, "n")


def test_error_of_a_batch_names_the_row_group(monkeypatch):
    match = filter_rows.FilterColumns.match

    def refusing(self, step, selections, *more):
        if any(selection.row_group in (37, 41) for selection in selections):
            raise UnsupportedError("refused")
        return match(self, step, selections, *more)

    monkeypatch.setattr(filter_rows.FilterColumns, "match", refusing)
    with pytest.raises(UnsupportedError, match="refused") as caught:
        numparq.read_parquet(numparq.to_parquet(FRAME, row_group_size=10), filters=col("n") == 3)
    assert caught.value.where["row_group"] == 37
