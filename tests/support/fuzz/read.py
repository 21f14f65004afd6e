"""All ways to read a file, in turn, and checks of the result."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.hostile.attack import error_deficiency, inspect_file, use_values

from . import corpus
from .case import FuzzCase

SLACK = 400 << 20  # bytes that a case may take whatever it is; a frame that it gives is not counted
MANY = 20_000  # rows that are not compared one by one

Use = Callable[[FuzzCase, np.random.Generator, Path], int]
Uses = Sequence[tuple[str, Use]]
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"verify_crc": False},
    {"dtype_backend": "numpy_nullable"},
    {"dtype_backend": "pyarrow"},
    {"dtype_backend": "pyarrow", "verify_crc": False},
    {"threads": 2},
    {"row_range": (3, 17), "verify_crc": False},
    {"row_groups": [0]},
    {"categories": "all"},
    {"include": ("file", "row_group", "row_number")},
    {"columns": "last", "nrows": 5},
    {"variants": "bytes"},
    {"files": "bytes"},
    {"geometries": "geopandas"},
    {"explode": "some"},
    {"explode": "some", "include": ("row_number",), "dtype_backend": "numpy_nullable"},
    {"filters": "some"},
    {"filters": "some", "row_range": (3, 40), "threads": 2},
    {"filters": "some", "columns": "last", "verify_crc": False},
    {"on_error": "skip"},
    {"on_error": "skip", "include": ("row_number",), "verify_crc": False},
    {"on_error": "skip", "dtype_backend": "pyarrow"},
    {"on_error": "skip", "columns": "last"},
    {"on_error": "skip", "row_range": (3, 40), "include": ("row_number",)},
    {"on_error": "skip", "explode": "some"},
)


def attempt(case: FuzzCase, rng: np.random.Generator, folder: Path, uses: Uses) -> tuple[str, str | None]:
    """Use a file in one way; return the outcome and the problem found, if any."""
    from numparq import ParquetError

    name, use = uses[int(rng.integers(0, len(uses)))]
    if case.sound is not None:
        name, use = "under a checksum", _under_checksum
    _forget_most_memory()
    before = _most_memory()
    given = 0
    try:
        given = use(case, rng, folder)
        outcome, problem = name, None
    except ParquetError as error:
        outcome, problem = f"{name}: {type(error).__name__}", error_deficiency(error)
        if problem:
            problem += "".join(traceback.format_exception(error, limit=-6))
    except ImportError as error:
        outcome, problem = f"{name}: {error}", None
    except BaseException as error:
        outcome, problem = "leak", "".join(traceback.format_exception(error, limit=-12))
    taken = _most_memory() - before
    if problem is None and taken > SLACK + 100 * len(case.data) + 20 * given:
        problem = f"{taken >> 20} MiB, and the frame has {given >> 20} MiB ({outcome})\nit took too much memory"
    return outcome, problem


def _forget_most_memory() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _most_memory() -> int:
    """Return the peak memory in bytes since `_forget_most_memory`."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    return 0


# --- uses: each gives the bytes of the frame that came of it ----------------------------------------------------------


LITERALS = (0, 3, 1.5, True, "", "a", b"a", "2020-01-01")


def _some_filter(columns: Sequence[str], rng: np.random.Generator) -> Any:
    """Draw a filter on one or two columns; literals of another type are refused."""
    import numparq

    found = None
    for _ in range(int(rng.integers(1, 3))):
        column = numparq.col(columns[int(rng.integers(0, len(columns)))] if columns else "none")
        literal = LITERALS[int(rng.integers(0, len(LITERALS)))]
        asked = (
            column.is_null(),
            column.is_not_null(),
            column >= literal,
            column != literal,
            column.isin([literal]),
            column.contains(literal),
        )
        part = asked[int(rng.integers(0, len(asked)))]
        found = part if found is None else found & part if rng.random() < 0.5 else found | ~part
    return found


def _read(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    import numparq

    sample = corpus.sample(case.sample)
    options = dict(OPTIONS[int(rng.integers(0, len(OPTIONS)))])
    if options.pop("explode", None) and sample.explode:
        options["explode"] = sample.explode[int(rng.integers(0, len(sample.explode)))]
    source: Any = case.data
    external = bool(sample.beside) and rng.random() < 0.8
    if external or rng.random() < 0.2:
        source = _stored(case, folder)
    with numparq.ParquetFile(source, external_files=external) as file:
        if rng.random() < 0.2:
            inspect_file(file)
            repr(file.geospatial)
        for key, chosen in (("categories", "all"), ("columns", "last")):
            if options.get(key) == chosen:
                options[key] = file.schema.columns[-1:] if chosen == "last" else file.schema.columns
        if options.get("filters"):
            options["filters"] = _some_filter(file.schema.columns, rng)
        if options.get("row_groups") and not file.num_row_groups:
            del options["row_groups"]
        frame = file.read(**{"threads": 1, **options})
    with contextlib.suppress(MemoryError):
        use_values(frame)
        columns = (frame.iloc[:, place] for place in range(frame.shape[1]))
        return sum(column.memory_usage(index=False, deep=len(frame) < MANY) for column in columns)
    return 1 << 40


def _stored(case: FuzzCase, folder: Path) -> Path:
    """Write a file beside the files that it references."""
    folder = folder / case.sample.replace(",", "")
    for name, data in corpus.sample(case.sample).beside:
        if not (folder / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    folder.mkdir(exist_ok=True)
    (folder / "_metadata").write_bytes(case.data)
    return folder / "_metadata"


def _verify(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    import numparq

    for deviation in numparq.verify(case.data):
        str(deviation)
    return 0


def _salvage(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    """Repair a file, with or without the valid one as reference; the result must be valid."""
    import numparq

    path, out = folder / "damaged", folder / "saved"
    path.write_bytes(case.data)
    helped = rng.random() < 0.6
    schema = corpus.sample(case.sample).data if helped else None
    group = int(rng.choice([1, 15, 35])) if rng.random() < 0.3 else None
    str(numparq.salvage(path, out, schema, row_group_size=group, force=True))
    saved = numparq.read_parquet(out, threads=1)
    use_values(saved)
    sound = corpus.sample(case.sample).data
    if group is None and not corpus.sample(case.sample).beside and sound.startswith(case.data):
        _check_rows(numparq.read_parquet(out, dtype_backend="pyarrow"), sound)
    return 0


def _check_rows(saved: Any, sound: bytes) -> None:
    """Compare rows recovered from a truncated file with the original rows."""
    import numparq

    whole = numparq.read_parquet(sound, dtype_backend="pyarrow")
    assert len(saved) <= len(whole), "there are more rows than there were"
    for name in set(saved.columns) & set(whole.columns):
        assert _plain(saved[name]) == _plain(whole[name].iloc[: len(saved)]), f"other values in {name!r}"


def _under_checksum(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    """Read a page with a wrong CRC: it must be refused, or its rows skipped."""
    import numparq

    # Arrow's, since the dtype of arrays of integers is another where a null is lost.
    whole = numparq.read_parquet(case.sound, dtype_backend="pyarrow", threads=1)
    if rng.random() < 0.5:
        try:
            numparq.read_parquet(case.data, threads=1)
        except numparq.CorruptPageError as error:
            assert "checksum" in error.message
            return 0
        raise AssertionError("changed bytes under a checksum were read")
    ways = {"on_error": "skip", "include": ("row_number",), "dtype_backend": "pyarrow", "threads": 1}
    found = numparq.read_parquet(case.data, **ways)
    assert found.attrs["numparq.lost"], "nothing is said to be lost"
    rows = found.pop("row_number").to_numpy()
    assert len(rows) < len(whole) or found.shape[1] < whole.shape[1], "nothing is lost"
    for name in found.columns:
        assert _plain(found[name]) == _plain(whole[name].iloc[rows]), f"other values in {name!r}"
    return 0


def _plain(values: Any) -> list[str]:
    return [repr(value) for value in values.astype(object)]


USES: Uses = (*[("read", _read)] * 7, ("verify", _verify), ("salvage", _salvage))


def cases(
    make: Callable[[np.random.Generator], FuzzCase], seed: int, first: int
) -> Iterator[tuple[int, FuzzCase, Any]]:
    """Yield the cases of a seed from a number on: number, case, and the generator for reading it."""
    number = first
    while True:
        rng = np.random.default_rng([seed, number])
        yield number, make(rng), rng
        number += 1
