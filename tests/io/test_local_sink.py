"""Sinks for local files: a path holds the old file or the whole new one."""

from __future__ import annotations

import errno
import io
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from numparq.io import local_sink
from numparq.io.open import open_sink
from support.io.local_files import file_names, write_file

POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX only")


@pytest.mark.parametrize("form", [str, Path, lambda path: f"file://{path}", os.fsencode])
def test_local_path_forms(tmp_path, form):
    path = tmp_path / "some file.parquet"
    if form is os.fsencode:
        with pytest.raises(TypeError, match="not bytes"):
            open_sink(form(path))
        return
    write_file(form(path), b"new")
    assert path.read_bytes() == b"new"
    assert file_names(tmp_path) == ["some file.parquet"]


def test_home_directory_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_file("~/a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_relative_path_is_resolved_on_open(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    with open_sink("a") as target:
        target.write(b"x")
        os.chdir(tmp_path)
    assert file_names(tmp_path / "in") == ["a"]


def test_very_long_names(tmp_path):
    for name in ("n" * 255, "é" * 127):
        write_file(tmp_path / name, b"x")
        with open_sink(tmp_path / name) as target:
            assert Path(target.temporary).name.startswith(local_sink.temporary_prefix(str(tmp_path / name)))
    assert len(file_names(tmp_path)) == 2


def test_old_file_stays_until_commit(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with open_sink(path) as target:
        target.write(b"n" * 10_000_000)
        assert path.read_bytes() == b"old"
        temporary_names = [name for name in file_names(tmp_path) if name != "a"]
        assert len(temporary_names) == 1
        assert temporary_names[0].startswith(".a.")
        assert temporary_names[0].endswith(".numparq")
    assert path.stat().st_size == 10_000_000
    assert file_names(tmp_path) == ["a"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existed", [True, False])
def test_exception_leaves_directory_unchanged(tmp_path, kind, existed):
    path = tmp_path / "a"
    if existed:
        path.write_bytes(b"old")
    with pytest.raises(kind), open_sink(path) as target:
        target.write(b"new" * 1_000_000)
        raise kind
    assert file_names(tmp_path) == (["a"] if existed else [])
    assert not existed or path.read_bytes() == b"old"


def test_garbage_collected_sink_leaves_no_file(tmp_path):
    open_sink(tmp_path / "a").write(b"x" * 1_000_000)
    assert file_names(tmp_path) == []


def test_commit_and_abort_are_final(tmp_path):
    target = open_sink(tmp_path / "a")
    target.write(b"x")
    target.commit()
    target.commit()
    target.abort()
    assert (tmp_path / "a").read_bytes() == b"x"
    with pytest.raises(ValueError, match="is finished"):
        target.write(b"y")
    other = open_sink(tmp_path / "a")
    other.abort()
    other.abort()
    for call in (other.commit, other.flush, lambda: other.write(b"z")):
        with pytest.raises(ValueError, match="is aborted"):
            call()
    assert (tmp_path / "a").read_bytes() == b"x"
    assert file_names(tmp_path) == ["a"]


def test_abort_and_error_inside_with_block(tmp_path, monkeypatch):
    with open_sink(tmp_path / "a") as target:
        target.abort()
    assert file_names(tmp_path) == []

    def fail(*args):
        raise OSError(errno.EIO, "broken")

    with pytest.raises(ValueError, match="aborted after an error"), open_sink(tmp_path / "a") as target:
        monkeypatch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="broken"):
            target.write(bytes(1_000_000))
        monkeypatch.undo()  # the caller continues despite the error
    assert file_names(tmp_path) == []


def test_last_of_two_concurrent_commits_wins(tmp_path):
    first, second = open_sink(tmp_path / "a"), open_sink(tmp_path / "a")
    first.write(b"1" * 1000)
    second.write(b"2" * 1000)
    second.commit()
    assert (tmp_path / "a").read_bytes() == b"2" * 1000
    first.commit()
    assert (tmp_path / "a").read_bytes() == b"1" * 1000
    assert file_names(tmp_path) == ["a"]


@POSIX
def test_file_permissions(tmp_path):
    path = tmp_path / "a"
    mask = os.umask(0o027)
    try:
        write_file(path, b"1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, "the default of new files"
        path.chmod(0o604)
        write_file(path, b"2")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604, "the mode of the replaced file"
        with open_sink(path) as target:
            assert stat.S_IMODE(os.stat(target.temporary).st_mode) == 0o604
    finally:
        os.umask(mask)


@POSIX
def test_symlinks_stay_symlinks(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/a")
    write_file(tmp_path / "link", b"1")  # a dangling link
    write_file(tmp_path / "link", b"2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "a").read_bytes() == b"2"
    assert file_names(tmp_path) == ["link", "there"]
    assert file_names(tmp_path / "there") == ["a"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop") as raised:
        open_sink(tmp_path / "loop")
    assert raised.value.errno == errno.ELOOP


def test_unwritable_paths_raise(tmp_path):
    with pytest.raises(IsADirectoryError):
        open_sink(tmp_path)
    with pytest.raises(IsADirectoryError):
        open_sink(f"{tmp_path}/new/")
    with pytest.raises(FileNotFoundError, match=r"directory .*nowhere' does not exist"):
        open_sink(tmp_path / "nowhere" / "a")
    with pytest.raises(FileNotFoundError, match="empty"):
        open_sink("")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        open_sink(tmp_path / "file" / "a")


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root ignores permissions")
def test_missing_permissions_raise(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        open_sink(path)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError, match="directory must be writable"):
            open_sink(tmp_path / "b")
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("path", [5, ["a"], b"a", object()])
def test_invalid_path_types_raise(path):
    with pytest.raises(TypeError, match="path must be a str"):
        open_sink(path)


def test_incompatible_options_raise(tmp_path):
    for path in (None, io.BytesIO(), tmp_path / "a"):
        with pytest.raises(ValueError, match="storage_options"):
            open_sink(path, storage_options={"key": "x"})
    with pytest.raises(TypeError, match="filesystem must be of"):
        open_sink(tmp_path / "a", filesystem=5)
    with pytest.raises(ValueError, match="which has its own"):
        open_sink("a", storage_options={"key": 1}, filesystem=5)


SYSTEM_ERRORS = [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "quota"), (errno.EIO, "device"), (errno.EPIPE, "after")]


@pytest.mark.parametrize(("number", "advice"), SYSTEM_ERRORS)
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_failing_system_calls_keep_old_file(tmp_path, monkeypatch, number, advice, step):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    real = getattr(os, step)
    calls = []

    def fail(*args):
        calls.append(step)
        if step == "write" and len(calls) < 3:
            return real(args[0], args[1][:100_000])  # a short write, as before a disk is full
        raise OSError(number, os.strerror(number))

    target = open_sink(path)
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match=advice) as raised:
        target.write(b"n" * 300_000)
        target.commit()
    monkeypatch.undo()
    assert raised.value.errno == number
    assert raised.value.filename == str(path)
    assert f"after {200_000 if step == 'write' else 300_000:,} bytes" in str(raised.value)
    assert file_names(tmp_path) == ["a"]
    assert path.read_bytes() == b"old"
    with pytest.raises(ValueError, match="is aborted"):
        target.commit()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_device_raises():
    with pytest.raises(
        OSError, match=r"No space left on device, after 0 bytes; the disk is full: .*/dev/full"
    ) as raised:
        write_file("/dev/full", b"x" * 1_000_000)
    assert raised.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="disk is full"):
        write_file("/dev/full", b"few")  # raised by the commit
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="disk is full"):
        write_file(full, b"few")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@POSIX
def test_file_size_limit_raises(tmp_path):
    """Uses a real limit of the operating system, in a separate process."""
    code = f"""
        import resource, signal
        from numparq.io.open import open_sink
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        try:
            with open_sink({str(tmp_path / "a")!r}) as target:
                for _ in range(10):
                    target.write(bytes(400_000))
        except OSError as error:
            print(error.errno, error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{errno.EFBIG} ")
    assert "after 1,000,000 bytes; the file system or a limit" in done.stdout
    assert file_names(tmp_path) == []


@POSIX
def test_devices_and_pipes_are_written_directly(tmp_path):
    write_file("/dev/null", b"x" * 1_000_000)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", b"x" * 300_000, b"y")
    reader.join()
    assert found == [b"x" * 300_000 + b"y"]
    assert file_names(tmp_path) == ["pipe"]


WRITER = """
import sys
from numparq.io.open import open_sink
print("ready", flush=True)
for number in range(1, 1_000_000):
    with open_sink(sys.argv[1]) as target:
        for _ in range(8):
            target.write(bytes([number % 251]) * 300_000)
"""


def is_whole(data: bytes) -> bool:
    return data == b"old" or (len(data) == 8 * 300_000 and data == data[:1] * len(data))


@pytest.mark.slow
@POSIX
def test_kill_leaves_old_or_new_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    rng = random.Random(8)
    for _ in range(8):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        assert is_whole(path.read_bytes())
        leftovers = [name for name in file_names(tmp_path) if name != "a"]
        assert len(leftovers) <= 1
        write_file(path, b"old")
        assert path.read_bytes() == b"old", "leftover temporary files do not disturb writers"
        for name in leftovers:
            assert name.startswith(local_sink.temporary_prefix(str(path)))
            assert name.endswith(local_sink.TEMPORARY_SUFFIX)
            (tmp_path / name).unlink()
