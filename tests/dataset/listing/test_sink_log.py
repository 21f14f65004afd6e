"""The log of a Spark streaming sink: batches, compaction, damage, and paths outside the folder."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

import numparq
from numparq.errors import InvalidFileError
from support.data.foreign_tables import add_rows, forge_sink, sink_entry


def values(path, **options) -> list[int]:
    return sorted(numparq.read_parquet(path, **options)["a"].tolist())


@pytest.fixture
def sink(tmp_path):
    """A sink of files 0 to 4, and an orphan."""
    root = tmp_path / "sink"
    for number in range(5):
        add_rows(root / f"{number}.parquet", number)
    add_rows(root / "orphan.parquet", 99)
    return root


def test_only_files_of_the_log_are_data(sink):
    forge_sink(sink, {str(number): [sink / f"{number}.parquet"] for number in range(5)})
    (sink / "_spark_metadata/.0.crc").write_bytes(b"x")
    (sink / "_spark_metadata/.5.aa-bb.tmp").write_bytes(b"x")
    assert values(sink) == values(sink / "*.parquet") == values([sink]) == [0, 1, 2, 3, 4]
    assert values([sink / "orphan.parquet", sink / "1.parquet"]) == [1]
    assert values(sink, table_format="parquet") == [0, 1, 2, 3, 4, 99]
    assert values(sink / "orphan.parquet") == [99]  # one file is that file
    assert numparq.Dataset(sink).num_rows == 5


def test_latest_compacted_batch_replaces_those_before(sink):
    lines = [sink / "0.parquet", sink / "1.parquet", sink_entry(sink / "sub", is_directory=True)]
    forge_sink(sink, {"0": [sink / "orphan.parquet"], "1.compact": [sink / "orphan.parquet"], "2": ["damaged"]})
    forge_sink(sink, {"3.compact": lines, "4": [sink / "2.parquet", sink_entry(sink / "0.parquet", "delete")]})
    assert values(sink) == [1, 2]


def test_log_without_batches_has_no_data(sink):
    forge_sink(sink, {})
    with pytest.raises(InvalidFileError, match="no Parquet files"):
        numparq.read_parquet(sink)


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        ({"0": [], "2": []}, "batch 1 of the streaming sink's log is missing"),
        ({"9.compact": [], "11": []}, "batch 10 of the streaming sink's log is missing"),
        ({"0": ['{"path": "file:/x'], "1": []}, "entry 1 of the streaming sink's log is damaged"),
        ({"0": ["[]"]}, "entry 1 of the streaming sink's log is damaged"),
        ({"0": [sink_entry("file:/x", "rename")]}, "entry 1 of the streaming sink's log is damaged"),
        ({"0": [sink_entry("file:/elsewhere/x.parquet")]}, "names 'file:/elsewhere/x.parquet', which is not in"),
        ({"0": [sink_entry("http://[x")]}, "which is not in its folder"),
    ],
)
def test_damaged_log_is_an_error(sink, batches, text):
    forge_sink(sink, batches)
    with pytest.raises(InvalidFileError, match=text) as raised:
        numparq.read_parquet(sink)
    assert 'table_format="parquet"' in str(raised.value)
    assert len(numparq.read_parquet(sink, table_format="parquet")) == 6


@pytest.mark.parametrize("version", ["v2\n", "", "{}\n", "\x80"])
def test_other_versions_of_the_log_are_an_error(sink, version):
    forge_sink(sink, {})
    (sink / "_spark_metadata/0").write_text(version)
    with pytest.raises(InvalidFileError, match="must begin with 'v1'"):
        numparq.read_parquet(sink)


@pytest.mark.parametrize("inside", ["../other/x.parquet", "./0.parquet", "..%2Fother/x.parquet", "/0.parquet"])
def test_paths_that_leave_the_folder_are_refused(sink, inside):
    add_rows(sink.parent / "other/x.parquet", 5)
    forge_sink(sink, {"0": [sink_entry(f"{sink.as_uri()}/{inside}")]})
    if inside.endswith("0.parquet"):  # another spelling of a path inside
        assert values(sink) == [0]
    else:
        with pytest.raises(InvalidFileError, match="which is not in its folder"):
            numparq.read_parquet(sink)


def test_moved_sink_is_an_error(sink):
    forge_sink(sink, {"0": [sink / "0.parquet"]})
    moved = shutil.move(sink, sink.parent / "moved")
    with pytest.raises(InvalidFileError, match="was it moved"):
        numparq.read_parquet(moved)


def test_missing_file_is_an_error(sink):
    forge_sink(sink, {"0": [sink / "0.parquet", sink / "gone.parquet"]})
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        numparq.read_parquet(sink)
    assert values(sink / "*.parquet") == [0]


def test_partitions_names_and_links(tmp_path, monkeypatch):
    root = tmp_path / "a sink%é"
    paths = [add_rows(root / f"time=2024 12%3A{hour}/p.parquet", hour) for hour in (10, 11)]
    add_rows(root / "time=2024 12%3A10/orphan.parquet", 99)
    forge_sink(root, {"0": paths})
    assert values(root) == [10, 11]
    assert values(root / "time=2024 12%3A10") == [10]
    assert values(tmp_path) == [10, 11]
    monkeypatch.chdir(root)
    assert values(".") == [10, 11]
    assert values("time=2024 12%3A10/*.parquet") == [10]
    if sys.platform != "win32":
        os.symlink(root, tmp_path.parent / f"{tmp_path.name}-link")
        assert values(tmp_path.parent / f"{tmp_path.name}-link") == [10, 11]
        os.symlink(paths[0].parent, tmp_path.parent / f"{tmp_path.name}-partition")
        assert values(tmp_path.parent / f"{tmp_path.name}-partition") == [10]


def test_files_that_come_after_the_listing_are_read(sink, monkeypatch):
    from numparq.dataset.discover import files

    forge_sink(sink, {"0": [sink / "0.parquet", sink / "1.parquet"]})
    whole = files.list_local

    def early(*arguments):
        found = whole(*arguments)
        found.paths.remove(f"{sink}/1.parquet")
        return found

    monkeypatch.setattr(files, "list_local", early)
    assert values(sink) == [0, 1]
