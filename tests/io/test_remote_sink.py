"""Sinks for fsspec and pyarrow file systems."""

from __future__ import annotations

import sys

import pytest

from numparq.io import local_sink, remote_sink
from numparq.io.open import open_sink
from support.io.local_files import file_names, write_file


def test_fsspec_sink():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    write_file("memory://sink/a", b"1" * 1000)
    assert memory.cat("/sink/a") == b"1" * 1000
    with pytest.raises(ZeroDivisionError), open_sink("memory://sink/a") as target:
        target.write(b"2" * 1_000_000)
        raise ZeroDivisionError
    del target
    assert memory.cat("/sink/a") == b"1" * 1000
    write_file("/sink/b", b"3", filesystem=memory)
    assert memory.cat("/sink/b") == b"3"
    assert sorted(memory.ls("/sink", detail=False)) == ["/sink/a", "/sink/b"]


def test_fsspec_local_files_use_local_sink(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    with open_sink(str(tmp_path / "a"), filesystem=fsspec.filesystem("file")) as target:
        assert isinstance(target, local_sink.FileSink)
        target.write(b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_aborted_upload_is_discarded():
    """Like an object store: the object appears with the last step, which an abort omits."""
    spec = pytest.importorskip("fsspec.spec")
    store: dict[str, bytes] = {"/a": b"old"}
    done = []

    class Upload(spec.AbstractBufferedFile):
        def _initiate_upload(self):
            self.parts = []

        def _upload_chunk(self, final=False):
            self.buffer.seek(0)
            self.parts.append(self.buffer.read())
            if final and self.autocommit:
                self.commit()
            return True

        def commit(self):
            store[self.path] = b"".join(self.parts)

        def discard(self):
            done.append("discarded")

    class Store(spec.AbstractFileSystem):
        protocol = "store"
        cachable = False

        def _open(self, path, mode="rb", block_size=None, autocommit=True, **options):
            return Upload(self, path, mode, block_size or 1000, autocommit=autocommit)

    for size in (10, 5000, 2_000_000):
        with pytest.raises(ZeroDivisionError), open_sink("/a", filesystem=Store()) as target:
            target.write(b"n" * size)
            raise ZeroDivisionError
        del target
        assert store == {"/a": b"old"}
        assert done.pop() == "discarded"
        write_file("/b", b"n" * size, filesystem=Store())
        assert store.pop("/b") == b"n" * size


def test_url_without_fsspec_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"numparq\[fsspec\]"):
        open_sink("s3://bucket/key")


def test_pyarrow_file_system_sinks(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    local = fs.LocalFileSystem()
    assert isinstance(open_sink(str(tmp_path / "a"), filesystem=local), local_sink.FileSink)
    inside = fs.SubTreeFileSystem(str(tmp_path), local)
    with open_sink("a", filesystem=inside) as target:
        assert isinstance(target, remote_sink.ArrowSink)
        target.write(b"1")
    with pytest.raises(ZeroDivisionError), open_sink("a", filesystem=inside) as target:
        target.write(b"2")
        raise ZeroDivisionError
    assert file_names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"1"
