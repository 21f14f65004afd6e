"""Oddly written files: what pyarrow, polars and duckdb read alike is read with the same values, in all ways."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("polars")
pytest.importorskip("duckdb")

import numparq  # noqa: E402
from support.files import odd_files  # noqa: E402
from support.files.odd_files import KINDS, LAYOUTS, ODDITIES, ROWS, VERSIONS, OddFile  # noqa: E402
from support.files.odd_peers import Rows, agreed_rows  # noqa: E402

_V2_LEVELS = (
    "Pages of version 2 state the length of their levels in the header, and values begin where they end. Without a "
    "checksum, nothing else tells a wrong length, which would change values."
)
_STREAMS = (
    "The streams of BYTE_STREAM_SPLIT are as long as the section says: with bytes behind, peers read other values."
)
_LENGTHS = "The page and its section disagree on the number of strings, which begin behind all lengths."


def _is_v2(file: OddFile) -> bool:
    return file.version == 2


def _is_split(file: OddFile) -> bool:
    return file.kind == "double streams"


# Oddity -> which of its files are refused though all peers read them alike, and why.
EXCEPTIONS: dict[str, tuple[Callable[[OddFile], bool], str]] = {
    "zeros behind the levels": (_is_v2, _V2_LEVELS),
    "garbage behind the levels": (_is_v2, _V2_LEVELS),
    "empty run behind the levels": (_is_v2, _V2_LEVELS),
    "empty packed run behind the levels": (_is_v2, _V2_LEVELS),
    "zeros behind the values": (_is_split, _STREAMS),
    "lengths are more": (lambda file: True, _LENGTHS),
    "checksums are wrong": (lambda file: True, "The page is damaged. Peers verify no checksums by default."),
}


def rows_of(frame: Any) -> Rows:
    return frame["v"].array.__arrow_array__().to_pylist()


def read(data: bytes, **options: Any) -> Rows:
    return rows_of(numparq.read_parquet(data, columns=["v"], dtype_backend="pyarrow", threads=1, **options))


def in_batches(data: bytes, rows: Rows) -> None:
    batches = numparq.ParquetFile(data).iter_batches(["v"], batch_rows=7, dtype_backend="pyarrow")
    assert [value for batch in batches for value in rows_of(batch)] == rows


def skipping(data: bytes, rows: Rows) -> None:
    frame = numparq.read_parquet(data, columns=["v"], dtype_backend="pyarrow", on_error="skip")
    assert frame.attrs["numparq.lost"] == []
    assert rows_of(frame) == rows


def by_value(data: bytes, rows: Rows) -> None:
    """Filter by each distinct value, by one that no row has, and by nulls, on an open file."""
    if any(isinstance(row, list) for row in rows):
        return
    file = numparq.ParquetFile(data)
    values = [*dict.fromkeys(row for row in rows if row is not None)]
    for value in values[:3] + values[-1:]:
        found = file.read(columns=["v"], filters=[("v", "==", value)], dtype_backend="pyarrow")
        assert rows_of(found) == [row for row in rows if row == value]
    assert rows_of(file.read(columns=["v"], filters=~numparq.col("v").is_null(), dtype_backend="pyarrow")) == [
        row for row in rows if row is not None
    ]


def looked_up(data: bytes, rows: Rows) -> None:
    """Look up rows by the other column twice: then dictionaries are cached."""
    file = numparq.ParquetFile(data)
    for keys in ([3], [0, 10, ROWS - 1], [3], [*range(1, ROWS, 2)]):
        found = file.read(columns=["v"], filters=[("k", "in", keys)], dtype_backend="pyarrow")
        assert rows_of(found) == [rows[key] for key in keys]


def in_numpy_types(data: bytes, rows: Rows) -> None:
    values = numparq.read_parquet(data, columns=["v"])["v"].tolist()
    if any(isinstance(row, list) for row in rows):  # their nulls are NaN, too
        assert [np.shape(value) for value in values] == [np.shape(row) if row is not None else () for row in rows]
    else:
        assert [None if pd.isna(value) else value for value in values] == rows


def as_arrow(data: bytes, rows: Rows) -> None:
    assert numparq.ParquetFile(data).to_arrow().column("v").to_pylist() == rows


def in_a_range(data: bytes, rows: Rows) -> None:
    assert read(data, row_range=(5, 14)) == rows[5:14]


WAYS: dict[str, Callable[[bytes, Rows], None]] = {
    "in NumPy types": in_numpy_types,
    "as Arrow": as_arrow,
    "in batches": in_batches,
    "a range of rows": in_a_range,
    "skipping damage": skipping,
    "by value": by_value,
    "looked up": looked_up,
}


# Oddity -> ways that cannot give its rows: filters trust counts that are possible.
UNSUPPORTED_WAYS = {"null_count is 0": ("by value",)}


def check(file: OddFile, folder: Any, ways: dict[str, Callable[[bytes, Rows], None]] = WAYS) -> str:
    """Read a file in all ways if all peers agree; return "read", "refused" (as listed) or "no agreement"."""
    rows = agreed_rows(file.data, folder)
    if rows is None:
        with suppress(numparq.ParquetError):
            read(file.data)
        return "no agreement"
    if file.oddity in EXCEPTIONS and EXCEPTIONS[file.oddity][0](file):
        try:
            got = read(file.data)
        except numparq.ParquetError:
            return "refused"
        assert got == rows
        return "read"
    assert read(file.data) == rows, file
    for name, way in ways.items():
        if name in UNSUPPORTED_WAYS.get(file.oddity, ()):
            continue
        try:
            way(file.data, rows)
        except Exception as error:
            raise AssertionError(f"{file}, {name}") from error
    return "read"


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("number", range(0, len(ODDITIES), 8))
def test_each_oddity_once(tmp_path, number):
    """Every oddity in a few files: kinds, layouts and versions by turns."""
    kinds = [*KINDS]
    for place, name in enumerate([*ODDITIES][number : number + 8]):
        checked = 0
        for step in range(len(kinds)):
            layout, version = LAYOUTS[(place + step) % 3], VERSIONS[(place + step) // 3 % 2]
            file = odd_files.make(name, kinds[(place + step) % len(kinds)], layout, version)
            if file is not None and checked < 3:
                checked += 1
                check(file, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ODDITIES)
def test_all_odd_files(tmp_path, name):
    outcomes = {check(file, tmp_path) for file in odd_files.make_all([name])}
    assert outcomes
    assert ("refused" in outcomes) == (name in EXCEPTIONS)
    assert name != "sound" or outcomes == {"read"}


def test_oddities_are_read_from_small_files_together(tmp_path):
    """Files of a folder that are decoded together."""
    for name in ("zeros behind the values", "zeros behind the pages", "indices' run is longer", "num_nulls is 7"):
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        expected: Rows = []
        for number in range(4):
            file = odd_files.make(name, "int64 dictionary", "optional", 2)
            assert file is not None
            (folder / f"{number}.parquet").write_bytes(file.data)
            expected += read(file.data)
        frame = numparq.read_parquet(folder, columns=["v"], dtype_backend="pyarrow")
        assert rows_of(frame) == expected


@pytest.mark.parametrize("values", [["one", "two", "one"], [b"one", b"two", b"one"], [1, 2, 1]], ids=str)
def test_repeated_dictionary_values_of_arrow(values):
    """Arrow stores each value once, but in a page as long as if repeats counted."""
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(values))
    for column in (array, pa.StructArray.from_arrays([array], ["x"])):
        stored = io.BytesIO()
        pq.write_table(pa.table({"v": column}), stored)
        data = stored.getvalue()
        rows = pq.read_table(io.BytesIO(data)).column("v").to_pylist()
        assert read(data) == rows
        assert read(data, on_error="skip") == rows
        file, path = numparq.ParquetFile(data), "v" if column is array else "v.x"
        for _ in range(2):  # a dictionary that does not fill its page is not kept
            for value, places in ((values[0], [0, 2]), (values[1], [1]), (values[1] * 2 + values[0], [])):
                found = file.read(filters=[(path, "==", value)], dtype_backend="pyarrow")
                assert rows_of(found) == [rows[place] for place in places]
