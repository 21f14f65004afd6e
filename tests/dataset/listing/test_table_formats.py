"""Tables of other systems are recognised at, above and below a path, and neither misread nor written."""

from __future__ import annotations

import io
from itertools import product

import fsspec
import pandas as pd
import pyarrow.fs
import pytest

import numparq
from numparq.dataset import DatasetWriter, SharedJob, recover
from numparq.dataset.splits.table import split_table
from numparq.errors import UnsupportedError
from numparq.tools.profile.job import profile_files
from support.data.foreign_tables import FOREIGN, add_rows, forge_sink, forge_table, sink_entry
from support.io.remote_datasets import remote_folder

FRAME = pd.DataFrame({"a": [7]})
TABLES = [kind for kind in FOREIGN if kind != "streaming sink"]


def contents(root) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", TABLES)
def test_other_tables_are_not_read(kind, tmp_path):
    root = forge_table(tmp_path / "in/table", kind)
    below = "data/p=1" if kind == "Iceberg" else "p=1"
    for path in (root, root / below, tmp_path / "in", root / below / "*.parquet", [root / below / "one.parquet"]):
        with pytest.raises(UnsupportedError, match=f"{kind} table.*read it with") as raised:
            numparq.read_parquet(path)
        assert raised.value.where["file"] == str(root)
        assert len(numparq.read_parquet(path, table_format="parquet")) in (2, 3)
    for read in (numparq.Dataset, split_table, profile_files):
        with pytest.raises(UnsupportedError, match=kind):
            read(root)
        read(root, table_format="parquet")
    assert len(numparq.read_parquet(root / below / "one.parquet")) == 2


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("below", ["", "p=1", "new/folder"])
def test_other_tables_are_not_written(kind, below, tmp_path):
    root = forge_table(tmp_path / "table", kind)
    before = contents(tmp_path)
    path = root / below
    for behavior in ("error", "overwrite_or_ignore", "delete_matching"):
        with pytest.raises(UnsupportedError, match=f"{kind}.*write it with"):
            numparq.to_parquet(FRAME, path, partition_cols=[], existing_data_behavior=behavior)
    for mode in ("append", "overwrite", "delete_matching"):
        with pytest.raises(UnsupportedError, match=kind):
            SharedJob.begin(path, mode=mode)
    with pytest.raises(UnsupportedError, match=kind):
        recover(path)
    assert contents(tmp_path) == before
    numparq.to_parquet(FRAME, path / "x", partition_cols=[], table_format="parquet")
    assert len(contents(tmp_path)) == len(before) + 1


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ["p=1/one.parquet", "new.parquet"])
def test_single_files_of_other_tables_are_not_written(kind, name, tmp_path, monkeypatch):
    root = forge_table(tmp_path / "table", kind)
    if kind == "Iceberg" and name.startswith("p"):
        name = f"data/{name}"
    (tmp_path / "link.parquet").symlink_to(root / name)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = contents(tmp_path)
    paths = [root / name, f"file://{root / name}", f"~/table/{name}", f"local://{root / name}"]
    local = fsspec.filesystem("file"), pyarrow.fs.LocalFileSystem()
    for path, where in [*product([*paths, tmp_path / "link.parquet"], [None]), *product(paths[:1], local)]:
        with pytest.raises(UnsupportedError, match=f"{kind}.*write it with"):
            numparq.to_parquet(FRAME, path, filesystem=where)
    assert contents(tmp_path) == before
    numparq.to_parquet(FRAME, root / name, table_format="parquet")
    assert numparq.read_parquet(root / name).equals(FRAME)


def test_file_systems_that_only_open_files_are_written():
    class OnlyOpens:
        def __init__(self):
            self.files = {}

        def open(self, path, mode, autocommit=True):
            self.files[path] = file = io.BytesIO()
            file.close = file.commit = file.discard = lambda: None
            return file

        def mv(self, old, new):
            self.files[new] = self.files.pop(old)

    system = OnlyOpens()
    numparq.to_parquet(FRAME, "one.parquet", filesystem=system)
    (found,) = system.files.values()
    assert numparq.read_parquet(found.getvalue()).equals(FRAME)


@pytest.mark.parametrize("kind", FOREIGN)
def test_folder_of_tables_is_not_overwritten(kind, tmp_path):
    forge_table(tmp_path / "table", kind)
    before = contents(tmp_path)
    with (
        pytest.raises(UnsupportedError, match=kind),
        DatasetWriter(tmp_path, existing_data_behavior="delete_matching") as writer,
    ):
        writer.write(FRAME)
    job = SharedJob.begin(tmp_path, mode="overwrite")
    with job.task("0") as task:
        task.write(FRAME)
    with pytest.raises(UnsupportedError, match=kind):
        job.commit([task.message])
    job.abort()
    assert contents(tmp_path) == before


def test_plain_folders_are_no_tables(tmp_path):
    add_rows(tmp_path / "metadata/one.parquet", 1)
    add_rows(tmp_path / "data/two.parquet", 2)
    (tmp_path / "_delta_log").write_text("a file")
    assert len(numparq.read_parquet(tmp_path)) == 2
    assert len(numparq.read_parquet(tmp_path / "data")) == 1
    numparq.to_parquet(FRAME, tmp_path / "data", partition_cols=[], append=True)
    with pytest.raises(ValueError, match="table_format must be 'auto' or 'parquet', not 'delta'"):
        numparq.read_parquet(tmp_path, table_format="delta")
    with pytest.raises(ValueError, match="table_format must be"):
        numparq.to_parquet(FRAME, tmp_path, partition_cols=[], table_format="delta")


@pytest.mark.parametrize(
    "name", ["version-hint.text", "v3.metadata.json", "0-a.gz.metadata.json", "v1.metadata.json.gz"]
)
def test_names_of_iceberg_metadata(name, tmp_path):
    add_rows(tmp_path / "data/one.parquet", 1)
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / name).write_text("1")
    for path in (tmp_path, tmp_path / "data"):
        with pytest.raises(UnsupportedError, match="Iceberg"):
            numparq.read_parquet(path)


def test_hudi_partition_alone_is_recognised(tmp_path):
    add_rows(tmp_path / "2024/01/one.parquet", 1)
    (tmp_path / "2024/01/.hoodie_partition_metadata").write_text("")
    for path in (tmp_path, tmp_path / "2024/01"):
        with pytest.raises(UnsupportedError, match="Hudi"):
            numparq.read_parquet(path)


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("store", ["memory", "arrow"])
def test_remote_tables(kind, store, tmp_path):
    with remote_folder(store, tmp_path) as (base, filesystem):
        place = {"filesystem": filesystem}
        forged = forge_table(tmp_path / "forged", kind)
        if kind == "streaming sink":
            url = "memory:/" + base if store == "memory" else f"file:///{base}"
            forge_sink(forged, {"0": [sink_entry(f"{url}/p=1/one.parquet")]})
        make = RemoteFiles(filesystem)
        for path in forged.rglob("*"):
            if path.is_file():
                make.put(f"{base}/{path.relative_to(forged)}", path.read_bytes())
        partition = f"{base}/data/p=1" if kind == "Iceberg" else f"{base}/p=1"
        for path in (base, partition, [f"{partition}/one.parquet"]):
            if kind == "streaming sink":
                assert sorted(numparq.read_parquet(path, **place)["a"]) == [1, 2]
            else:
                with pytest.raises(UnsupportedError, match=kind):
                    numparq.read_parquet(path, **place)
            assert len(numparq.read_parquet(path, table_format="parquet", **place)) in (2, 3)
            with pytest.raises(UnsupportedError, match=kind):
                numparq.to_parquet(
                    FRAME, path if isinstance(path, str) else base, partition_cols=[], append=True, **place
                )


class RemoteFiles:
    """Puts files on an fsspec or pyarrow file system."""

    def __init__(self, filesystem) -> None:
        self._filesystem = filesystem

    def put(self, path: str, data: bytes) -> None:
        if hasattr(self._filesystem, "pipe_file"):
            self._filesystem.pipe_file(path, data)
            return
        self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with self._filesystem.open_output_stream(path) as file:
            file.write(data)
