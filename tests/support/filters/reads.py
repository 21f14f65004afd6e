"""Random reads, and their expected frames: the unfiltered read, filtered in Python."""

from __future__ import annotations

import datetime
import io
import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa

import numparq
from numparq.column.jobs import schedule
from numparq.column.read import decompress, page_sources, pages

from .literals import pick
from .tables import RandomTable, num_rows

Rng = np.random.Generator
Options = dict[str, Any]
SOURCES = ("bytes", "bytes", "path", "file", "memory")

# Windows, batches and parts so small that files as small as these are divided as large ones are.
SIZES = (
    (page_sources, "WINDOW_BYTES", 400),
    (decompress, "BATCH_BYTES", 50),
    (pages, "MIN_RUN_BYTES", 400),
    (schedule, "MIN_SHARE_BYTES", 50),
    (schedule, "SINGLE_THREAD_BYTES", 50),
    (schedule, "MIN_SHARED_TASK_BYTES", 10),
    (schedule, "MAX_COALESCED_BYTES", 400),
)

NOT_OF_ALL = ("source", "small", "runtime", "nrows", "threads")  # what a read of all rows is not told

_numbers = itertools.count()


@contextmanager
def small_sizes() -> Iterator[None]:
    with ExitStack() as stack:
        for module, name, size in SIZES:
            stack.enter_context(mock.patch.object(module, name, size))
        yield


@contextmanager
def open_somewhere(data: bytes, kind: str) -> Iterator[dict[str, Any]]:
    """Return the arguments with which `read_parquet` reads the bytes from some kind of source."""
    if kind == "path":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.parquet"
            path.write_bytes(data)
            yield {"path": path}
    elif kind == "memory":
        import fsspec

        files = fsspec.filesystem("memory")
        name = f"/filtering/{next(_numbers)}.parquet"
        files.pipe_file(name, data)
        try:
            yield {"path": name, "filesystem": files} if len(data) % 2 else {"path": f"memory:/{name}"}
        finally:
            files.rm_file(name)
    else:
        yield {"path": data if kind == "bytes" else io.BytesIO(data)}


def random_read(rng: Rng, table: RandomTable) -> Options:
    """Draw columns, rows, dtypes, threads, ``source``, and whether to read in small units."""
    rows = num_rows(table)
    options: Options = {"source": pick(rng, *SOURCES), "threads": int(pick(rng, 1, 3))}
    if rng.random() < 0.4:
        options["small"] = True
    if rng.random() < 0.6:
        names = []
        for name in rng.permutation(list(table)).tolist()[: int(rng.integers(0, 5))]:
            fields = table[name].about.fields
            names.append((name, pick(rng, *fields)) if fields and rng.random() < 0.5 else name)
        options["columns"] = names
    if rng.random() < 0.2:
        options["row_range"] = tuple(sorted(rng.integers(0, rows + 2, 2).tolist()))
    if rng.random() < 0.15:
        options["row_groups"] = "some"
    if rng.random() < 0.2:
        options["nrows"] = int(pick(rng, 0, 1, 3, 10, rows // 2, rows))
    if rng.random() < 0.25:
        options["include"] = pick(rng, ["row_group", "row_number"], ["row_number"])
    if rng.random() < 0.3:
        options["dtype_backend"] = pick(rng, "numpy_nullable", "pyarrow")
    texts = [name for name in table if table[name].kind in ("text", "long", "high")]
    if texts and rng.random() < 0.2:
        options["categories"] = texts[:1]
    return options


def resolve_row_groups(options: Options, group_rows: Sequence[int]) -> Options:
    """Replace the row groups with existing ones, in any order."""
    if options.get("row_groups") != "some":
        return options
    rng = np.random.default_rng(len(group_rows))
    some = rng.permutation(len(group_rows))[: len(group_rows) // 2 + 1]
    return options | {"row_groups": some.tolist()}


def rows_selected(options: Options, group_rows: Sequence[int]) -> list[int]:
    """Return the file's rows selected by row groups and row range, in frame order."""
    starts = np.cumsum([0, *group_rows]).tolist()
    groups = options.get("row_groups")
    groups = range(len(group_rows)) if groups is None else groups
    first, stop = options.get("row_range") or (0, starts[-1])
    return [row for group in groups for row in range(starts[group], starts[group + 1]) if first <= row < stop]


def expected_frame(data: bytes, options: Options, rows: Sequence[int], wanted: Sequence[bool | None]) -> pd.DataFrame:
    """Read without filters and drop the rows that do not match."""
    plain = {name: value for name, value in options.items() if name not in NOT_OF_ALL}
    whole = numparq.read_parquet(data, threads=1, **plain)
    assert len(whole) == len(rows)
    kept = [place for place, row in enumerate(rows) if wanted[row] is True][: options.get("nrows")]
    frame = whole.iloc[kept]
    return frame.reset_index(drop=True) if isinstance(whole.index, pd.RangeIndex) else frame


def filtered_frame(data: bytes, options: Options, filters: Any) -> pd.DataFrame:
    """Read with filters from the options' source; ``runtime`` holds runtime filters."""
    given = {name: value for name, value in options.items() if name not in ("source", "small", "runtime")}
    if "runtime" in options:
        given["runtime_filters"] = [ask.runtime_filter() for ask in options["runtime"]]
    in_parts = small_sizes() if options.get("small") else nullcontext()
    with open_somewhere(data, options.get("source", "bytes")) as where, in_parts:
        return numparq.read_parquet(filters=filters, **where, **given)


# --- comparison -------------------------------------------------------------------------------------------------------


def assert_frames_equal(got: pd.DataFrame, expected: pd.DataFrame, *, loose: bool = False) -> None:
    """Check labels, index, dtypes and every value bit by bit.

    With `loose`, dtypes may differ if values are equal, because the file does not say where nulls are.
    """
    assert got.columns.tolist() == expected.columns.tolist()
    assert len(got) == len(expected), f"{len(got)} rows instead of {len(expected)}"
    assert type(got.index) is type(expected.index)
    if isinstance(expected.index, pd.RangeIndex):
        assert got.index.equals(expected.index)
    else:
        _assert_same_values(got.index.to_frame().iloc[:, 0], expected.index.to_frame().iloc[:, 0], loose, "index")
    assert got.index.names == expected.index.names
    for place, name in enumerate(expected.columns):
        _assert_same_values(got.iloc[:, place], expected.iloc[:, place], loose, name)


def _assert_same_values(got: pd.Series, expected: pd.Series, loose: bool, name: Any) -> None:
    if isinstance(expected.dtype, pd.CategoricalDtype) and isinstance(got.dtype, pd.CategoricalDtype):
        # Which categories there are follows from the dictionaries that were read.
        assert loose or got.cat.ordered == expected.cat.ordered
        assert set(expected.cat.categories[expected.cat.codes[expected.cat.codes >= 0]]) <= set(got.cat.categories)
        got, expected = got.astype(object), expected.astype(object)
    elif not loose:
        assert got.dtype == expected.dtype, f"{name}: {got.dtype} instead of {expected.dtype}"
    if not loose and isinstance(expected.dtype, np.dtype) and expected.dtype != object:
        width = f"V{expected.dtype.itemsize}"
        mine, theirs = got.to_numpy().view(width), expected.to_numpy().view(width)
        wrong = np.flatnonzero(mine != theirs)
    else:
        mine, theirs = _plain(got, loose), _plain(expected, loose)
        wrong = [place for place, pair in enumerate(zip(mine, theirs, strict=True)) if not values_equal(*pair, loose)]
    if len(wrong):
        place = wrong[0]
        raise AssertionError(f"{name}[{place}]: {got.iloc[place]!r} instead of {expected.iloc[place]!r}")


def _plain(values: pd.Series, loose: bool) -> list[Any]:
    """Return values as Python's own, nulls as None."""
    if isinstance(values.dtype, pd.ArrowDtype):
        return pa.chunked_array(values.array.__arrow_array__()).to_pylist() if _is_odd(values) else values.tolist()
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    return [None if loose and value is pd.NaT else value for value in values.tolist()]


def _is_odd(values: pd.Series) -> bool:
    """Whether pandas loses precision of Arrow's values."""
    kind = values.dtype.pyarrow_dtype
    return pa.types.is_nested(kind) or pa.types.is_dictionary(kind)


def values_equal(got: Any, expected: Any, loose: bool = False) -> bool:
    """Whether two values are equal, recursively.

    Numbers in lists may be integers or floats, depending on nulls in the lists read.
    """
    if _is_missing(expected) or _is_missing(got):
        return _is_missing(got) and _is_missing(expected) if loose else _same_missing(got, expected)
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        got, expected = got.tolist(), expected.tolist()
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and list(got) == list(expected)
            and all(values_equal(got[key], value, loose) for key, value in expected.items())
        )
    if isinstance(expected, (list, tuple)):
        return len(got) == len(expected) and all(values_equal(*pair, loose) for pair in zip(got, expected, strict=True))
    if isinstance(expected, float) and isinstance(got, float) and expected == 0:
        return got == 0 and math.copysign(1, got) == math.copysign(1, expected)
    if loose and isinstance(expected, (datetime.time, pd.Timedelta)) and isinstance(got, (datetime.time, pd.Timedelta)):
        return _of_day(got) == _of_day(expected)
    numbers = isinstance(expected, (int, float)) and isinstance(got, (int, float))
    return bool(got == expected) and (loose or numbers or type(got) is type(expected))


def _of_day(value: Any) -> pd.Timedelta:
    return pd.Timedelta(str(value)) if isinstance(value, datetime.time) else value


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value)


def _same_missing(got: Any, expected: Any) -> bool:
    """Whether both are missing: None or NaN in nested values depends on the rest of the column."""
    return _is_missing(got) and _is_missing(expected) and (got is pd.NA) == (expected is pd.NA)
