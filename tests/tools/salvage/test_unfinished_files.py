"""Files truncated after a checkpoint: the last complete footer is found, and no lookalike."""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq.errors import InvalidFileError
from numparq.format.footer import checkpoints
from numparq.format.footer.checkpoints import find_last_footer
from numparq.format.footer.rewrite import split_footer
from numparq.format.footer.tail import read_footer
from numparq.io.file_lock import boot_id
from numparq.io.local_source import BytesSource
from numparq.io.open import open_sink
from numparq.tools.salvage import leftovers, recover


def with_checkpoints(num_row_groups: int, rows: int = 100) -> tuple[bytes, list[int]]:
    """Return a file with a footer after every row group and two at its end, and the ends of all footers."""
    table = pa.table({"a": np.arange(num_row_groups * rows), "b": [f"row {i}" for i in range(num_row_groups * rows)]})
    buffer = io.BytesIO()
    pq.write_table(table.slice(0, rows), buffer, compression="none", write_page_index=True)
    out, ends = buffer.getvalue(), [len(buffer.getvalue())]
    for count in range(1, num_row_groups):
        out = append_row_group(out, table.slice(count * rows, rows))
        ends.append(len(out))
    out += out[read_footer(BytesSource(out))[1] :]
    return out, [*ends, len(out)]


def append_row_group(raw: bytes, table: pa.Table) -> bytes:
    """Append a row group and a new footer to a file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none", write_page_index=True)
    more = buffer.getvalue()
    footer, start = read_footer(BytesSource(more))
    group = shift_offsets(footer.record.row_groups[0].to_dict(), len(raw) - 4)
    parts = split_footer(read_footer(BytesSource(raw))[0])
    new = parts.encode([*parts.row_groups, group], parts.num_rows + len(table), {}, "x")
    return raw + more[4:start] + new + struct.pack("<I", len(new)) + b"PAR1"


def shift_offsets(group: dict, distance: int) -> dict:
    group["file_offset"] += distance
    for chunk in group["columns"]:
        for record in (chunk, chunk["meta_data"]):
            for name in ("data_page_offset", "dictionary_page_offset", "column_index_offset", "offset_index_offset"):
                if name in record:
                    record[name] += distance
    return group


RAW, ENDS = with_checkpoints(5)


def write_broken(tmp_path, raw: bytes):
    path = tmp_path / "broken"
    path.write_bytes(raw)
    return path


def test_pyarrow_reads_file_with_checkpoints():
    table = pq.read_table(io.BytesIO(RAW))
    assert table.column("a").to_pylist() == list(range(500))


def test_complete_file_is_unchanged(tmp_path):
    found = find_last_footer(write_broken(tmp_path, RAW))
    assert (found.end, found.num_rows, found.num_row_groups) == (len(RAW), 500, 5)
    before = os.stat(tmp_path / "broken")
    assert recover(tmp_path / "broken").end == before.st_size == os.path.getsize(tmp_path / "broken")


@pytest.mark.parametrize("block", [1 << 20, 13, 100])
def test_file_truncated_anywhere(tmp_path, monkeypatch, block):
    monkeypatch.setattr(checkpoints, "_BLOCK", block)
    rng = random.Random(4)
    cuts = {end + by for end in ENDS for by in (-1, 0, 1, 5)} | {0, 3, 4, 12}
    cuts |= {rng.randrange(len(RAW)) for _ in range(20)}
    for cut in sorted(cuts):
        path = write_broken(tmp_path, RAW[:cut])
        complete_ends = [end for end in ENDS if end <= cut]
        if not complete_ends:
            with pytest.raises(InvalidFileError):
                find_last_footer(path)
            continue
        found = recover(path)
        groups = min(len(complete_ends), 5)
        assert (found.end, found.num_row_groups) == (complete_ends[-1], groups)
        assert pq.read_table(path).column("b").to_pylist() == [f"row {i}" for i in range(100 * groups)]


LOOKALIKES = [
    b"PAR1",
    b"PAR1" * 500,
    bytes(100_000),
    b"\x15" * 5000 + b"\x00\x10\x00\x00PAR1",
    b"\xff\xff\xff\xffPAR1",
    b"PARE",
    RAW[: ENDS[0]],
    RAW[ENDS[0] - 300 : ENDS[0]],
]


@pytest.mark.parametrize("tail", LOOKALIKES, ids=range(len(LOOKALIKES)))
def test_footer_lookalikes_are_ignored(tmp_path, tail):
    """The last two are a whole file, or the tail of one, stored as values of this file."""
    assert find_last_footer(write_broken(tmp_path, RAW[: ENDS[3]] + b"\0" * 57 + tail)).end == ENDS[3]


def test_embedded_file_is_ignored(tmp_path):
    """The inner footer is valid, but its pages are at other offsets."""
    inner = io.BytesIO()
    pd.DataFrame({"x": np.random.default_rng(1).random(1000)}).to_parquet(inner)
    path = write_broken(tmp_path, RAW[: ENDS[2]] + bytes(500) + inner.getvalue() + bytes(500))
    assert find_last_footer(path).end == ENDS[2]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1",
        b"PAR1\0\0\0\0PAR1",
        b"PAR1\1\0\0\0PAR1",
        b"no file" * 99,
        b"PAR1" + bytes(5000),
        b"PAR1" * 5000,
        RAW[4:],
        RAW[: ENDS[0] - 1],
    ],
)
def test_file_without_footer_raises(tmp_path, raw):
    path = write_broken(tmp_path, raw)
    with pytest.raises(InvalidFileError) as raised:
        recover(path)
    assert raised.value.where["file"] == str(path)
    assert path.read_bytes() == raw, "the file is unchanged"


def test_search_for_footers_is_bounded(tmp_path):
    """Each of many magic numbers claims nearly the whole file for its footer."""
    size = 200_000
    raw = bytearray(b"PAR1" + b"\x15" * size)
    for position in range(5000, size - 8, 8):
        raw[position : position + 8] = struct.pack("<I", position - 100) + b"PAR1"
    with pytest.raises(InvalidFileError, match="false footers hold over 3 times"):
        find_last_footer(write_broken(tmp_path, bytes(raw)))


def test_damaged_bytes_never_give_a_wrong_footer(tmp_path):
    rng = random.Random(9)
    for _ in range(150):
        raw = bytearray(RAW[: ENDS[1]])
        for _ in range(rng.choice([1, 3, 20])):
            raw[rng.randrange(4, len(raw))] = rng.randrange(256)
        with contextlib.suppress(InvalidFileError):
            assert find_last_footer(write_broken(tmp_path, bytes(raw))).end in ENDS[:2]


def test_recover_into_another_file(tmp_path):
    path = write_broken(tmp_path, RAW[: ENDS[2] + 50])
    found = recover(path, tmp_path / "good")
    assert found.num_rows == 300
    assert path.stat().st_size == ENDS[2] + 50
    assert (tmp_path / "good").read_bytes() == RAW[: ENDS[2]]


@pytest.mark.skipif(os.name != "posix", reason="uses POSIX locks")
def test_leftovers_of_killed_writer_are_recovered(tmp_path):
    (tmp_path / "raw").write_bytes(RAW[: ENDS[3] + 20])
    path = tmp_path / "a b.parquet"
    code = f"""
        import os, signal
        from numparq.io.open import open_sink
        sink = open_sink({str(path)!r})
        sink.write(open({str(tmp_path / "raw")!r}, "rb").read())
        sink.sync()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    with open_sink(path) as sink, open_sink(tmp_path / "other"):
        sink.write(b"another writer at work")
        (leftover,) = leftovers(path)
        assert os.path.basename(leftover).startswith(".a b.parquet.")
        with pytest.raises(BlockingIOError, match="still being written"):
            recover(sink.temporary)
        assert recover(leftover).num_rows == 400
        sink.abort()
    os.replace(leftover, path)
    assert pq.read_table(path).num_rows == 400
    assert leftovers(path) == []


@pytest.mark.skipif(os.name != "posix", reason="names of leftovers contain POSIX boot ids")
def test_leftovers_of_other_boots(tmp_path):
    path = tmp_path / "a"
    names = {
        f".a.{boot_id()}-0123456789ab.numparq": 2,
        ".a.another-0123456789ab.numparq": 1,
        ".ab.another-0123456789ab.numparq": 3,
        ".a.another.numparq": 4,
        "a": 5,
    }
    for name, modified in names.items():
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (modified, modified))
    found = [str(tmp_path / name) for name in list(names)[:2]]
    assert leftovers(path) == found[:1]
    assert leftovers(path, of_other_systems=True) == found
