"""Fixed-size ARRAY columns of DuckDB with nulls are read as DuckDB reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numparq

duckdb = pytest.importorskip("duckdb", minversion="1.4")

ROWS = 60
# Per type, an expression of the row number `i`, null at every third place of every level.
ELEMENT = "if(({0}) % 3 = 0, null, {0})"
INTS = f"[{ELEMENT.format('i')}, {ELEMENT.format('i + 1')}]"
ARRAYS = {
    "INT[2]": f"if(i % 4 = 1, null, {INTS})",
    "INT[2][2]": f"if(i % 5 = 1, null, [if(i % 3 = 1, null, {INTS}), {INTS}])",
    "INT[2][]": f"if(i % 5 = 1, null, if(i % 5 = 2, [], [{INTS}, if(i % 2 = 1, null, {INTS})]))",
    "INT[][2]": f"if(i % 5 = 1, null, [{INTS}, if(i % 2 = 1, null, [])])",
    "STRUCT(x INT[2], y INT)[2]": "if(i % 5 = 1, null, [if(i % 3 = 1, null, {x: if(i % 2 = 1, null, "
    f"{INTS}), y: i}}), null])",
    "VARCHAR[1]": "if(i % 4 = 1, null, [if(i % 3 = 1, null, 'x' || i)])",
}


def plain(value: Any) -> Any:
    """Return a value with lists for arrays and None for nulls."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return None if value is None or value != value else int(value) if not isinstance(value, str) else value


@pytest.mark.parametrize("version", ["V1", "V2"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_with_nulls(tmp_path, kind, version):
    path = str(tmp_path / "arrays.parquet")
    with duckdb.connect() as connection:
        query = f"select i, ({ARRAYS[kind]})::{kind} as a from range({ROWS}) t(i)"
        connection.execute(f"copy ({query}) to '{path}' (format parquet, parquet_version '{version}')")
        expected = [plain(row[0]) for row in connection.execute(f"select a from '{path}' order by i").fetchall()]
    assert None in expected
    assert [plain(value) for value in numparq.read_parquet(path)["a"]] == expected
    assert [plain(value) for value in numparq.read_parquet(path, row_range=(7, 30))["a"]] == expected[7:30]
    assert not [found for found in numparq.verify(path) if found.severity == "error"]
