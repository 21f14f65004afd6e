"""The cache on disk: whole or not at all, private or not at all, and never in the way."""

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
unix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are a matter of Unix")


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NUMPARQ_CACHE_DIR", str(folder))
    monkeypatch.setattr(disk_cache, "_warned", False)
    return folder


def entry_file(place):
    (path,) = place.glob("*.bin")
    return path


def test_what_is_stored_is_loaded(place):
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
def test_only_the_user_can_look_into_it_unless_the_folder_was_opened(place):
    disk_cache.store("kernels", b"key", DATA)
    assert place.stat().st_mode & 0o777 == 0o700
    assert entry_file(place).stat().st_mode & 0o777 == 0o644


def test_no_flipped_bit_is_overlooked(place):
    disk_cache.store("kernels", b"key", DATA)
    path = entry_file(place)
    whole = path.read_bytes()
    for position in [*range(40), *range(40, len(whole), 97), len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        assert disk_cache.load("kernels", b"key") is None
    path.write_bytes(whole)
    assert disk_cache.load("kernels", b"key") == DATA


@pytest.mark.parametrize("keep", [0, 1, 31, 32, 33, 1000, -1])
def test_a_cut_file_is_not_loaded_and_is_replaced(place, keep):
    disk_cache.store("kernels", b"key", DATA)
    path = entry_file(place)
    path.write_bytes(path.read_bytes()[:keep])
    assert disk_cache.load("kernels", b"key") is None
    assert disk_cache.store("kernels", b"key", DATA)
    assert disk_cache.load("kernels", b"key") == DATA


def test_an_entry_in_another_ones_place_is_not_loaded(place):
    disk_cache.store("kernels", b"key", DATA)
    right = entry_file(place)
    disk_cache.store("kernels", b"other", b"something else")
    (other,) = [path for path in place.glob("*.bin") if path != right]
    os.replace(other, right)
    assert disk_cache.load("kernels", b"key") is None


@unix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_folder_that_others_can_write_is_refused(place, mode):
    disk_cache.store("kernels", b"key", DATA)
    place.chmod(mode)
    assert disk_cache.load("kernels", b"key") is None
    with pytest.warns(RuntimeWarning, match="other users can write"):
        assert not disk_cache.store("kernels", b"key", DATA)


@unix
def test_a_file_that_others_can_write_is_refused(place):
    disk_cache.store("kernels", b"key", DATA)
    entry_file(place).chmod(0o606)
    assert disk_cache.load("kernels", b"key") is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_someone_else_is_refused(place):
    disk_cache.store("kernels", b"key", DATA)
    os.chown(entry_file(place), 12345, -1)
    assert disk_cache.load("kernels", b"key") is None
    disk_cache.store("kernels", b"key", DATA)
    os.chown(place, 12345, -1)
    assert disk_cache.load("kernels", b"key") is None


def test_where_nothing_can_be_written_a_warning_says_so_once(tmp_path, monkeypatch):
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
def test_a_read_only_folder_is_read(place):
    disk_cache.store("kernels", b"key", DATA)
    place.chmod(0o500)
    try:
        assert disk_cache.load("kernels", b"key") == DATA
        with disk_cache.build_lock("kernels", b"key"):
            pass
        with pytest.warns(RuntimeWarning):
            assert not disk_cache.store("kernels", b"other", DATA)
    finally:
        place.chmod(0o700)


def test_a_full_disk_leaves_nothing_behind(place, monkeypatch):
    disk_cache.store("kernels", b"key", DATA)

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert not disk_cache.store("kernels", b"other", DATA)
    assert len(list(place.iterdir())) == 1


def test_old_entries_go(place):
    for number in range(disk_cache.KEEP + 5):
        disk_cache.store("kernels", b"%d" % number, DATA)
        newest = disk_cache._path(str(place), "kernels", b"%d" % number)
        os.utime(newest, (number, number))
    disk_cache.store("tables", b"key", b"stays")
    stray = place / ".numparq-left"
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
    ("platform", "setting", "wanted"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/y"}, "/x/y/numparq"),
        ("linux", {"XDG_CACHE_HOME": "not/absolute"}, "/home/me/.cache/numparq"),
        ("linux", {}, "/home/me/.cache/numparq"),
        ("darwin", {}, "/home/me/Library/Caches/numparq"),
        ("linux", {"NUMPARQ_CACHE_DIR": "~/mine"}, "/home/me/mine"),
    ],
)
def test_where_it_is(monkeypatch, platform, setting, wanted):
    for name in ("XDG_CACHE_HOME", "NUMPARQ_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "platform", platform)
    assert disk_cache.directory() == wanted


def test_many_threads_store_and_load_at_once(place):
    seen = []

    def work(number):
        for _ in range(20):
            disk_cache.store("kernels", b"key", bytes([number]) * 5000)
            found = disk_cache.load("kernels", b"key")
            seen.append(found is None or (len(set(found)) == 1 and len(found) == 5000))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert all(seen)


LOCKER = """
import sys, time
from numparq.util import disk_cache
with disk_cache.build_lock("kernels", b"key"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks on Windows")
def test_whoever_comes_second_waits_but_not_for_ever(place):
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


def test_no_warning_without_a_reason(place):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disk_cache.load("kernels", b"key")
        disk_cache.store("kernels", b"key", DATA)


def test_folders_for_others(place):
    folders = [
        disk_cache.private_directory("dispatcher", b"%d" % number) for number in range(disk_cache.KEEP_FOLDERS + 2)
    ]
    for number, folder in enumerate(folders):
        (place / folder).mkdir(mode=0o700, exist_ok=True)
        os.utime(folder, (number, number))
    again = disk_cache.private_directory("dispatcher", b"0")
    assert again == folders[0]
    assert len(list(place.iterdir())) == disk_cache.KEEP_FOLDERS
    assert os.path.isdir(again)
    os.chmod(again, 0o777)
    assert os.name != "posix" or disk_cache.private_directory("dispatcher", b"0") is None
