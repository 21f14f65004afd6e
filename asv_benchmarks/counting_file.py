"""Bytes and requests of a numparq read, counted by its file object."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class BytesRead:
    """Bytes and requests of a read, and the file's size."""

    bytes: int
    requests: int
    file_size: int


class CountingFile(io.RawIOBase):
    """A binary file that counts reads. The base class implements ``read`` with ``readinto``."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._lock = threading.Lock()
        self.size = path.stat().st_size
        self.bytes = 0
        self.requests = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: memoryview, /) -> int:
        got = self._file.readinto(buffer) or 0
        with self._lock:
            self.bytes += got
            self.requests += 1
        return got

    def close(self) -> None:
        self._file.close()
        super().close()


def bytes_read(path: Path, columns: list[str] | None, threads: int, **options: Any) -> BytesRead:
    """Read `path` with numparq through a `CountingFile`; the frame is dropped."""
    import numparq

    with CountingFile(path) as file:
        numparq.read_parquet(file, columns=columns, threads=threads, **options)
        return BytesRead(file.bytes, file.requests, file.size)
