"""Copies of a file's beginning into a sink: all copy methods, and their fallbacks."""

from __future__ import annotations

import errno
import os
import random

import pytest

from numparq.errors import InvalidFileError
from numparq.io import copy
from numparq.io.copy import copy_prefix
from numparq.io.open import open_sink

DATA = random.Random(3).randbytes(300_001)
LINUX = pytest.mark.skipif(not hasattr(os, "copy_file_range"), reason="Linux only")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return path


@pytest.mark.parametrize("length", [0, 1, 4096, 300_000, 300_001])
@pytest.mark.parametrize("before", [b"", b"PAR1"])
def test_copy_into_a_file(tmp_path, source, length, before):
    with open_sink(tmp_path / "a") as sink:
        sink.write(before)
        copy_prefix(source, sink, length)
        assert sink.position == len(before) + length
        sink.write(b"behind")
    assert (tmp_path / "a").read_bytes() == before + DATA[:length] + b"behind"


def test_copy_onto_itself(source):
    """An append does this."""
    with open_sink(source) as sink:
        copy_prefix(source, sink, 1000)
        sink.write(b"new")
    assert source.read_bytes() == DATA[:1000] + b"new"


def test_copy_into_memory_from_a_descriptor(source):
    descriptor = os.open(source, os.O_RDONLY)
    try:
        os.lseek(descriptor, 77, os.SEEK_SET)
        with open_sink(None) as sink:
            copy_prefix(descriptor, sink, 250_000)
        assert sink.getvalue() == DATA[:250_000]
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 77
    finally:
        os.close(descriptor)


@LINUX
def test_copy_file_range_copies_all_bytes(tmp_path, source, monkeypatch):
    monkeypatch.setattr(
        copy,
        "_copy_through_memory",
        lambda source, sink, done, length: pytest.fail("not copied") if done < length else None,
    )
    monkeypatch.setattr(copy, "_MAX_SYSTEM_COPY", 100_000)
    with open_sink(tmp_path / "a") as sink:
        copy_prefix(source, sink, len(DATA))
    assert (tmp_path / "a").read_bytes() == DATA


@LINUX
@pytest.mark.parametrize("first", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, 0, -1])
@pytest.mark.parametrize("second", [errno.EINVAL, errno.ENOSYS, 0, -1])
def test_failing_system_calls_fall_back(tmp_path, source, monkeypatch, first, second):
    """Each system call may fail at once, copy nothing, or stop after some bytes (-1)."""

    def failing(name, how):
        real, calls = getattr(os, name), []

        def call(*args):
            calls.append(args)
            if how > 0:
                raise OSError(how, "no")
            if how == 0 or len(calls) > 1:
                return 0
            size = 2 if name == "copy_file_range" else 3
            return real(*args[:size], 5000, *args[size + 1 :])

        monkeypatch.setattr(os, name, call)

    failing("copy_file_range", first)
    failing("sendfile", second)
    with open_sink(tmp_path / "a") as sink:
        sink.write(b"PAR1")
        copy_prefix(source, sink, 200_000)
        assert sink.position == 200_004
    assert (tmp_path / "a").read_bytes() == b"PAR1" + DATA[:200_000]


@LINUX
def test_full_disk_raises(tmp_path, source, monkeypatch):
    def fail(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", fail)
    with pytest.raises(OSError, match="after 4 bytes; the disk is full") as raised, open_sink(tmp_path / "a") as sink:
        sink.write(b"PAR1")
        copy_prefix(source, sink, 200_000)
    assert raised.value.errno == errno.ENOSPC
    assert sorted(os.listdir(tmp_path)) == ["source"]


def test_short_and_missing_sources_raise(tmp_path, source):
    with pytest.raises(InvalidFileError, match="fewer than the 300,002"), open_sink(tmp_path / "a") as sink:
        copy_prefix(source, sink, len(DATA) + 1)
    with pytest.raises(FileNotFoundError), open_sink(tmp_path / "a") as sink:
        copy_prefix(tmp_path / "nothing", sink, 5)
    assert sorted(os.listdir(tmp_path)) == ["source"]


def test_source_changed_during_copy_raises(tmp_path, source, monkeypatch):
    real = copy._copy_through_memory

    def change(descriptor, sink, done, length):
        real(descriptor, sink, done, length)
        with open(source, "ab") as file:
            file.write(b"more")

    monkeypatch.setattr(copy, "_copy_through_memory", change)
    with pytest.raises(InvalidFileError, match="changed during the copy"), open_sink(tmp_path / "a") as sink:
        copy_prefix(source, sink, 1000)
    assert sorted(os.listdir(tmp_path)) == ["source"]
