"""Sinks: where a file is written, front to back; it is there once it is committed, and not at all where it is not."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from .trouble import write_trouble

__all__ = ["BytesSink", "Sink", "StreamSink", "open_sink"]

_GATHERED = 1 << 18  # small writes are gathered up to so many bytes
_PIECE = 1 << 26  # and no more than so many are handed on at once, so that Ctrl-C is heard
_OPEN, _COMMITTED, _ABORTED, _BROKEN = "open", "finished", "aborted", "aborted after an error"


class Sink:
    """Something that takes the bytes of a file.

    Used as a context manager it commits at the end, and aborts when there was an exception.

    Attributes
    ----------
    name : str
        What to call it in messages.
    position : int
        Bytes written so far, those counted that are only gathered yet.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = 0
        self._handed_on = 0
        self._gathered = bytearray()
        self._state = _OPEN

    def write(self, buffer: Any) -> int:
        """Write all of a buffer; where that fails, the sink is aborted.

        Parameters
        ----------
        buffer : bytes-like
            Anything contiguous; it may be changed afterwards.

        Returns
        -------
        int
            Its bytes.

        Raises
        ------
        OSError
            Of the same errno as the system's (ENOSPC: the disk is full), with what was written and what to do.
        """
        self._check_open()
        view = memoryview(buffer)
        size = view.nbytes
        if not size:
            return 0
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B")
        if len(self._gathered) + size > _GATHERED:
            self.flush()
        self.position += size
        if size <= _GATHERED:
            self._gathered += view
        else:
            self._hand_on(view)
        return size

    def flush(self) -> None:
        """Hand on what is gathered."""
        self._check_open()
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._hand_on(memoryview(gathered))

    def sync(self) -> None:
        """Have everything that was written where it survives the process; for a local file, on the disk."""
        self.flush()

    def _check_open(self) -> None:
        if self._state is not _OPEN:
            raise ValueError(f"{self.name} is {self._state}: nothing more can be written")

    def _hand_on(self, view: memoryview) -> None:
        end = self._handed_on + len(view)
        while self._handed_on < end:
            with self.aborting():
                left = len(view) - (end - self._handed_on)
                self._handed_on += self._put(view[left : left + _PIECE])

    @contextmanager
    def aborting(self) -> Iterator[None]:
        """Abort where something goes wrong, and say more than the system does."""
        try:
            yield
        except OSError as error:
            self._give_up(_BROKEN)
            raise write_trouble(error, self.name, self._handed_on) from error
        except BaseException:
            self._give_up(_BROKEN)
            raise

    def commit(self) -> None:
        """Complete the file; nothing can be written behind it. A second time it does nothing."""
        if self._state is _COMMITTED:
            return
        self.flush()
        with self.aborting():
            self._complete()
        self._state = _COMMITTED

    def abort(self) -> None:
        """Drop what was written, as far as that can be done; after `commit` it does nothing."""
        self._give_up(_ABORTED)

    def _give_up(self, state: str) -> None:
        if self._state is _OPEN:
            self._state = state
            self._gathered = bytearray()
            self._discard()

    def _put(self, view: memoryview) -> int:
        """Write some of the bytes, and say how many."""
        raise NotImplementedError

    def _complete(self) -> None:
        """Put the file where it belongs."""

    def _discard(self) -> None:
        """Leave nothing behind, and raise nothing."""

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._state is not _ABORTED:
            self.commit()
        else:
            self.abort()


class BytesSink(Sink):
    """Memory: `getvalue` gives the bytes."""

    def __init__(self) -> None:
        super().__init__("<bytes>")
        self._buffer = io.BytesIO()

    def _put(self, view: memoryview) -> int:
        return self._buffer.write(view)

    def _discard(self) -> None:
        self._buffer = io.BytesIO()

    def getvalue(self) -> bytes:
        """Give all bytes written so far; ValueError where they were dropped."""
        if self._state is not _COMMITTED:
            self._check_open()
        if self._gathered:
            self.flush()
        return self._buffer.getvalue()


class StreamSink(Sink):
    """A binary file object of the user's: written from where it stands, never closed, and what was written stays."""

    def __init__(self, stream: Any) -> None:
        if isinstance(stream, io.TextIOBase) or "b" not in getattr(stream, "mode", "b"):
            raise TypeError("the file object is in text mode; open it in binary mode, as in open(path, 'wb')")
        name = getattr(stream, "name", None)
        super().__init__(name if isinstance(name, str) else f"<{type(stream).__name__}>")
        self._stream = stream

    def _put(self, view: memoryview) -> int:
        written = self._stream.write(view)
        return len(view) if written is None else written  # some objects do not say

    def _complete(self) -> None:
        if hasattr(self._stream, "flush"):
            self._stream.flush()


def open_sink(path: Any, storage_options: dict[str, Any] | None = None, filesystem: Any = None) -> Sink:
    """Open what a user calls a path, for writing.

    Parameters
    ----------
    path : str, os.PathLike, binary file object, Sink or None
        None collects the bytes in memory; a sink is that one. A local file (a ``file://`` URL too) is written beside
        its place and then put there in one step (`numparq.io.local_sink.FileSink`); any other URL is written by fsspec;
        a file object with ``write`` is written from where it stands, and left open.
    storage_options : dict, optional
        For the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        Where `path` is.

    Returns
    -------
    Sink

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As `open` does.
    ImportError
        For a URL, when fsspec is not installed.
    TypeError, ValueError
        For any other path, and for options that do not go with it.
    """
    if not isinstance(path, (str, os.PathLike)):
        if storage_options or filesystem is not None:
            raise ValueError("storage_options and filesystem go with a path or URL only")
        if path is None:
            return BytesSink()
        if isinstance(path, Sink):
            return path
        if hasattr(path, "write"):
            return StreamSink(path)
        raise TypeError(f"path is a str, PathLike, binary file object or None, not {type(path).__name__}")
    name = os.fsdecode(path)
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs; the file system has its own already")
        from .remote_sink import open_on

        return open_on(filesystem, name)
    if "://" in name and not name.startswith("file://"):
        from .remote_sink import open_url

        return open_url(name, storage_options or {})
    if storage_options:
        raise ValueError(f"storage_options are for URLs, and {name!r} is a local path")
    from .local_sink import open_local

    return open_local(name.removeprefix("file://"))
