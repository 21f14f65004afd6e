"""Small files read whole into shared buffers: their bytes, what is left to other sources, and files that change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.io import small_files
from numparq.io.small_files import SmallFilesSource, UnloadedFileSource, open_small_files
from numparq.kernels.tables import SLACK
from support.files.page_damage import edit_footer


@pytest.fixture
def paths(tmp_path):
    """Write files of 1 to 9 bytes."""
    found = []
    for size in range(1, 10):
        path = tmp_path / str(size)
        path.write_bytes(bytes(range(size)))
        found.append((str(path), f"name {size}"))
    return found


@pytest.mark.parametrize("room", [1 << 20, 10])
def test_bytes_of_files(paths, monkeypatch, room):
    monkeypatch.setattr(small_files, "MAX_BUFFER_BYTES", room)
    sources = open_small_files(*zip(*paths, strict=True), 9)
    assert [source.name for source in sources] == [name for _, name in paths]
    for size, source in enumerate(sources, 1):
        assert source.size == size
        for start in range(size + 1):
            assert source.view(start, size - start, SLACK)[: size - start].tobytes() == bytes(range(start, size))
        assert source.view(0, size + 1, 0) is None
        assert source.view(-1, 1, 0) is None
        (found,) = source.read_ranges([(0, size)])
        assert found[:size].tobytes() == bytes(range(size))
        out = np.zeros(size, np.uint8)
        source.read_into(0, out)
        assert out.tobytes() == bytes(range(size))
        assert (source.num_requests, source.num_bytes) == (1, size)
        with pytest.raises(numparq.InvalidFileError, match="beyond the file's"):
            source.read_into(1, out)
    buffers = {id(source.buffer) for source in sources}
    assert (len(buffers) == 1) == (room > 100)


def test_joined_files_are_read_one_by_one(paths, monkeypatch):
    read = []
    original = small_files._read_whole
    monkeypatch.setattr(small_files, "_read_whole", lambda path, *more: read.append(path) or original(path, *more))
    files = [UnloadedFileSource(path, name, os.stat(path)) for path, name in paths]
    joined = SmallFilesSource(files)
    for _ in range(2):  # the second time after the bytes were dropped
        found = joined.view(joined.starts[3] + 1, 2, SLACK)
        assert found[:2].tolist() == [1, 2]
        assert not found.flags.writeable
        (found,) = joined.read_ranges([(joined.starts[3], joined.starts[5] + 1)])
        assert (found[0], found[joined.starts[4] - joined.starts[3] + 4]) == (0, 4)
        assert read == [path for path, _ in paths[3:6]]
        read.clear()
        joined.release()
    assert (joined.num_requests, joined.num_bytes) == (6, 2 * (4 + 5 + 6))
    with pytest.raises(numparq.InvalidFileError, match="beyond the file's"):
        joined.read_into(joined.size, np.zeros(1, np.uint8))
    Path(paths[8][0]).write_bytes(b"changed")
    with pytest.raises(FileNotFoundError, match="replaced or changed"):
        joined.view(joined.starts[8], 1, 0)


def test_what_is_not_read(paths, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    more = [(str(tmp_path / name), name) for name in ("fifo", "empty", "missing", ".")]
    assert [source is not None for source in open_small_files(*zip(*paths, *more, strict=True), 4)] == [True] * 4 + [
        False
    ] * 9


@pytest.mark.parametrize("change", [b"", b"longer than it was", b"x" * 5])
def test_file_written_to_while_it_is_read(paths, monkeypatch, change):
    """It is left to a source that raises for such files."""
    preadv = os.preadv

    def changing(descriptor, buffers, position):
        count = preadv(descriptor, buffers, position)
        if len(buffers[0]) == 5:
            with open(paths[4][0], "wb") as file:
                file.write(change)
            os.utime(paths[4][0], (1, 1))
        return count

    monkeypatch.setattr(os, "preadv", changing)
    assert [source is None for source in open_small_files(*zip(*paths, strict=True), 9)] == [
        size == 5 for size in range(1, 10)
    ]


@pytest.mark.parametrize("place", ["chunk of the next file", "own footer"])
def test_chunk_beyond_its_file_is_not_read_from_the_next(tmp_path, place):
    """The bytes of the next file lie behind those of a file: no offset may reach them."""
    data = numparq.to_parquet(pd.DataFrame({"a": range(100)}))
    length = len(edit_footer(data, lambda footer: None)) + 1  # a larger offset takes a byte more
    shift = length + SLACK if place == "chunk of the next file" else length - 20

    def move(footer):
        meta = footer.row_groups[0].columns[0].meta_data
        for name in ("data_page_offset", "dictionary_page_offset"):
            if getattr(meta, name):
                setattr(meta, name, getattr(meta, name) + shift)

    for number in range(3):
        (tmp_path / f"{number}.parquet").write_bytes(edit_footer(data, move) if number == 1 else data)
    assert (tmp_path / "1.parquet").stat().st_size == length
    with pytest.raises(numparq.InvalidFileError, match="lies outside of the file's data") as caught:
        numparq.read_parquet(tmp_path)
    assert caught.value.where["file"].endswith("1.parquet")


def test_directory_that_became_a_file(tmp_path):
    """What was read stays readable, as from an open descriptor."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(3):
        pd.DataFrame({"a": [number]}).to_parquet(folder / f"{number}.parquet")
    dataset = numparq.Dataset(folder)
    assert dataset.read()["a"].tolist() == [0, 1, 2]
    shutil.rmtree(folder)
    folder.write_text("no directory")
    assert dataset.read()["a"].tolist() == [0, 1, 2]
