"""Key material of a dataset's files: with its data file in each commit, replaced with it, after a kill at any step."""

from __future__ import annotations

import os

import pandas as pd
import pytest

import numparq
from numparq import DatasetWriter, DecryptionError, KmsDecryption, KmsEncryption
from numparq.dataset.commit.recover import recover
from support.encryption.kms import MemoryKms

OLD = pd.DataFrame({"key": [0, 0, 1, 1], "number": [1, 2, 3, 4]})
NEW = OLD.assign(number=[5, 6, 7, 8])


def external(**options) -> KmsEncryption:
    return KmsEncryption(MemoryKms(), "kf", {"kc1": ["number"]}, internal_key_material=False, **options)


def write(frame, path, **options) -> None:
    options = {"partition_cols": ["key"], "encryption": external(), "threads": 1} | options
    numparq.to_parquet(frame, path, **options)


def numbers(path) -> list[int]:
    return sorted(numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms()))["number"].tolist())


def assert_each_file_has_its_own(folder) -> None:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    data = {name for name in names if "_KEY_MATERIAL_FOR_" not in name}
    assert names - data == {name.replace("/part-", "/_KEY_MATERIAL_FOR_part-") + ".json" for name in data}


@pytest.mark.parametrize("keep_replaced", [0, 3600])
def test_it_leaves_with_its_data_file(tmp_path, keep_replaced):
    write(OLD, tmp_path)
    assert_each_file_has_its_own(tmp_path)
    dataset = numparq.Dataset(tmp_path, decryption=KmsDecryption(MemoryKms()))
    assert dataset.files
    options = {"existing_data_behavior": "delete_matching", "keep_replaced": keep_replaced}
    write(NEW[:2], tmp_path, **options)
    assert numbers(tmp_path) == [3, 4, 5, 6]
    if keep_replaced:
        assert dataset.read()["number"].tolist() == [1, 2, 3, 4], "files that were listed before are kept"
    else:
        assert_each_file_has_its_own(tmp_path)
    write(NEW, tmp_path, append=True)
    assert len(numbers(tmp_path)) == 8


def test_a_writer_that_is_aborted_leaves_nothing(tmp_path):
    path = tmp_path / "data"
    writer = DatasetWriter(path, partition_cols=["key"], encryption=external(), max_rows_per_file=1)
    writer.write(OLD)
    writer.abort()
    assert not path.exists()


def test_file_systems_without_renames():
    fsspec = pytest.importorskip("fsspec")
    memory, path = fsspec.filesystem("memory"), "memory://key-material"
    write(OLD, path)
    write(NEW[:2], path, existing_data_behavior="delete_matching")
    assert numbers(path) == [3, 4, 5, 6]
    names = [name.rpartition("/")[2] for name in memory.find("/key-material")]
    assert sum(name.startswith("_KEY_MATERIAL_FOR_part-") for name in names) == 2
    assert len(names) == 4
    writer = DatasetWriter(
        path, partition_cols=["key"], encryption=external(), existing_data_behavior="overwrite_or_ignore"
    )
    writer.write(NEW)
    writer.abort()
    assert len(memory.find("/key-material")) == 4


@pytest.mark.parametrize("place", ["local", "remote"])
def test_shared_jobs_commit_that_of_the_attempts_that_they_commit(tmp_path, place):
    path = tmp_path / "data" if place == "local" else "memory://shared-key-material"
    options = {"partition_cols": ["key"], "encryption": external()}
    messages = []
    for mode, frame in (("append", OLD), ("overwrite", NEW)):
        job = numparq.dataset.SharedJob.begin(path, mode=mode, **options)
        attempts = [job.task("1") for _ in range(3)]
        for attempt in attempts:
            attempt.write(frame)
        attempts[2].abort()
        messages = [attempt.close() for attempt in attempts[:2]]
        assert job.commit(messages[:1])
        assert numbers(path) == sorted(frame["number"])
        assert messages[0].files[0].staged_material
    if place == "local":
        assert_each_file_has_its_own(path)
        job = numparq.dataset.SharedJob.begin(path, mode="append", **options)
        job.task("1").write(OLD)
        job.abort()
        assert_each_file_has_its_own(path)


def test_files_without_it_say_so(tmp_path):
    write(OLD, tmp_path)
    for path in tmp_path.rglob("_KEY_MATERIAL_FOR_*"):
        path.unlink()
    with pytest.raises(DecryptionError, match=r"'_KEY_MATERIAL_FOR_part-.*json', is missing"):
        numbers(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("step", range(24))
@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_writer_killed_at_any_step(tmp_path, step, replaces, is_shared):
    def write_shared():
        job = numparq.dataset.SharedJob.begin(
            tmp_path, mode="delete_matching" if replaces else "append", partition_cols=["key"], encryption=external()
        )
        with job.task("1") as task:
            task.write(NEW)
        job.commit([task.message])

    def die_at(step):
        def wrap(call):
            def counted(*arguments, **options):
                calls.append(call.__name__)
                return os._exit(9) if len(calls) > step else call(*arguments, **options)

            return counted

        calls = []
        for name in ("replace", "rename", "unlink"):
            setattr(os, name, wrap(getattr(os, name)))

    write(OLD, tmp_path)
    mode = {"existing_data_behavior": "delete_matching"} if replaces else {"append": True}
    child = os.fork()
    if not child:
        try:
            die_at(step)
            write_shared() if is_shared else write(NEW, tmp_path, **mode)
        finally:
            os._exit(0)
    was_killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    after = [5, 6, 7, 8] if replaces else [1, 2, 3, 4, 5, 6, 7, 8]
    read = numbers(tmp_path)
    assert read in ([1, 2, 3, 4], after) if was_killed else read == after
    recover(tmp_path, abandoned=True)
    assert numbers(tmp_path) == read
    assert_each_file_has_its_own(tmp_path)


def test_shared_jobs_with_a_schema(tmp_path):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema({"key": pa.int64(), "number": pa.int64()})
    with pytest.raises(numparq.SchemaError, match="column_keys names 'none'"):
        numparq.dataset.SharedJob.begin(
            tmp_path / "data",
            schema=schema,
            encryption=KmsEncryption(MemoryKms(), "kf", {"kc1": ["none"]}, internal_key_material=False),
        )
    job = numparq.dataset.SharedJob.begin(tmp_path / "data", schema=schema, encryption=external())
    with job.task("1") as task:
        task.write(OLD)
    assert job.commit([task.message])
    assert numbers(tmp_path / "data") == [1, 2, 3, 4]
