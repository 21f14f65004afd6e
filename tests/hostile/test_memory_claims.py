"""Peak memory of files: what a file claims is not allocated, and what it holds is not held several times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import LimitError, ParquetFile, col
from numparq.scan.scan import Scan
from support.files.builder import (
    BOOLEAN,
    BYTE_ARRAY,
    INT64,
    OPTIONAL,
    RLE,
    RLE_DICTIONARY,
    FileColumn,
    FilePage,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_plain,
    extended_idl,
)
from support.files.page_damage import data_pages, flip_bytes
from support.hostile.oversized_files import nulls

CLAIMED = 200_000_000  # rows
BODY = encode_plain(INT64, [1, 2, 3, 4])
GROWTH = 64 << 20  # bytes that reading may take beyond the process
LONG = 60 << 20  # bytes of a value of the key-value metadata
WAYS = ["read", "Arrow", "Arrow table", "batches", "skip", "skip, Arrow", "salvage", "verify", "meta", "count"]


def _with_wrong_crc(page: FilePage) -> FilePage:
    page.header.crc = 5
    return page


def _list_file(page: FilePage) -> bytes:
    element = extended_idl().SchemaElement
    file = build_file([CLAIMED], [FileColumn("a", INT64, [[page]])])
    file.footer.schema = [
        element(name="schema", num_children=1),
        element(name="a", repetition_type=1, num_children=1, converted_type=3),
        element(name="list", repetition_type=2, num_children=1),
        element(name="element", type=INT64, repetition_type=1),
    ]
    file.footer.row_groups[0].columns[0].meta_data.path_in_schema = ["a", "list", "element"]
    return file.stored()


def _flat_file(page: FilePage, physical: int = INT64, repetition: int = 0) -> bytes:
    element = {"converted_type": 0} if physical == BYTE_ARRAY else {}
    return build_file([CLAIMED], [FileColumn("a", physical, [[page]], repetition, element=element)]).stored()


FILES = {
    "footer": lambda: _flat_file(data_page(4, BODY)),
    "strings": lambda: _flat_file(data_page(4, b"\1\0\0\0x" * 4), BYTE_ARRAY),
    "page header": lambda: _flat_file(data_page(CLAIMED, BODY)),
    "page header of version 2": lambda: _flat_file(data_page_v2(CLAIMED, 0, b"", BODY)),
    "levels": lambda: _flat_file(_with_wrong_crc(data_page(CLAIMED, nulls(CLAIMED))), INT64, OPTIONAL),
    "list": lambda: _list_file(data_page(4, nulls(4) + nulls(4))),
    "list levels": lambda: _list_file(_with_wrong_crc(data_page(CLAIMED, nulls(CLAIMED) * 2))),
}


def _run(count: int, value: bytes) -> bytes:
    """Encode an RLE run."""
    header, count = b"", count << 1
    while count > 127:
        header, count = header + bytes([count & 127 | 128]), count >> 7
    return header + bytes([count]) + value


def _dictionary_file(rows: int, entry: bytes, physical: int) -> bytes:
    pages = [dictionary_page(1, entry), data_page(rows, b"\1" + _run(rows, b"\0"), RLE_DICTIONARY)]
    return build_file([rows], [FileColumn("a", physical, [pages])]).stored()


def _booleans_file(rows: int) -> bytes:
    run = _run(rows, b"\1")
    page = data_page(rows, len(run).to_bytes(4, "little") + run, RLE)
    return build_file([rows], [FileColumn("a", BOOLEAN, [[page]])]).stored()


# Files that hold what they claim, in one run.
RUNS = {
    "nulls": lambda rows: build_file([rows], [FileColumn("a", INT64, [[data_page(rows, nulls(rows))]], 1)]).stored(),
    "booleans": _booleans_file,
    "numbers": lambda rows: _dictionary_file(rows, encode_plain(INT64, [5]), INT64),
    "strings": lambda rows: _dictionary_file(rows, encode_plain(BYTE_ARRAY, [b"x"]), BYTE_ARRAY),
}


MATCHES = {
    "nulls": col("a").is_null(),
    "booleans": col("a").isin([True]),
    "numbers": col("a") > 4,
    "strings": col("a") > b"",
}


@pytest.mark.parametrize("name", RUNS)
def test_count_of_rows_in_a_long_run(name):
    """A tiny file is counted unless it claims more than its bytes may hold; the limit of the caller counts then."""
    small, filters = ParquetFile(RUNS[name](100_000)), MATCHES[name]
    assert small.count_rows(filters) == small.count_rows(filters, memory_limit=64 << 20) == 100_000
    with pytest.raises(LimitError, match=r"memory_limit is 9\.8 KiB"):
        small.count_rows(filters, memory_limit=10_000)
    data = RUNS[name](2_000_000_000)
    assert len(data) < 200
    large = ParquetFile(data)
    for options in ({}, {"memory_limit": 1 << 30}):
        with pytest.raises(LimitError, match=r"a filter of row groups of 2,000,000,000 rows .*memory_limit"):
            large.count_rows(filters, **options)
    assert large.count_rows() == large.statistics("a")[0].num_values == 2_000_000_000


def test_count_in_too_little_memory_is_a_limit_error(monkeypatch):
    """It names the file, as the error of a read does."""

    def allocate(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Scan, "_decode", allocate)
    with pytest.raises(LimitError, match=r"not enough memory to read .* \(file '<bytes>'\)"):
        ParquetFile(RUNS["nulls"](100)).count_rows(col("a").is_null())


# Peak memory of a call in bytes, less the memory before it. Only Linux has clear_refs.
SCRIPT = """
import contextlib, io, sys
import pandas, pyarrow, numparq, numparq.cli, numparq.io.local_source

numparq.io.local_source.SETTLED_NS = 0  # so that files are cached though they have just been written

def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) << 10

path, way = sys.argv[1:]
ways = {
    "read": lambda path: numparq.read_parquet(path),
    "Arrow": lambda path: pyarrow.table(numparq.ParquetFile(path)),
    "Arrow table": lambda path: numparq.ParquetFile(path).to_arrow(),
    "batches": lambda path: list(numparq.ParquetFile(path).iter_batches()),
    "skip": lambda path: numparq.read_parquet(path, on_error="skip"),
    "skip, Arrow": lambda path: numparq.read_parquet(path, on_error="skip", dtype_backend="pyarrow"),
    "salvage": lambda path: numparq.salvage(path, path + ".saved", force=True),
    "salvage, schema": lambda path: numparq.salvage(path, path + ".saved", path + ".schema", force=True),
    "verify": numparq.verify,
    "count": lambda path: numparq.ParquetFile(path).count_rows(numparq.col("a").is_null()),
    "meta": lambda path: numparq.cli.main(["meta", path]),
}

def attempt(path):
    # Arrow's C stream carries the text of an error, not its class.
    with contextlib.suppress(numparq.ParquetError, pyarrow.ArrowInvalid), contextlib.redirect_stdout(io.StringIO()):
        ways[way](path)

numparq.to_parquet(pandas.DataFrame({"a": [[1], [2]], "b": ["x", "y"]}), path + ".small")
attempt(path + ".small")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = memory("VmRSS")
attempt(path)
print(memory("VmHWM") - before)
"""


def growth(path: Path, way: str) -> int:
    """Return the bytes by which a process of its own grows."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, path, way], capture_output=True, text=True)
    if "clear_refs" in done.stderr:
        pytest.skip("this system cannot reset the peak memory of a process")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FILES)
def test_claimed_rows_take_no_memory(tmp_path, name, way):
    path = tmp_path / "claims.parquet"
    path.write_bytes(FILES[name]())
    assert path.stat().st_size < 600
    assert growth(path, way) < GROWTH


@pytest.mark.slow
@pytest.mark.parametrize("way", ["batches", "Arrow", "Arrow table"])
@pytest.mark.parametrize("repetition", [0, OPTIONAL])
def test_claimed_rows_of_many_columns_take_no_memory(tmp_path, way, repetition):
    """Parts of a row group may have 2 GiB here, which no page fills."""
    path = tmp_path / "claims.parquet"
    pages = [data_page(4, (nulls(4) if repetition else b"") + BODY)]
    columns = [FileColumn(f"c{number}", INT64, [pages], repetition) for number in range(600)]
    path.write_bytes(build_file([CLAIMED], columns).stored())
    assert path.stat().st_size < 200_000
    assert growth(path, way) < GROWTH


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "times"), [("x" * LONG, 2), ('{"columns": [], "x": "' + "x" * LONG + '"}', 3)], ids=["unknown", "pandas"]
)
@pytest.mark.parametrize("way", WAYS)
def test_long_key_values(tmp_path, way, value, times):
    """A value that nothing needs is held as part of the footer, and once more where the footer is written or decoded.

    pandas metadata are decoded to text, and that to values.
    """
    path = tmp_path / "keys.parquet"
    pair = extended_idl().KeyValue(key="pandas" if times == 3 else "unknown", value=value)
    column = FileColumn("a", INT64, [[data_page(4, BODY)]])
    path.write_bytes(build_file([4], [column], key_value_metadata=[pair]).stored())
    assert growth(path, way) < times * LONG + (16 << 20)


DAMAGES = {
    "sound": lambda data, pages: data,
    "damaged": lambda data, pages: flip_bytes(data, *((page.body + page.end) // 2 for page in pages)),
    "cut": lambda data, pages: data[:-1000],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_salvage_holds_one_row_group(tmp_path, name):
    """Decoded, a row group has 6 MB: it is held once, and once more while it is written."""
    rng = np.random.default_rng(1)
    groups, rows = 32, 200_000
    frame = pd.DataFrame({name: rng.random(groups * rows) for name in "abcd"})
    frame["b"] = frame["b"] < 0.5
    data = numparq.to_parquet(frame, compression=None, row_group_size=rows)
    size = len(data)
    assert size > 145 << 20
    pages = [data_pages(data, group, column)[3] for group in range(groups) for column in "ad"]
    path = tmp_path / "file.parquet"
    path.write_bytes(DAMAGES[name](data, pages))
    numparq.to_parquet(frame[:0], f"{path}.schema")
    del frame, data
    assert growth(path, "salvage, schema") < GROWTH
    assert (tmp_path / "file.parquet.saved").stat().st_size > 0.9 * size


@pytest.mark.slow
def test_small_pages_of_a_file_without_a_footer(tmp_path):
    """A decoded page header takes a thousand bytes, which are not kept."""
    frame = pd.DataFrame({"a": np.arange(160_000)})
    data = numparq.to_parquet(frame, compression=None, use_dictionary=False, data_page_size=64)
    assert len(data_pages(data, 0, "a")) == 20_000
    path = tmp_path / "file.parquet"
    path.write_bytes(data[:-1000])
    assert growth(path, "verify") < 8 << 20


@pytest.mark.parametrize("name", FILES)
def test_lost_rows_are_a_range(name):
    """Nothing is made for each lost row: this would take seconds."""
    frame = numparq.read_parquet(FILES[name](), on_error="skip")
    assert frame.shape == (CLAIMED, 0)
    assert frame.index.equals(frame.index.__class__(CLAIMED))
    assert [loss.rows for loss in frame.attrs["numparq.lost"]] == [(0, CLAIMED)]
