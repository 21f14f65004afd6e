"""Files of the differential matrix: tables, the bytes that a writer makes of them, and damage."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

import numparq
from support.compare import write_by_pyarrow
from support.files.page_damage import damage_body, damage_header, pages_of
from support.io.object_store import ObjectStore

from .axes import VALUES

Case = dict[str, str]
PAGE = 17  # rows of a page
KEY_STEP = 3  # between the keys of two rows
_ROWS = {"one": (240,), "three": (90, 90, 90), "eight": (12,) * 8}
_MANY_GROUPS = {"one": (100,), "three": (60, 25, 25)}
_LEAF = {
    "flat": "x",
    "struct": "x.a",
    "list": "x.list.element",
    "list of struct": "x.list.element.a",
    "map": "x.key_value.value",
}


def rows_of_files(case: Case) -> tuple[int, ...]:
    """Return the number of rows of each file."""
    return (_MANY_GROUPS if case["groups"] == "20" else _ROWS)[case["files"]]


def rows_of_group(case: Case) -> int:
    """Return the number of rows of each row group but a file's last."""
    return {"1": 1000, "3": -(-rows_of_files(case)[0] // 3), "20": 5}[case["groups"]]


def _is_null(nulls: str, row: int) -> bool:
    """Whether the value of a row is null; pages: whole pages are."""
    return {"none": False, "some": row % 7 in (2, 3), "pages": row // PAGE % 2 == 1, "all": True}[nulls]


def _nested(nesting: str, row: int, value: Any) -> Any:
    """Return a row of the column under test; every ninth nested one is null, and lists differ in length."""
    if nesting == "flat":
        return value(row)
    if row % 9 == 4:
        return None
    several = [value(row + place) for place in range(row % 4)]
    return {
        "struct": {"a": value(row), "b": row},
        "list": several,
        "list of struct": [None if row % 11 == 5 else {"a": one, "b": row} for one in several],
        "map": [(f"k{place}", one) for place, one in enumerate(several)],
    }[nesting]


def _nested_type(nesting: str, inner: pa.DataType) -> pa.DataType:
    struct = pa.struct([("a", inner), ("b", pa.int32())])
    return {
        "flat": inner,
        "struct": struct,
        "list": pa.list_(inner),
        "list of struct": pa.list_(struct),
        "map": pa.map_(pa.string(), inner),
    }[nesting]


def table_of(case: Case, shift: int = 0) -> pa.Table:
    """Return the rows of all files; `shift` changes the values of `x`, which is under test.

    `key` counts rows, `z` is text, and only the last value of `n` is null.
    """
    about, count = VALUES[case["values"]], sum(rows_of_files(case))

    def value(row: int) -> Any:
        return None if _is_null(case["nulls"], row) else about.make(row + shift)

    return pa.table(
        {
            "key": pa.array(np.arange(count) * KEY_STEP),
            "x": pa.array(
                [_nested(case["nesting"], row, value) for row in range(count)],
                _nested_type(case["nesting"], about.arrow),
            ),
            "n": pa.array([*range(count - 1), None], pa.int32()),
            "z": pa.array([None if row % 10 == 6 else f"word {row % 13}" for row in range(count)]),
        }
    )


def _write(case: Case, table: pa.Table) -> bytes:
    """Write one file."""
    encoding, leaf = VALUES[case["values"]].encoding, _LEAF[case["nesting"]]
    has_dictionary = encoding in ("RLE_DICTIONARY", "fallback")
    codec = None if case["codec"] == "none" else case["codec"]
    common: dict[str, Any] = {
        "row_group_size": rows_of_group(case),
        "data_page_version": case["version"],
        "write_statistics": case["index"] != "neither",
        "write_page_index": case["index"] == "index",
        "write_page_checksum": True,
    }
    if case["writer"] == "pyarrow":
        return write_by_pyarrow(
            table,
            **common,
            compression=codec or "none",
            use_dictionary=["z", leaf] if has_dictionary else ["z"],
            column_encoding=None if has_dictionary else {leaf: encoding},
            dictionary_pagesize_limit=90 if encoding == "fallback" else 1 << 20,
            use_deprecated_int96_timestamps="int96" in case["values"],
            data_page_size=1,
            write_batch_size=PAGE,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # lz4_hadoop
        data = numparq.to_parquet(
            table, None, codec, max_rows_per_page=PAGE, column_encoding={leaf: encoding}, **common
        )
    assert data is not None
    return data


class Damage(NamedTuple):
    """Where the one damaged page of a case is: rows count over all files."""

    file: int
    row_group: int
    group_rows: range
    page_rows: range | None  # known of a data page of a flat column


class MatrixFiles(NamedTuple):
    """The files of a case as bytes, the table that they make, and their damage."""

    table: pa.Table
    contents: list[bytes]
    damage: Damage | None


def write_files(case: Case, shift: int = 0) -> MatrixFiles:
    """Write the files of a case; the second of several lacks `z`, and the third has a narrower `key`."""
    table, starts = table_of(case, shift), np.cumsum([0, *rows_of_files(case)]).tolist()
    contents, parts = [], []
    for number, (start, stop) in enumerate(pairwise(starts)):
        part = table.slice(start, stop - start)
        lacking = part
        if case["files"] == "three" and number == 1:
            lacking = part.drop_columns(["z"])
            part = part.set_column(3, "z", pa.nulls(len(part), pa.string()))
        if case["files"] == "three" and number == 2:
            lacking = part.set_column(0, "key", part["key"].cast(pa.int32()))
        parts.append(part)
        contents.append(_write(case, lacking))
    damage = None
    if case["damage"] != "whole":
        number = len(contents) // 2
        contents[number], damage = _damaged(case, contents[number], number, starts[number])
    return MatrixFiles(pa.concat_tables(parts), contents, damage)


def _damaged(case: Case, data: bytes, number: int, start: int) -> tuple[bytes, Damage]:
    """Damage a page of `x` in the last row group of a file whose first row is `start`."""
    rows, size = rows_of_files(case)[number], rows_of_group(case)
    group = (rows - 1) // size
    group_rows = range(start + group * size, start + rows)
    pages = pages_of(data, group, _LEAF[case["nesting"]])
    if case["damage"] == "dictionary":
        page = pages[0]
        assert page.is_dictionary
        page_rows = group_rows if VALUES[case["values"]].encoding != "fallback" else None
    else:
        found = [page for page in pages if not page.is_dictionary and page.end > page.body]
        page = found[len(found) // 2]
        first = group_rows.start + page.first_value
        page_rows = range(first, first + page.num_values)
    damage = damage_header if case["damage"] == "header" else damage_body
    return damage(data, page), Damage(number, group, group_rows, page_rows if case["nesting"] == "flat" else None)


@contextmanager
def stored(case: Case, folder: Path) -> Any:
    """Yield a function that stores files where the case wants them, and returns the arguments that read them."""
    store = ObjectStore()
    times: dict[Path, int] = {}

    def put(contents: list[bytes]) -> dict[str, Any]:
        names = [f"{number:02}.parquet" for number in range(len(contents))]
        if case["source"] == "bytes":
            return {"path": contents[0]}
        if case["source"] == "store":
            for name, data in zip(names, contents, strict=True):
                store.pipe(f"/{name}", data)
            paths = [f"/{name}" for name in names]
            return {"path": paths[0] if len(paths) == 1 else paths, "filesystem": store}
        for name, data in zip(names, contents, strict=True):
            path = folder / name
            path.write_bytes(data)  # in place, and with the time of the file that was there
            os.utime(path, ns=(times.setdefault(path, path.stat().st_mtime_ns),) * 2)
        here = [folder / name for name in names]
        return {"path": here[0] if len(here) == 1 else here}

    yield put


def frame_of(table: pa.Table, output: str) -> pd.DataFrame:
    """Return the frame that pandas and pyarrow read from one file with these rows."""
    import io

    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    backend = {"nullable": "numpy_nullable", "pyarrow": "pyarrow"}.get(output)
    return pd.read_parquet(buffer, engine="pyarrow", **({"dtype_backend": backend} if backend else {}))
