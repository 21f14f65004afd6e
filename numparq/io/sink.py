"""Sinks: bytes written front to back, then committed as a whole or aborted."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from numparq.util.pluralize import pluralize
from numparq.util.transaction import foreign_process_error

if TYPE_CHECKING:
    from numparq.typing import FileSystem, StorageOptions

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space, or write to another disk",
    errno.EDQUOT: "the disk quota is exhausted: remove files, or write to another disk",
    errno.EFBIG: "the file system or a limit of the process does not allow files of this size",
    errno.EIO: "the device failed: check it, or write to another disk",
    errno.EROFS: "the file system is read-only: write to another directory",
}

_BUFFER_BYTES = 1 << 18  # small writes are buffered up to this size
_MAX_WRITE_BYTES = 1 << 26  # larger writes are split, so that Ctrl-C works between them
_OPEN, _COMMITTED, _ABORTED, _BROKEN = "open", "finished", "aborted", "aborted after an error"


def explain_write_error(error: OSError, name: str, position: int) -> OSError:
    """Return an error of the same errno that adds the bytes written before it and advice."""
    number = error.errno
    if number is None:
        return type(error)(f"{name} could not be written, after {pluralize(position, 'byte')}: {error}")
    reason = error.strerror or os.strerror(number)
    advice = f"; {_ADVICE[number]}" if number in _ADVICE else ""
    return OSError(number, f"{reason}, after {pluralize(position, 'byte')}{advice}", name)


class Sink:
    """A file being written; as a context manager it commits at the end and aborts on an exception.

    Attributes
    ----------
    name : str
        Name in messages.
    position : int
        Number of bytes written so far, buffered ones included.
    location : tuple or None
        Path or URL, storage options and file system, if it was opened by a path.
    create_sibling : callable or None
        Function that opens a new file in the same folder of a dataset, by its file name, which the commit adds as well.
    before, after : Sink or None
        Complete files that are committed before and after this one, and aborted with it.
    """

    location: tuple[str, StorageOptions, FileSystem] | None = None
    create_sibling: Callable[[str], Sink] | None = None
    before: Sink | None = None
    after: Sink | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = 0
        self._num_written = 0
        self._gathered = bytearray()
        self._state = _OPEN
        self._process = os.getpid()

    def write(self, buffer: Any) -> int:
        """Write all of a contiguous buffer and return its size in bytes; the buffer may change afterwards.

        On failure the sink is aborted, and an OSError of the system's errno says what was written and what to do.
        """
        self._check_open()
        view = memoryview(buffer)
        size = view.nbytes
        if not size:
            return 0
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B")
        if len(self._gathered) + size > _BUFFER_BYTES:
            self.flush()
        self.position += size
        if size <= _BUFFER_BYTES:
            self._gathered += view
        else:
            self._write_all(view)
        return size

    def flush(self) -> None:
        """Write out the buffered bytes."""
        self._check_open()
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._write_all(memoryview(gathered))

    def sync(self) -> None:
        """Write everything so far to where it survives the process; for a local file, to the disk."""
        self.flush()

    def _check_open(self) -> None:
        if self._state is not _OPEN:
            raise ValueError(f"{self.name} is {self._state}: nothing more can be written")
        if self._process != os.getpid():
            raise foreign_process_error(f"the sink of {self.name}", self._process)

    def _write_all(self, view: memoryview) -> None:
        end = self._num_written + len(view)
        while self._num_written < end:
            with self.abort_on_error():
                left = len(view) - (end - self._num_written)
                self._num_written += self._write(view[left : left + _MAX_WRITE_BYTES])

    @contextmanager
    def abort_on_error(self) -> Iterator[None]:
        """Abort on an exception; an OSError is replaced by one that says more."""
        try:
            yield
        except OSError as error:
            self._abort(_BROKEN)
            raise explain_write_error(error, self.name, self._num_written) from error
        except BaseException:
            self._abort(_BROKEN)
            raise

    def commit(self) -> None:
        """Complete the file; nothing can be written afterwards. Calling it again does nothing."""
        if self._state is _COMMITTED:
            return
        self.flush()
        if self.before is not None:
            self.before.commit()
        with self.abort_on_error():
            self._complete()
        self._state = _COMMITTED
        if self.after is not None:
            with suppress(OSError):  # the file is complete without it
                self.after.commit()

    def abort(self) -> None:
        """Discard what was written as far as possible; does nothing after `commit`."""
        self._abort(_ABORTED)

    def _abort(self, state: str) -> None:
        if self._state is _OPEN:
            self._state = state
            self._gathered = bytearray()
            if self._process == os.getpid():
                self._discard()
            else:
                self._release()
            for companion in (self.before, self.after):
                if companion is not None:
                    companion._abort(state)

    def _write(self, view: memoryview) -> int:
        """Write some of the bytes and return how many."""
        raise NotImplementedError

    def _complete(self) -> None:
        """Move the complete file to its final name."""

    def _discard(self) -> None:
        """Remove what was written; raises nothing."""

    def _release(self) -> None:
        """Release what a forked child inherited, without an effect on what its parent writes."""

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
    """A file in memory."""

    def __init__(self) -> None:
        super().__init__("<bytes>")
        self._buffer = io.BytesIO()

    def _write(self, view: memoryview) -> int:
        return self._buffer.write(view)

    def _discard(self) -> None:
        self._buffer = io.BytesIO()

    def getvalue(self) -> bytes:
        """Return all bytes written so far; raise ValueError after an abort."""
        if self._state is not _COMMITTED:
            self._check_open()
        if self._gathered:
            self.flush()
        return self._buffer.getvalue()


class StreamSink(Sink):
    """A caller's binary file object: written from its current position, never closed; an abort undoes nothing."""

    def __init__(self, stream: Any) -> None:
        if isinstance(stream, io.TextIOBase) or "b" not in getattr(stream, "mode", "b"):
            raise TypeError("the file object is in text mode; open it in binary mode, as in open(path, 'wb')")
        name = getattr(stream, "name", None)
        super().__init__(name if isinstance(name, str) else f"<{type(stream).__name__}>")
        self._stream = stream

    def _write(self, view: memoryview) -> int:
        written = self._stream.write(view)
        return len(view) if written is None else written  # some objects return nothing

    def _complete(self) -> None:
        if hasattr(self._stream, "flush"):
            self._stream.flush()
