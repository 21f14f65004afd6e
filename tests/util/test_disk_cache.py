"""The disk cache: atomic, checksummed and private; its failures never fail the caller."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings

import pytest

from numparq.util import disk_cache

DATA = bytes(range(256)) * 40
unix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only Unix has owners and modes")


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NUMPARQ_CACHE_DIR", str(folder))
    monkeypatch.setattr(disk_cache, "_warned", False)
    return folder


def entry_file(cache_dir):
    (path,) = cache_dir.glob("*.bin")
    return path


def test_store_then_load(cache_dir):
    assert disk_cache.load("kernels", b"key") is None
    assert disk_cache.store("kernels", b"key", DATA)
    assert disk_cache.load("kernels", b"key") == DATA
    assert disk_cache.load("kernels", b"other") is None
    assert disk_cache.load("tables", b"key") is None
    assert disk_cache.store("kernels", b"key", b"newer")
    assert disk_cache.load("kernels", b"key") == b"newer"
    assert disk_cache.store("kernels", b"empty", b"")
    assert disk_cache.load("kernels", b"empty") == b""


@unix
def test_directory_is_private_to_the_user(cache_dir):
    disk_cache.store("kernels", b"key", DATA)
    assert cache_dir.stat().st_mode & 0o777 == 0o700
    assert entry_file(cache_dir).stat().st_mode & 0o777 == 0o644


def test_flipped_bits_are_detected(cache_dir):
    disk_cache.store("kernels", b"key", DATA)
    path = entry_file(cache_dir)
    whole = path.read_bytes()
    for position in [*range(40), *range(40, len(whole), 97), len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        assert disk_cache.load("kernels", b"key") is None
    path.write_bytes(whole)
    assert disk_cache.load("kernels", b"key") == DATA


@pytest.mark.parametrize("keep", [0, 1, 31, 32, 33, 1000, -1])
def test_truncated_file_is_not_loaded_and_is_replaced(cache_dir, keep):
    disk_cache.store("kernels", b"key", DATA)
    path = entry_file(cache_dir)
    path.write_bytes(path.read_bytes()[:keep])
    assert disk_cache.load("kernels", b"key") is None
    assert disk_cache.store("kernels", b"key", DATA)
    assert disk_cache.load("kernels", b"key") == DATA


def test_entry_under_another_key_is_not_loaded(cache_dir):
    disk_cache.store("kernels", b"key", DATA)
    right = entry_file(cache_dir)
    disk_cache.store("kernels", b"other", b"something else")
    (other,) = [path for path in cache_dir.glob("*.bin") if path != right]
    os.replace(other, right)
    assert disk_cache.load("kernels", b"key") is None


@unix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_directory_writable_by_others_is_refused(cache_dir, mode):
    disk_cache.store("kernels", b"key", DATA)
    cache_dir.chmod(mode)
    assert disk_cache.load("kernels", b"key") is None
    with pytest.warns(RuntimeWarning, match="other users can write"):
        assert not disk_cache.store("kernels", b"key", DATA)


@unix
def test_file_writable_by_others_is_refused(cache_dir):
    disk_cache.store("kernels", b"key", DATA)
    entry_file(cache_dir).chmod(0o606)
    assert disk_cache.load("kernels", b"key") is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_other_owners_are_refused(cache_dir):
    disk_cache.store("kernels", b"key", DATA)
    os.chown(entry_file(cache_dir), 12345, -1)
    assert disk_cache.load("kernels", b"key") is None
    disk_cache.store("kernels", b"key", DATA)
    os.chown(cache_dir, 12345, -1)
    assert disk_cache.load("kernels", b"key") is None


def test_unwritable_directory_warns_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("NUMPARQ_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(disk_cache, "_warned", False)
    with pytest.warns(RuntimeWarning, match="NUMPARQ_CACHE_DIR") as caught:
        assert not disk_cache.store("kernels", b"key", DATA)
        assert not disk_cache.store("kernels", b"key", DATA)
    assert len(caught) == 1
    assert disk_cache.load("kernels", b"key") is None
    with disk_cache.build_lock("kernels", b"key"):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can write anywhere")
def test_read_only_directory_is_read(cache_dir):
    disk_cache.store("kernels", b"key", DATA)
    cache_dir.chmod(0o500)
    try:
        assert disk_cache.load("kernels", b"key") == DATA
        with disk_cache.build_lock("kernels", b"key"):
            pass
        with pytest.warns(RuntimeWarning):
            assert not disk_cache.store("kernels", b"other", DATA)
    finally:
        cache_dir.chmod(0o700)


def test_full_disk_leaves_no_files(cache_dir, monkeypatch):
    disk_cache.store("kernels", b"key", DATA)

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert not disk_cache.store("kernels", b"other", DATA)
    assert len(list(cache_dir.iterdir())) == 1


def test_old_entries_are_evicted(cache_dir):
    for number in range(disk_cache.KEEP + 5):
        disk_cache.store("kernels", b"%d" % number, DATA)
        newest = disk_cache._path(str(cache_dir), "kernels", b"%d" % number)
        os.utime(newest, (number, number))
    disk_cache.store("tables", b"key", b"stays")
    stray = cache_dir / ".numparq-left"
    stray.write_bytes(b"")
    os.utime(stray, (1, 1))
    disk_cache.store("kernels", b"last", DATA)
    kept = [disk_cache.load("kernels", b"%d" % number) is not None for number in range(disk_cache.KEEP + 5)]
    assert sum(kept) == disk_cache.KEEP - 1
    assert all(kept[-disk_cache.KEEP + 1 :])
    assert disk_cache.load("kernels", b"last") == DATA
    assert disk_cache.load("tables", b"key") == b"stays"
    assert not stray.exists()


def test_without_a_home_directory(monkeypatch):
    monkeypatch.setattr(disk_cache, "_warned", False)
    monkeypatch.delenv("NUMPARQ_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert disk_cache.load("kernels", b"key") is None
    with pytest.warns(RuntimeWarning, match="no home directory"):
        assert not disk_cache.store("kernels", b"key", DATA)


@pytest.mark.parametrize(
    ("platform", "setting", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/y"}, "/x/y/numparq"),
        ("linux", {"XDG_CACHE_HOME": "not/absolute"}, "/home/me/.cache/numparq"),
        ("linux", {}, "/home/me/.cache/numparq"),
        ("darwin", {}, "/home/me/Library/Caches/numparq"),
        ("linux", {"NUMPARQ_CACHE_DIR": "~/mine"}, "/home/me/mine"),
    ],
)
def test_directory_by_platform_and_environment(monkeypatch, platform, setting, expected):
    for name in ("XDG_CACHE_HOME", "NUMPARQ_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "platform", platform)
    assert disk_cache.directory() == expected


def test_concurrent_store_and_load(cache_dir):
    intact = []

    def work(number):
        for _ in range(20):
            disk_cache.store("kernels", b"key", bytes([number]) * 5000)
            found = disk_cache.load("kernels", b"key")
            intact.append(found is None or (len(set(found)) == 1 and len(found) == 5000))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(intact) == 80
    assert all(intact)


LOCKER = """
import sys, time
from numparq.util import disk_cache
with disk_cache.build_lock("kernels", b"key"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_build_lock_waits_until_its_timeout(cache_dir):
    first = subprocess.Popen([sys.executable, "-c", LOCKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "locked\n"
        began = time.monotonic()
        with disk_cache.build_lock("kernels", b"key", timeout=0.3):
            assert time.monotonic() - began >= 0.3
        with disk_cache.build_lock("kernels", b"other", timeout=60):
            assert time.monotonic() - began < 30
        first.kill()  # a lock ends with its process
        first.wait()
        with disk_cache.build_lock("kernels", b"key", timeout=60):
            assert time.monotonic() - began < 30
    finally:
        first.kill()
        first.communicate()


def test_normal_use_emits_no_warning(cache_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disk_cache.load("kernels", b"key")
        disk_cache.store("kernels", b"key", DATA)


def test_private_directories_are_bounded_and_owner_only(cache_dir):
    folders = [
        disk_cache.private_directory("dispatcher", b"%d" % number) for number in range(disk_cache.KEEP_FOLDERS + 2)
    ]
    for number, folder in enumerate(folders):
        (cache_dir / folder).mkdir(mode=0o700, exist_ok=True)
        os.utime(folder, (number, number))
    again = disk_cache.private_directory("dispatcher", b"0")
    assert again == folders[0]
    assert len(list(cache_dir.iterdir())) == disk_cache.KEEP_FOLDERS
    assert os.path.isdir(again)
    os.chmod(again, 0o777)
    assert os.name != "posix" or disk_cache.private_directory("dispatcher", b"0") is None
