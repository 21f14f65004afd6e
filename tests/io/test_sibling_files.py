"""Sibling files named by a file: allowed paths, and all refused ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from numparq.errors import InvalidFileError, LimitError, ParquetError, UnsupportedError
from numparq.io import multi_file_source
from numparq.io import sibling_files as module
from numparq.io.local_source import BytesSource, FileSource
from numparq.io.multi_file_source import FILE_STRIDE, MultiFileSource
from numparq.io.sibling_files import SiblingFiles, split_sibling_path

posix = pytest.mark.skipif(os.name == "nt", reason="uses POSIX links and pipes")
SECRET = b"what nobody may read"


@pytest.fixture
def folder(tmp_path):
    """Return a directory with a file that names others, some files below it, and a secret outside it."""
    inner = tmp_path / "data"
    (inner / "p=a:b" / "deep").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(SECRET)
    (inner / "_metadata").write_bytes(b"the file itself")
    (inner / "part.0").write_bytes(b"part 0")
    (inner / "p=a:b" / "deep" / "part 1").write_bytes(b"part 1!")
    return inner


def content(source: FileSource) -> bytes:
    out = np.empty(source.size, np.uint8)
    source.read_into(0, out)
    source.close()
    return out.tobytes()


def read_sibling(folder, path: str) -> bytes:
    return content(SiblingFiles(folder / "_metadata").open(path))


@pytest.fixture(params=["by parts", "by names"])
def open_mode(request, monkeypatch):
    """Run with both ways to open: directory by directory (`openat`), and by whole names as on systems without it."""
    if request.param == "by names":
        monkeypatch.setattr(module, "_HAS_OPENAT", False)
    elif not module._HAS_OPENAT:
        pytest.skip("this system opens by names only")


@pytest.mark.usefixtures("open_mode")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("part.0", b"part 0"),
        ("./part.0", b"part 0"),
        ("p=a:b/deep/part 1", b"part 1!"),
        ("p=a:b/./deep/part 1", b"part 1!"),
        ("_metadata", b"the file itself"),
    ],
)
@posix
def test_files_below_the_directory_are_opened(folder, path, expected):
    assert read_sibling(folder, path) == expected


def test_directory_is_that_of_the_given_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("_metadata", "./_metadata", Path("_metadata"), f"file://{folder}/_metadata"):
        siblings = SiblingFiles(name)
        monkeypatch.chdir("/")  # a relative name is resolved on construction
        assert content(siblings.open("part.0")) == b"part 0"
        monkeypatch.chdir(folder)


ABSOLUTE = ["/etc/passwd", "//host/share", "/", "C:", "C:/x", "c:x", "C:\\x"]
UPWARDS = ["..", "../secret", "p/../../secret", "./..", "p=a:b/../part.0", "part.0/.."]
EMPTY = ["", ".", "./.", "a//b", "a/", "./", "/a"]
STRANGE = ["a\\..\\b", "..\\secret", "\\\\host\\share", "part.0\0", "\0", "a/\0/b", "\udfff", "x\ud800"]
HUGE = ["a" * 256, "a/" * 5000 + "b", "a" * 10_000_000, "../" * 1000 + "secret"]


@pytest.mark.parametrize("path", ABSOLUTE + UPWARDS + EMPTY + STRANGE + HUGE, ids=lambda path: repr(path[:20]))
def test_paths_outside_the_directory_raise(folder, path):
    with pytest.raises(InvalidFileError) as caught:
        read_sibling(folder, path)
    assert len(str(caught.value)) < 1000
    with pytest.raises(InvalidFileError):
        split_sibling_path(path)


@pytest.mark.parametrize(
    "path",
    ["file:///etc/passwd", "file:x", "s3://b/k", "http://localhost/", "HTTPS://x", "data:,x", "x-y+z.1:q", "gs:"],
)
def test_url_paths_raise(folder, path):
    with pytest.raises(UnsupportedError, match="is a URL"):
        read_sibling(folder, path)


@pytest.mark.parametrize("path", ["%2e%2e/secret", "part%2E0", "~/x", "$HOME", "part.0?query", "part.0#fragment"])
def test_paths_are_not_decoded_or_expanded(folder, path):
    """Paths are literal names of files, and no such files exist."""
    with pytest.raises(InvalidFileError, match="cannot be opened"):
        read_sibling(folder, path)


@pytest.mark.usefixtures("open_mode")
@pytest.mark.parametrize("path", ["nothing", "p=a:b/nothing", "part.0/x", "p=a:b", "p=a:b/deep"])
def test_missing_files_and_directories_raise(folder, path):
    with pytest.raises(InvalidFileError, match=r"cannot be opened|is not a regular file"):
        read_sibling(folder, path)


@posix
@pytest.mark.usefixtures("open_mode")
def test_symlinks_must_stay_in_the_directory(folder):
    links = {
        "inside": "part.0",
        "inside too": str(folder / "part.0"),
        "to secret": "../secret",
        "to secret too": str(folder.parent / "secret"),
        "loop": "loop",
        "dangling": "nothing",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    (folder / "up").symlink_to("..")
    (folder / "down").symlink_to("p=a:b")
    (folder / "p=a:b" / "part.0").symlink_to("../part.0")
    for path in ("inside", "inside too", "p=a:b/part.0", "down/part.0"):
        assert read_sibling(folder, path) == b"part 0"
    assert read_sibling(folder, "down/deep/part 1") == b"part 1!"
    assert read_sibling(folder, "up/data/part.0") == b"part 0"  # leads out and back in
    for path in ("to secret", "to secret too", "up/secret"):
        with pytest.raises(InvalidFileError, match="leads out of the directory"):
            read_sibling(folder, path)
    for path in ("loop", "dangling", "up"):
        with pytest.raises(InvalidFileError):
            read_sibling(folder, path)


@posix
@pytest.mark.parametrize("open_mode", ["by parts", "by names"])
def test_file_replaced_by_link_after_resolution_raises(folder, monkeypatch, open_mode):
    """A file is replaced by a link after its path was resolved."""
    monkeypatch.setattr(module, "_HAS_OPENAT", open_mode == "by parts")
    (folder / "part.0").unlink()
    (folder / "part.0").symlink_to("../secret")
    monkeypatch.setattr(os.path, "realpath", lambda path, strict=False: os.path.abspath(path))
    with pytest.raises(InvalidFileError, match="regular file"):
        read_sibling(folder, "part.0")


@posix
def test_directory_replaced_by_link_after_resolution_raises(folder, monkeypatch):
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "x").write_bytes(SECRET)
    (folder / "link").symlink_to("../other")
    monkeypatch.setattr(os.path, "realpath", lambda path, strict=False: os.path.abspath(path))
    with pytest.raises(InvalidFileError, match="cannot be opened"):
        read_sibling(folder, "link/x")


@posix
@pytest.mark.usefixtures("open_mode")
def test_pipes_and_sockets_raise(folder):
    os.mkfifo(folder / "pipe")
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{short}/socket")
        os.rename(f"{short}/socket", folder / "socket") if _same_device(short, folder) else (folder / "socket").touch()
        for path in ("pipe", "socket"):
            if path == "pipe" or stat.S_ISSOCK(os.stat(folder / path).st_mode):
                with pytest.raises(InvalidFileError, match="is not a regular file"):
                    read_sibling(folder, path)


def _same_device(one, other) -> bool:
    return os.stat(one).st_dev == os.stat(other).st_dev


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_devices_are_not_opened(monkeypatch):
    """Only root may create device files, so /dev stands in for such a directory."""
    monkeypatch.setattr(SiblingFiles, "_check_device", lambda *_: None)
    opens = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda name, *more, **options: opens.append(name) or real(name, *more, **options))
    for name in ("zero", "tty"):
        with pytest.raises(InvalidFileError, match="is not a regular file"):
            SiblingFiles("/dev/x").open(name)
    assert set(opens) == {"/dev"}


@posix
@pytest.mark.usefixtures("open_mode")
def test_files_on_other_file_systems_raise(folder, monkeypatch):
    siblings = SiblingFiles(folder / "_metadata")
    siblings._device += 1
    with pytest.raises(InvalidFileError, match="not on the file system"):
        siblings.open("part.0")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="Linux only")
def test_link_to_another_file_system_raises(folder):
    if _same_device("/dev/shm", folder):
        pytest.skip("no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        Path(other, "x").write_bytes(SECRET)
        (folder / "link").symlink_to(other)
        with pytest.raises(InvalidFileError, match="leads out of the directory"):
            read_sibling(folder, "link/x")


@posix
def test_no_descriptor_is_left_open(folder):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc/self/fd to count descriptors")
    os.mkfifo(folder / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("part.0", "p=a:b/deep/part 1", "pipe", "nothing", "p=a:b/nothing", "p=a:b", "../secret"):
        with contextlib.suppress(ParquetError):
            read_sibling(folder, path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_bytes_and_file_objects_have_no_siblings():
    for path in (b"PAR1", memoryview(b""), object()):
        with pytest.raises(UnsupportedError, match="needs the path of a local file"):
            SiblingFiles(path)


# --- several files as one source -----------------------------------------------------------------------------------


def join_files(folder, count: int) -> tuple[MultiFileSource, dict[str, bytes]]:
    parts = {f"n{number}": b"%d" % number * (number % 7 + 1) for number in range(count)}
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    return MultiFileSource(BytesSource(b"the first"), SiblingFiles(folder / "_metadata")), parts


def read_part(source: MultiFileSource, path: str) -> bytes:
    start, size = source.add_file(path)
    out = np.empty(size, np.uint8)
    source.read_into(start, out)
    return out.tobytes()


def test_files_as_one_source(folder):
    source, parts = join_files(folder, 5)
    assert {path: read_part(source, path) for path in parts} == parts
    assert source.add_file("n3") == source.add_file("n3") == (4 * FILE_STRIDE, 4)
    out = np.empty(9, np.uint8)
    source.read_into(0, out)
    assert out.tobytes() == b"the first"
    assert source.view(4, 5, 0).tobytes() == b"first"
    assert source.view(FILE_STRIDE, 1, 0) is None
    assert source.num_requests == 7
    assert source.num_bytes == 9 + 5 + sum(map(len, parts.values()))
    with pytest.raises(InvalidFileError, match="is truncated"):
        source.read_into(FILE_STRIDE, np.empty(2, np.uint8))
    source.close()


def test_number_of_open_sibling_files_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(multi_file_source, "MAX_OPEN_SIBLINGS", 4)
    source, parts = join_files(folder, 20)
    opens: list[str] = []
    real = SiblingFiles.open
    monkeypatch.setattr(SiblingFiles, "open", lambda self, path: opens.append(path) or real(self, path))
    for path, data in list(parts.items())[:4] * 3:
        assert read_part(source, path) == data
    assert len(opens) == 4
    for path, data in list(parts.items()) * 2:
        assert read_part(source, path) == data
        assert len(source._sources()) <= 4
    assert source.num_bytes == sum(map(len, list(parts.values())[:4])) * 3 + sum(map(len, parts.values())) * 2
    source.close()
    assert not source._sources()


def test_sibling_files_reopened_by_many_threads(folder, monkeypatch):
    monkeypatch.setattr(multi_file_source, "MAX_OPEN_SIBLINGS", 2)
    source, parts = join_files(folder, 30)
    wrong: list[str] = []

    def work(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 30, 200):
            path = f"n{number}"
            if read_part(source, path) != parts[path]:
                wrong.append(path)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(source._sources()) <= 6
    source.close()


@posix
def test_file_replaced_while_closed_raises(folder, monkeypatch):
    monkeypatch.setattr(multi_file_source, "MAX_OPEN_SIBLINGS", 1)
    source, _ = join_files(folder, 3)
    assert read_part(source, "n1") == b"11"
    assert read_part(source, "n2") == b"222"
    (folder / "new").write_bytes(b"??")
    os.replace(folder / "new", folder / "n1")
    with pytest.raises(InvalidFileError, match="replaced"):
        read_part(source, "n1")
    source.close()


def test_too_many_and_too_large_files_raise(folder, monkeypatch):
    source, _ = join_files(folder, 3)
    monkeypatch.setattr(multi_file_source, "MAX_FILES", 2)
    source.add_file("n0"), source.add_file("n1")
    with pytest.raises(LimitError, match="more than 2 sibling files"):
        source.add_file("n2")
    source.close()
    source, _ = join_files(folder, 3)
    monkeypatch.setattr(multi_file_source, "FILE_STRIDE", 4)
    with pytest.raises(LimitError, match="the limit is"):
        source.add_file("n2")
    source.close()
    shutil.rmtree(folder)
