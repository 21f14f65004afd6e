"""Single-bit flips of page headers, without checksums: the same values, or an error, in all ways of reading.

No flip changes a value, with a checksum or without. `HARMLESS` names the fields that may be wrong unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from support.files.builder import from_bytes
from support.files.page_damage import data_pages, edit_header, pages_of

pa = pytest.importorskip("pyarrow")

ROWS = 20


def element(i: int) -> list | None:
    return [None, [], [i], [i, None], [None, i + 1, i + 2], [None]][i % 6]


@dataclass(frozen=True)
class Column:
    """Values of a column, its leaf column with damaged headers, and the encodings of that leaf column."""

    values: Any
    leaf: str
    encodings: tuple[str, ...]
    nullable: bool = True


INTS = ("PLAIN", "dictionary", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
STRINGS = ("PLAIN", "dictionary", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")

COLUMNS = {
    "required int64": Column(pa.array([i * 7919 for i in range(ROWS)]), "v", INTS, nullable=False),
    "required int32": Column(pa.array([i * 7919 for i in range(ROWS)], pa.int32()), "v", INTS, nullable=False),
    "required double": Column(
        pa.array([i / 3 for i in range(ROWS)]), "v", ("PLAIN", "dictionary", "BYTE_STREAM_SPLIT", "ALP"), nullable=False
    ),
    "required binary": Column(
        pa.array([b"%04d" % i for i in range(ROWS)], pa.binary(4)), "v", ("PLAIN", "dictionary"), nullable=False
    ),
    "required string": Column(pa.array([f"t{i}" for i in range(ROWS)]), "v", STRINGS, nullable=False),
    "optional int64": Column(pa.array([None if i % 3 == 0 else i for i in range(ROWS)]), "v", INTS),
    "optional string": Column(pa.array([None if i % 4 == 0 else "x" * (i % 3) for i in range(ROWS)]), "v", STRINGS),
    "optional bool": Column(pa.array([None if i % 4 == 0 else i % 3 == 0 for i in range(ROWS)]), "v", ("PLAIN", "RLE")),
    "struct": Column(pa.array([None if i % 7 == 0 else {"a": None if i % 2 else i} for i in range(ROWS)]), "v.a", INTS),
    "list": Column(pa.array([element(i) for i in range(ROWS)], pa.list_(pa.int64())), "v.list.element", INTS),
    "list of strings": Column(
        pa.array(
            [x and [y if y is None else str(y) for y in x] for x in map(element, range(ROWS))], pa.list_(pa.string())
        ),
        "v.list.element",
        STRINGS,
    ),
    "map": Column(
        pa.array(
            [None if i % 5 == 0 else [(f"k{j}", None if j == 1 else i) for j in range(i % 3)] for i in range(ROWS)],
            pa.map_(pa.string(), pa.int64()),
        ),
        "v.key_value.value",
        INTS,
    ),
    "struct of lists": Column(
        pa.array([None if i % 7 == 0 else {"a": element(i)} for i in range(ROWS)]), "v.a.list.element", INTS
    ),
    "list of lists": Column(
        pa.array([None if i % 7 == 0 else [element(i), element(i + 1)] for i in range(ROWS)]),
        "v.list.element.list.element",
        INTS,
    ),
}


def written_file(
    column: Column, version: str, encoding: str, compression: str, page_index: bool, checksums: bool = False
) -> bytes:
    """Write two pages of ten rows of `v`, and the row numbers `k`."""
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", column.values.type, column.nullable)])
    table = pa.table({"k": pa.array(range(ROWS)), "v": column.values}, schema=schema)
    data = numparq.to_parquet(
        table.to_pandas(types_mapper=pd.ArrowDtype),
        schema=schema,
        compression=compression,
        data_page_version=version,
        write_page_checksum=checksums,
        write_page_index=page_index,
        max_rows_per_page=ROWS // 2,
        use_dictionary=encoding == "dictionary",
        column_encoding={} if encoding in ("PLAIN", "dictionary") else {column.leaf: encoding},
    )
    assert data is not None
    return data


def read(data: bytes, **how: Any) -> pd.DataFrame:
    return numparq.read_parquet(data, columns=["v"], threads=how.pop("threads", 1), **how)


# Whole and partial pages, with and without a filter, point look-ups, threads, batches, Arrow.
READS: dict[str, Callable[[bytes], Any]] = {
    "all": read,
    "threads": lambda data: read(data, threads=2),
    "rows of both pages": lambda data: read(data, row_range=(3, 13)),
    "rows of the last page": lambda data: read(data, row_range=(12, 18)),
    "one row": lambda data: read(data, filters=[("k", "==", 14)]),
    "few rows": lambda data: read(data, filters=[("k", "in", [2, 5, 14])]),
    "batches": lambda data: pd.concat(numparq.ParquetFile(data).iter_batches(["v"], batch_rows=7)),
    "arrow": lambda data: pa.table(numparq.ParquetFile(data)).column("v").to_pylist(),
}


def same(got: Any, expected: Any) -> bool:
    """Whether two results, frames or lists, are equal with their dtypes."""
    if isinstance(expected, list):
        return got == expected
    try:
        pd.testing.assert_frame_equal(got, expected)
    except AssertionError:
        return False
    return True


def outcome(function: Callable[[bytes], Any], data: bytes) -> Any:
    """Return a read's result; None if it raises an error for damaged data."""
    try:
        return function(data)
    except (numparq.ParquetError, pa.ArrowException):  # an Arrow stream cannot raise errors of its own classes
        return None


def skipped(data: bytes, expected: pd.DataFrame) -> str | None:
    """Return what is wrong with the rows that `on_error="skip"` keeps, or None."""
    frame = numparq.read_parquet(data, columns=["v"], include=["row_number"], on_error="skip", threads=1)
    kept = np.ones(ROWS, bool)
    for loss in frame.attrs.pop("numparq.lost"):
        kept[slice(*(loss.rows or (0, ROWS)))] = False
    if "v" not in frame:
        return "the column is missing, but rows of it are not lost" if kept.any() else None
    return None if same(frame, expected[kept]) else f"{frame}\ninstead of\n{expected[kept]}"


# Fields that may be wrong unnoticed: hints, and what the file does not use. Flips of any other field are found, but for
# a `compressed_page_size` that only moves the end of a last page, whose values are whole.
HARMLESS = {
    "statistics",
    "num_nulls",
    "num_rows",
    "uncompressed_page_size",  # without compression
    "is_compressed",  # likewise
    "definition_level_encoding",  # without levels
    "repetition_level_encoding",
    "is_sorted",
    "compressed_page_size",
    "crc",  # as a field of another id: the page is then read unchecked
}
_DICTIONARY_ENCODINGS = {"0", "2"}  # PLAIN_DICTIONARY means PLAIN here


def fields_of(header: Any) -> dict[str, str]:
    """Return the fields of a page header and of the header of its type, statistics as one."""
    fields = {}
    for _, name, *_ in header.thrift_spec.values():
        value = getattr(header, name)
        if hasattr(value, "thrift_spec") and name != "statistics":
            fields |= fields_of(value)
        elif value is not None:
            fields[name] = repr(value)
    return fields


def changed_fields(header: Any, damaged: bytes, start: int) -> set[str]:
    """Return the names of the fields that a flip has changed; all of them if the header cannot be read."""
    before = fields_of(header)
    try:
        after = fields_of(from_bytes("PageHeader", damaged[start : start + 10_000])[0])
    except Exception:  # thriftpy2 raises errors of many classes
        return {*before}
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    is_dictionary = header.dictionary_page_header is not None
    if is_dictionary and {before["encoding"], after.get("encoding")} == _DICTIONARY_ENCODINGS:
        names.discard("encoding")
    return names


def flipped_headers(data: bytes, leaf: str, rng: np.random.Generator, count: int) -> Iterator[tuple[str, int, bytes]]:
    """Yield the file with one flipped bit of a page header, and the page: `count` random ones, or each (-1)."""
    bits = [
        (number, bit - 8 * page.start, bit)
        for number, page in enumerate(pages_of(data, 0, leaf))
        for bit in range(8 * page.start, 8 * page.body)
    ]
    chosen = range(len(bits)) if count < 0 else rng.choice(len(bits), count, replace=False).tolist()
    for page, place, bit in (bits[number] for number in chosen):
        damaged = bytearray(data)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        yield f"bit {place} of the header of page {page}", page, bytes(damaged)


def check_flips(column: Column, data: bytes, reads: dict[str, Callable[[bytes], Any]], seed: int, count: int) -> None:
    expected = {name: function(data) for name, function in reads.items()}
    rows = numparq.read_parquet(data, columns=["v"], include=["row_number"], threads=1)
    pages = pages_of(data, 0, column.leaf)
    for what, page, damaged in flipped_headers(data, column.leaf, np.random.default_rng(seed), count):
        for name, function in reads.items():
            got = outcome(function, damaged)
            assert got is None or same(got, expected[name]), f"{what}, {name}: {got}"
            if got is not None and name == "all":
                changed = changed_fields(pages[page].header, damaged, pages[page].start)
                assert changed <= HARMLESS, f"{what} is not found, though it changes {changed - HARMLESS}"
        problem = skipped(damaged, rows)
        assert problem is None, f"{what}, skipping: {problem}"


@pytest.mark.parametrize("name", COLUMNS)
def test_some_flipped_headers(name):
    column = COLUMNS[name]
    seed = list(COLUMNS).index(name)
    version, encoding = ("1.0", "2.0")[seed % 2], column.encodings[seed % len(column.encodings)]
    data = written_file(column, version, encoding, ("none", "snappy")[seed // 2 % 2], page_index=seed % 3 == 0)
    check_flips(column, data, {"all": read, "few rows": READS["few rows"]}, seed, 12)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", COLUMNS)
def test_all_flipped_headers(name, version):
    column = COLUMNS[name]
    for encoding, compression, page_index in product(column.encodings, ("none", "snappy"), (False, True)):
        data = written_file(column, version, encoding, compression, page_index)
        check_flips(column, data, READS, 1, 15)
        if not page_index and compression == "none":
            check_flips(column, data, {"all": read}, 0, -1)
            check_flips(column, written_file(column, version, encoding, "none", False, checksums=True), READS, 2, 50)


def test_definition_levels_that_are_too_short():
    """One bit in ``definition_levels_byte_length`` of a list column made [1, 2] to [1, 1]."""
    values = pa.array([[1, 2], [3], None, [], [4, 5, 6]] * 4, pa.list_(pa.int64()))
    data = written_file(Column(values, "v.list.element", INTS), "2.0", "dictionary", "none", page_index=False)
    rows = numparq.read_parquet(data, columns=["v"], include=["row_number"])
    first = data_pages(data, 0, "v.list.element")[0]
    for change in (-1, 1):
        damaged = edit_header(data, first, lambda header, change=change: lengthen_levels(header, change))
        for name, function in READS.items():
            got = outcome(function, damaged)
            assert got is None or (name == "rows of the last page" and same(got, function(data)))
        assert skipped(damaged, rows) is None


def lengthen_levels(header: Any, change: int) -> None:
    header.data_page_header_v2.definition_levels_byte_length += change
