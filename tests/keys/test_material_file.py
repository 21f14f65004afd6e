"""Key material next to written files: crashes at each step, replaced files, links, remote file systems, refusals."""

from __future__ import annotations

import io
import json
import os

import pandas as pd
import pytest

import numparq
from numparq import KmsDecryption, KmsEncryption, UnsupportedError
from numparq.io import local_sink
from numparq.keys.material_file import material_name
from support.encryption.kms import MemoryKms

OLD, NEW = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), pd.DataFrame({"a": [3, 4, 5], "b": ["z", None, "w"]})


def external(**options) -> KmsEncryption:
    return KmsEncryption(MemoryKms(), "kf", {"kc1": ["a"]}, internal_key_material=False, **options)


def read(path, **options) -> pd.DataFrame:
    return numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms()), **options)


def material_of(path) -> dict[str, str]:
    return json.loads(path.with_name(material_name(str(path))).read_bytes())


@pytest.mark.parametrize("double_wrapping", [True, False])
def test_files_and_their_key_material(tmp_path, double_wrapping):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(OLD, path, encryption=external(double_wrapping=double_wrapping))
    assert sorted(os.listdir(tmp_path)) == ["_KEY_MATERIAL_FOR_a.parquet.json", "a.parquet"]
    assert material_of(path).keys() == {"footerKey", "columnKey0"}
    assert "internalStorage" not in json.loads(material_of(path)["footerKey"])
    pd.testing.assert_frame_equal(read(path), OLD)
    pd.testing.assert_frame_equal(read(tmp_path), OLD)


def test_key_material_of_a_replaced_file_ends_with_it(tmp_path):
    path = tmp_path / "a.parquet"
    for number, frame in enumerate((OLD, NEW, OLD, NEW)):
        numparq.to_parquet(frame, path, encryption=external())
        pd.testing.assert_frame_equal(read(path), frame)
        assert len(material_of(path)) == 2
        assert "footerKey" in material_of(path) or number % 2


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("replaces", [False, True])
def test_no_crash_leaves_a_file_without_its_key_material(tmp_path, monkeypatch, step, replaces):
    class CrashError(BaseException):
        pass

    def replace(start, end):
        steps.append(os.path.basename(end))
        if len(steps) > step:
            raise CrashError
        os.rename(start, end)

    steps, path, earlier = [], tmp_path / "a.parquet", [OLD] if replaces else []
    for frame in earlier:
        numparq.to_parquet(frame, path, encryption=external())
    monkeypatch.setattr(local_sink.os, "replace", replace)
    try:
        numparq.to_parquet(NEW, path, encryption=external())
    except CrashError:
        assert step < (3 if replaces else 2)
    monkeypatch.undo()
    material = "_KEY_MATERIAL_FOR_a.parquet.json"
    assert steps == [material, "a.parquet", *[material] * replaces][: step + 1]
    if path.exists():
        frame = NEW if step > 1 else OLD
        pd.testing.assert_frame_equal(read(path), frame)
    else:
        assert step < 2
        assert not replaces
    numparq.to_parquet(OLD, path, encryption=external())
    pd.testing.assert_frame_equal(read(path), OLD)
    assert len(material_of(path)) == 2
    assert len(os.listdir(tmp_path)) == 2


def test_an_aborted_write_leaves_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    writer = numparq.ParquetWriter(path, encryption=external())
    writer.write(OLD)
    writer.abort()
    assert os.listdir(tmp_path) == []


def test_files_behind_links_have_it_next_to_them(tmp_path):
    (tmp_path / "data").mkdir()
    numparq.to_parquet(OLD, tmp_path / "data" / "a.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "data" / "a.parquet")
    numparq.to_parquet(NEW, tmp_path / "link.parquet", encryption=external())
    assert sorted(os.listdir(tmp_path / "data")) == ["_KEY_MATERIAL_FOR_a.parquet.json", "a.parquet"]
    for path in (tmp_path / "link.parquet", tmp_path / "data" / "a.parquet"):
        pd.testing.assert_frame_equal(read(path), NEW)


def test_damaged_key_material_of_a_replaced_file(tmp_path):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(OLD, path, encryption=external())
    (tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json").write_text("damaged")
    numparq.to_parquet(NEW, path, encryption=external())
    pd.testing.assert_frame_equal(read(path), NEW)


def test_remote_file_systems():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for frame in (OLD, NEW):
        numparq.to_parquet(frame, "memory://material/a.parquet", encryption=external())
        pd.testing.assert_frame_equal(read("memory://material/a.parquet"), frame)
        pd.testing.assert_frame_equal(read("/material/a.parquet", filesystem=memory), frame)
        names = sorted(path.rpartition("/")[2] for path in memory.find("/material"))
        assert names == ["_KEY_MATERIAL_FOR_a.parquet.json", "a.parquet"]
    pd.testing.assert_frame_equal(read("memory://material"), NEW)
    memory.rm("/material/_KEY_MATERIAL_FOR_a.parquet.json")
    with pytest.raises(numparq.DecryptionError, match="is missing"):
        read("memory://material/a.parquet")


def test_file_systems_of_pyarrow(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    for filesystem in (fs.LocalFileSystem(), fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())):
        path = "a.parquet" if filesystem.type_name == "subtree" else str(tmp_path / "a.parquet")
        numparq.to_parquet(OLD, path, filesystem=filesystem, encryption=external())
        pd.testing.assert_frame_equal(read(path, filesystem=filesystem), OLD)
        pd.testing.assert_frame_equal(read(tmp_path / "a.parquet"), OLD)


@pytest.mark.parametrize("target", [lambda: None, io.BytesIO])
def test_targets_without_a_path_are_refused(target):
    with pytest.raises(UnsupportedError, match="write to a path or a dataset, not into memory or a file object"):
        numparq.to_parquet(OLD, target(), encryption=external())
