"""Parts of encrypted datasets: swapped, moved, replayed, removed and added ones are errors."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Dataset, DatasetWriter, Decryption, DecryptionError, Encryption, InvalidFileError, PartPrefix
from numparq.dataset.commit import local_stage, local_store
from numparq.dataset.splits.table import split_table
from numparq.dataset.write.shared_job import SharedJob

pytest.importorskip("cryptography")

KEY, COLUMN = b"0123456789abcdef", b"0123456789abcdef01234567"
PREFIX = PartPrefix(b"lake/events")
FRAME = pd.DataFrame({"day": np.arange(40) // 20, "a": np.arange(40), "b": np.arange(40) % 3})
MODES = [
    {"plaintext_footer": plaintext_footer, "algorithm": algorithm, "store_aad_prefix": store}
    for plaintext_footer in (False, True)
    for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1")
    for store in (False, True)
]


def write(folder, frame=FRAME, prefix=PREFIX, **options):
    """Write a dataset of two files in each of two folders; return its parts."""
    encryption = Encryption(KEY, {"a": COLUMN}, encrypt_other_columns=True, aad_prefix=prefix, **options)
    options = {"encryption": encryption, "max_rows_per_file": 10, "existing_data_behavior": "overwrite_or_ignore"}
    with DatasetWriter(folder, partition_cols=["day"], **options) as writer:
        writer.write(frame)
    return writer.parts


def keys(prefix=PREFIX):
    return Decryption(KEY, {"a": COLUMN}, aad_prefix=prefix)


def read(folder, decryption=None, **options):
    """Read a dataset in the ways of a user; return its rows."""
    decryption = decryption or keys()
    with Dataset(folder, decryption=decryption, **options) as dataset:
        rows = dataset.read()
        assert dataset.read(filters=[("a", ">=", 0)]).equals(rows)
        assert dataset.count_rows() == len(rows)
        return rows


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "events")
    return tmp_path / "events"


def parts_of(folder):
    return sorted(folder.rglob("*.parquet"))


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_parts_are_known_by_their_paths(tmp_path, mode):
    write(tmp_path / "events", **mode)
    assert sorted(read(tmp_path / "events")["a"]) == [*range(40)]
    for prefix in (None, b"lake/events", PartPrefix(b"lake/other")):
        if prefix is None and mode["store_aad_prefix"]:
            continue
        with pytest.raises(DecryptionError):
            read(tmp_path / "events", keys(prefix))


def swap(parts):
    other = parts[1].read_bytes()
    shutil.copy(parts[0], parts[1])
    parts[0].write_bytes(other)


def swap_partitions(parts):
    swap([parts[0], parts[-1]])


def move(parts):
    parts[0].rename(parts[-1].with_name(parts[0].name))


def rename(parts):
    parts[0].rename(parts[0].with_name("part-another.parquet"))


def copy(parts):
    shutil.copy(parts[0], parts[0].with_name("zzz.parquet"))


def replace_by_copy(parts):
    shutil.copy(parts[0], parts[1])


@pytest.mark.parametrize("attack", [swap, swap_partitions, move, rename, copy, replace_by_copy])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_parts_in_other_places_do_not_authenticate(tmp_path, attack, mode):
    write(tmp_path / "events", **mode)
    attack(parts_of(tmp_path / "events"))
    for _ in range(2):  # caches of the first read give nothing to the second
        with pytest.raises(DecryptionError):
            numparq.read_parquet(tmp_path / "events", decryption=keys())
        with pytest.raises(DecryptionError):
            read(tmp_path / "events")


def test_parts_of_another_dataset_do_not_authenticate(tmp_path):
    write(tmp_path / "events")
    write(tmp_path / "others", prefix=PartPrefix(b"lake/others"))
    victim, source = parts_of(tmp_path / "events")[0], parts_of(tmp_path / "others")[0]
    shutil.copy(source, victim)
    with pytest.raises(DecryptionError):
        read(tmp_path / "events")


def test_the_same_bytes_at_two_paths_have_their_own_answers(folder):
    """Footers of equal bytes share a cache, in which the prefix of the part counts."""
    first, *_ = parts_of(folder)
    rooted = keys(PartPrefix(PREFIX.prefix, root=folder))
    rows = numparq.read_parquet(first, decryption=rooted)
    copied = first.with_name("copied.parquet")
    shutil.copy(first, copied)
    for _ in range(2):
        with pytest.raises(DecryptionError):
            numparq.read_parquet(copied, decryption=rooted)
        pd.testing.assert_frame_equal(numparq.read_parquet(first, decryption=rooted), rows)


def test_removed_and_added_parts_are_noticed(folder, tmp_path):
    with Dataset(folder, decryption=keys()) as dataset:
        parts = dataset.parts
    assert len(parts) == 4
    assert all(name.startswith("day=") and len(value) == 64 for name, value in parts.items())
    for expected in (parts, list(parts), set(parts), dict.fromkeys(parts)):
        assert len(read(folder, expected_parts=expected)) == 40
    removed = parts_of(folder)[2]
    name = removed.relative_to(folder).as_posix()
    removed.rename(tmp_path / "kept")
    assert len(read(folder)) == 30, "without the list, nothing tells"
    for expected in (parts, list(parts)):
        with pytest.raises(InvalidFileError, match=f"parts of expected_parts are missing: '{name}' "):
            Dataset(folder, decryption=keys(), expected_parts=expected)
    (tmp_path / "kept").rename(removed)
    write(folder)
    with pytest.raises(InvalidFileError, match="parts are not in expected_parts"):
        Dataset(folder, decryption=keys(), expected_parts=parts)


def test_an_open_dataset_notices_removal_as_it_lists_again(folder):
    with Dataset(folder, decryption=keys(), expected_parts=Dataset(folder, decryption=keys()).parts) as dataset:
        parts_of(folder)[0].unlink()
        with pytest.raises(InvalidFileError, match="are missing"):
            dataset.read()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_older_versions_of_a_part_are_noticed(tmp_path, mode):
    """Of the same keys and the same path, so that it authenticates."""
    folder = tmp_path / "events"
    part = folder / "day=0" / "a.parquet"
    part.parent.mkdir(parents=True)
    encryption = Encryption(KEY, {"a": COLUMN}, aad_prefix=PREFIX.of("day=0/a.parquet"), **mode)
    numparq.to_parquet(FRAME[:10].drop(columns="day"), part, encryption=encryption)
    older = part.read_bytes()
    numparq.to_parquet(FRAME[10:20].drop(columns="day"), part, encryption=encryption)
    with Dataset(folder, decryption=keys()) as dataset:
        parts = dataset.parts
    assert read(folder, expected_parts=parts)["a"].tolist() == [*range(10, 20)]
    part.write_bytes(older)
    assert read(folder)["a"].tolist() == [*range(10)], "it authenticates"
    for call in (Dataset.read, Dataset.count_rows, lambda each: each.read(filters=[("a", "<", 3)])):
        with pytest.raises(InvalidFileError, match="another version than that of expected_parts") as caught:
            call(Dataset(folder, decryption=keys(), expected_parts=parts))
        assert caught.value.where["file"].endswith("a.parquet")
    part.write_bytes(b"")
    with pytest.raises(InvalidFileError):
        Dataset(folder, decryption=keys(), expected_parts=parts).read()


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_writers_know_the_fingerprints_of_their_parts(tmp_path, plaintext_footer):
    parts = write(tmp_path / "events", plaintext_footer=plaintext_footer)
    with Dataset(tmp_path / "events", decryption=keys()) as dataset:
        assert dataset.parts == parts
    if plaintext_footer:
        with Dataset(tmp_path / "events") as dataset:
            assert dataset.parts == parts, "without keys, too"
    encryption = Encryption(KEY, {"a": COLUMN}, encrypt_other_columns=True, aad_prefix=PREFIX)
    job = SharedJob.begin(tmp_path / "events", partition_cols=["day"], encryption=encryption)
    with job.task("0") as writer:
        writer.write(FRAME)
    job.commit([writer.message])
    assert len(read(tmp_path / "events", expected_parts={**parts, **writer.message.parts})) == 80
    with DatasetWriter(tmp_path / "plain") as writer:
        writer.write(FRAME)
    assert list(writer.parts.values()) == [None]
    assert len(Dataset(tmp_path / "plain", expected_parts=writer.parts).read()) == 40
    with Dataset(tmp_path / "plain") as dataset:
        plain = dataset.parts
    numparq.to_parquet(FRAME[:1], tmp_path / "plain" / next(iter(plain)))
    with pytest.raises(InvalidFileError, match="another version"):
        Dataset(tmp_path / "plain", expected_parts=plain).read(filters=[("a", "=", 0)])


def test_wrong_expectations_are_refused(folder):
    for expected in ("day=0/x.parquet", b"x", 7, [1], {"x": 1}):
        with pytest.raises(TypeError, match="expected_parts must"):
            Dataset(folder, decryption=keys(), expected_parts=expected)
    rooted = keys(PartPrefix(PREFIX.prefix, root=folder))
    for path in (parts_of(folder), str(folder / "*" / "*.parquet"), parts_of(folder)[0]):
        with pytest.raises(ValueError, match="open the dataset by its folder"):
            Dataset(path, decryption=rooted, expected_parts=[])
    with pytest.raises(InvalidFileError, match="are not in expected_parts"):
        Dataset(folder, decryption=keys(), expected_parts=[])


def test_prefixes_show_what_they_are():
    assert repr(PartPrefix(b"x", root="/data")) == "PartPrefix(b'x', root='/data')"
    assert PartPrefix(b"x").of("k=ä/b") == b"x/" + os.fsencode("k=ä/b")
    assert "PartPrefix(b'lake/events')" in repr(keys())
    for wrong in ("x", b"", None):
        with pytest.raises(TypeError, match="prefix must be bytes"):
            PartPrefix(wrong)
    with pytest.raises(TypeError, match=r"bytes.* or a numparq\.PartPrefix"):
        Decryption(KEY, aad_prefix="x")


def test_each_reader_gets_its_own_answer(folder):
    """Readers of the same path and bytes with all keys, some keys, other keys, another prefix, and none, in turn."""
    other = Decryption(b"fedcba9876543210", {"a": COLUMN}, aad_prefix=PREFIX)
    wrong_column = Decryption(KEY, {"a": b"765432100123456789abcdef"}, aad_prefix=PREFIX)
    some = Decryption(KEY, aad_prefix=PREFIX)
    expected = numparq.read_parquet(folder, decryption=keys())
    for _ in range(3):
        for columns in (["a"], ["b"], None):
            rows = numparq.read_parquet(folder, columns=columns, decryption=keys())
            pd.testing.assert_frame_equal(rows, expected[columns] if columns else expected)
            for decryption in (other, keys(PartPrefix(b"lake/other")), None):
                with pytest.raises(DecryptionError):
                    numparq.read_parquet(folder, columns=columns, decryption=decryption)
                with pytest.raises(DecryptionError):
                    split_table(folder, columns, decryption=decryption)
        pd.testing.assert_frame_equal(numparq.read_parquet(folder, columns=["b"], decryption=some), expected[["b"]])
        for decryption in (some, wrong_column):
            with pytest.raises(DecryptionError, match="'a'"):
                numparq.read_parquet(folder, columns=["a"], decryption=decryption)
            table = split_table(folder, ["b"], decryption=decryption)
            assert sum(map(table.count, table.splits)) == len(expected)


@pytest.mark.parametrize("root", [None, "memory://lake/events"])
def test_parts_on_other_file_systems(root):
    fsspec = pytest.importorskip("fsspec")
    filesystem = fsspec.filesystem("memory")
    filesystem.rm("/lake", recursive=True) if filesystem.exists("/lake") else None
    prefix = PartPrefix(PREFIX.prefix, root=root)
    parts = write("memory://lake/events", prefix=prefix)
    assert sorted(read("memory://lake/events", expected_parts=parts)["a"]) == [*range(40)]
    names = [f"/lake/events/{name}" for name in sorted(parts)]
    one = numparq.read_parquet(
        f"memory:/{names[0]}", decryption=keys(PartPrefix(PREFIX.prefix, "memory://lake/events"))
    )
    assert len(one) == 10
    table = split_table("memory://lake/events", decryption=keys(), split_bytes=1000, expected_parts=parts)
    assert sum(len(table.frame(split)) for split in table.splits) == 40
    contents = [filesystem.cat_file(name) for name in names[:2]]
    for name, content in zip(names[:2], reversed(contents), strict=True):
        filesystem.pipe_file(name, content)
    with pytest.raises(DecryptionError, match="AAD prefix differs"):
        read("memory://lake/events")
    filesystem.rm(names[3])
    with pytest.raises(InvalidFileError, match="are missing"):
        read("memory://lake/events", expected_parts=parts)


def test_relative_paths_and_links(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("events")
    (tmp_path / "linked").symlink_to(tmp_path / "events")
    for path in ("events", "./events/", tmp_path / "events", f"file://{tmp_path}/events", "linked"):
        assert len(read(path)) == 40
        table = split_table(path, decryption=keys())
        monkeypatch.chdir("/")
        assert sum(len(table.frame(split)) for split in table.splits) == 40
        monkeypatch.chdir(tmp_path)
    for root in ("events", "./events/", tmp_path / "events", f"file://{tmp_path}/events"):
        rooted = keys(PartPrefix(PREFIX.prefix, root=root))
        assert len(numparq.read_parquet("events/day=0", decryption=rooted)) == 20


def test_parts_of_a_commit_that_was_interrupted(tmp_path, monkeypatch):
    """Until another process completes it, the files are still in the stage, under other names."""

    def interrupt(base, record):
        local_store._make_folders(base, record)
        local_store._write_record(base, record)

    monkeypatch.setattr(local_stage, "commit", interrupt)
    monkeypatch.chdir(tmp_path)
    parts = write("events")
    assert not list((tmp_path / "events").glob("day=*/*"))
    for path in ("events", tmp_path / "events"):
        assert len(read(path, expected_parts=parts)) == 40
        table = split_table(path, decryption=keys(), expected_parts=parts)
        monkeypatch.chdir("/")
        assert sum(len(table.frame(split)) for split in table.splits) == 40
        monkeypatch.chdir(tmp_path)
    monkeypatch.undo()
    write(tmp_path / "events")
    assert len(parts_of(tmp_path / "events")) == 8
    assert len(read(tmp_path / "events")) == 80
