"""Small files that are read together: a chunk of one never reaches into another, and errors name the right file."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

import numparq  # noqa: E402
from numparq.dataset.small_files import read_small_files  # noqa: E402
from support.files.edited_footers import write_with_footer  # noqa: E402

TABLE = pa.table({"a": np.arange(40), "s": [f"text {number}" for number in range(40)]})


def write_files(folder, edit, edited=1, files=4):
    for number in range(files):
        change = edit if number == edited else (lambda footer: None)
        data = write_with_footer(TABLE, change, row_group_size=20, compression="none")
        (folder / f"{number}.parquet").write_bytes(data)


def data_end(footer):
    """Return the end of the last column chunk, where the footer begins."""
    last = footer.row_groups[-1].columns[-1].meta_data
    return last.dictionary_page_offset + last.total_compressed_size


def longer_by_one(footer):
    footer.row_groups[1].columns[1].meta_data.total_compressed_size += 1


def in_next_file(footer):
    """Move the first chunk to the same place of the next file."""
    first = footer.row_groups[0].columns[0].meta_data
    distance = data_end(footer) + 1_000
    first.dictionary_page_offset += distance
    first.data_page_offset += distance


def in_file_before(footer):
    first = footer.row_groups[0].columns[0].meta_data
    first.dictionary_page_offset = -100
    first.data_page_offset = -50


@pytest.mark.parametrize(("edit", "row_group", "column"), [(in_next_file, 0, "a"), (in_file_before, 0, "a")])
def test_chunk_outside_of_its_file(tmp_path, edit, row_group, column):
    write_files(tmp_path, edit)
    with pytest.raises(numparq.InvalidFileError, match="outside of the file's data") as caught:
        numparq.read_parquet(tmp_path)
    where = caught.value.where
    assert where["file"].endswith("1.parquet")
    assert (where["row_group"], where["column"]) == (row_group, column)


def test_chunk_size_that_reaches_beyond_its_file(tmp_path):
    """The pages of the chunk end before."""
    write_files(tmp_path, longer_by_one)
    frame = numparq.read_parquet(tmp_path)
    write_files(tmp_path, lambda footer: None)
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(tmp_path))


def test_external_chunk_names_its_file_and_path(tmp_path):
    def edit(footer):
        for number, group in enumerate(footer.row_groups):
            group.columns[1].file_path = f"other{number}.parquet"
        footer.row_groups[0].columns[1].file_path = None

    write_files(tmp_path, edit, edited=2)
    with pytest.raises(numparq.UnsupportedError, match=r"other1\.parquet") as caught:
        numparq.read_parquet(tmp_path)
    where = caught.value.where
    assert where["file"].endswith("2.parquet")
    assert (where["row_group"], where["column"]) == (1, "s")


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_cells_of_bytes_are_read_together(form):
    frames = [pd.DataFrame({"a": np.arange(n) + 100 * n, "s": [f"{n}-{i}" for i in range(n)]}) for n in (3, 1, 40, 2)]
    cells = []
    for frame in frames:
        buffer = io.BytesIO()
        frame.to_parquet(buffer, row_group_size=7)
        cells.append(form(buffer.getvalue()))
    found, which = read_small_files(cells)
    expected = pd.concat(frames, ignore_index=True)
    assert found["a"].tolist() == expected["a"].tolist()
    assert found["s"].tolist() == expected["s"].tolist()
    assert which.tolist() == [cell for cell, frame in enumerate(frames) for _ in range(len(frame))]
