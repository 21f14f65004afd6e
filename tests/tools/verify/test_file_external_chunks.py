"""`numparq verify --external-files`: column chunks in other files, and missing files."""

from __future__ import annotations

import struct

import pytest

import numparq
from numparq.cli import main
from numparq.errors import UnsupportedError
from numparq.tools.verify.file import check_file
from support.files import builder as h
from support.files.spec_violations import sound_file

PATH = "part/a.parquet"


@pytest.fixture
def folder(tmp_path):
    """Return a directory with a complete file and a `_metadata` file that points to it."""
    data = sound_file()
    (tmp_path / "part").mkdir()
    (tmp_path / PATH).write_bytes(data)
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = h.from_bytes("FileMetaData", data[-8 - length : -8])
    for group in footer.row_groups:
        for chunk in group.columns:
            chunk.file_path = PATH
    (tmp_path / "_metadata").write_bytes(h.with_footer(b"PAR1", footer))
    return tmp_path


def checks(path, **options):
    return {deviation.check for deviation in numparq.verify(path, **options)}


def test_external_chunks_are_checked(folder):
    report = check_file(folder / "_metadata", external_files=True)
    assert report.deviations == []
    assert report.checked_counts == check_file(sound_file()).checked_counts
    assert checks(folder / "_metadata") == {"not-checked"}


def test_damage_in_external_chunks_is_found(folder):
    data = bytearray((folder / PATH).read_bytes())
    meta_data = numparq.ParquetFile(sound_file()).metadata.row_groups[0].columns[0].meta_data
    data[meta_data.data_page_offset + meta_data.total_compressed_size - 1] ^= 1
    (folder / PATH).write_bytes(data)
    assert "page-crc" in checks(folder / "_metadata", external_files=True)


def test_missing_external_files(folder):
    (folder / PATH).rename(folder / "part" / "b.parquet")
    found = numparq.verify(folder / "_metadata", external_files=True)
    assert {deviation.check for deviation in found} == {"chunk-file"}
    assert len(found) == 8
    assert "No such file" in found[0].message
    assert (found[0].row_group, found[0].column) == (0, "i")


@pytest.mark.parametrize("path", ["../a.parquet", "/etc/passwd", "https://example.org/a.parquet"])
def test_paths_outside_the_directory_are_not_opened(folder, path):
    data = (folder / "_metadata").read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = h.from_bytes("FileMetaData", data[-8 - length : -8])
    footer.row_groups[0].columns[0].file_path = path
    (folder / "_metadata").write_bytes(h.with_footer(b"PAR1", footer))
    assert checks(folder / "_metadata", external_files=True) == {"chunk-file"}


def test_bytes_with_external_files_raise():
    with pytest.raises(UnsupportedError, match="the path of a local file"):
        numparq.verify(sound_file(), external_files=True)


def test_verify_command_with_external_files(folder, capsys):
    name = str(folder / "_metadata")
    assert main(["verify", "--strict", name]) == 1
    assert main(["verify", "--strict", "--external-files", name]) == 0
    assert "26 pages, 26 checksums" in capsys.readouterr().out
