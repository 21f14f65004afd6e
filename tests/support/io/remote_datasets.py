"""Datasets outside local folders, as pairs of path and filesystem, and their contents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.discover.files import list_files
from numparq.errors import InvalidFileError

fsspec = pytest.importorskip("fsspec")
spec = pytest.importorskip("fsspec.spec")

__all__ = ["KINDS", "list_all_files", "object_store", "put_file", "read_rows", "remote_folder", "write"]


class PendingUpload(spec.AbstractBufferedFile):
    """A file that appears in the store when its upload is complete."""

    def _initiate_upload(self) -> None:
        self.parts: list[bytes] = []

    def _upload_chunk(self, final: bool = False) -> bool:
        self.buffer.seek(0)
        self.parts.append(self.buffer.read())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        self.fs.fail("complete", self.path)
        self.fs.pipe_file(self.path, b"".join(self.parts))

    def discard(self) -> None:
        self.parts = []


def object_store() -> Any:
    from .object_store import ObjectStore

    class Store(ObjectStore):
        """One that takes uploads, and writes down what it is asked."""

        def __init__(self) -> None:
            super().__init__()
            self.asked: list[tuple[str, str]] = []
            self.failing: tuple[str, int] | None = None

        def fail(self, what: str, path: str) -> None:
            self.asked.append((what, path))
            if self.failing and self.failing[0] == what:
                self.failing = (what, self.failing[1] - 1)
                if self.failing[1] < 0:
                    raise OSError(f"{what} failed")

        def _open(self, path, mode="rb", block_size=None, autocommit=True, **options):
            if mode == "wb" and not options.get("data"):
                return PendingUpload(self, path, mode, block_size or 1000, autocommit=autocommit)
            return super()._open(path, mode, block_size, autocommit, **options)

        def pipe_file(self, path, value, **options):
            self.fail("put", path)
            super().pipe_file(path, value, **options)

        def rm_file(self, path):
            self.fail("delete", path)
            super().rm_file(path)

    return Store()


KINDS = ["uploads", "memory", "arrow", "folders"]


@contextmanager
def remote_folder(kind: str, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """Return an empty location of one of `KINDS`."""
    if kind == "uploads":
        yield "/bucket/data", object_store()
    elif kind == "memory":
        memory = fsspec.filesystem("memory")
        yield "/numparq-dataset/data", memory
        if memory.exists("/numparq-dataset"):
            memory.rm("/numparq-dataset", recursive=True)
    elif kind == "folders":
        from fsspec.implementations.dirfs import DirFileSystem

        yield "data", DirFileSystem(str(tmp_path), fsspec.filesystem("file"))
    else:
        fs = pytest.importorskip("pyarrow.fs")
        yield "data", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())


def write(place: tuple[str, Any], keys: list[int], first: int, **options: Any) -> None:
    path, filesystem = place
    frame = pd.DataFrame({"key": keys, "n": np.arange(first, first + len(keys))})
    numparq.to_parquet(frame, path, partition_cols=["key"], filesystem=filesystem, **options)


def read_rows(place: tuple[str, Any]) -> dict[str, list[int]]:
    path, filesystem = place
    try:
        listing = list_files(path, filesystem=filesystem)
    except (InvalidFileError, FileNotFoundError):
        return {}
    found: dict[str, list[int]] = {}
    for file in listing.files:
        frame = numparq.read_parquet(file.path, filesystem=filesystem)
        found.setdefault(file.values[0], []).extend(frame["n"].tolist())
    return found


def list_all_files(place: tuple[str, Any]) -> list[str]:
    path, filesystem = place
    if hasattr(filesystem, "find"):
        return sorted(filesystem.find(path))
    from pyarrow.fs import FileSelector

    infos = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return sorted(info.path for info in infos if info.is_file)


def put_file(place: tuple[str, Any], name: str, data: bytes) -> None:
    path, filesystem = place
    if hasattr(filesystem, "pipe_file"):
        filesystem.pipe_file(f"{path}/{name}", data)
    else:
        filesystem.create_dir(f"{path}/{name}".rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(f"{path}/{name}") as file:
            file.write(data)
