"""Writers whose `with` block completes them, or aborts on an exception."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn, Self

# Python hides ResourceWarning by default, but a writer that is never closed loses its rows.
if not sys.warnoptions:
    warnings.filterwarnings("default", r"\w+Writer\(.*\) was never closed", ResourceWarning)


class TransactionalWriter(ABC):
    """Writer whose ``with`` block closes it, or aborts it if an exception leaves the block.

    One that is never closed is aborted with a ResourceWarning. A forked child leaves its parent's writer alone.
    """

    _process = 0  # id of the process that writes; 0 before it begins and after it ends

    def _begin_writing(self) -> None:
        self._process = os.getpid()

    def _end_writing(self) -> None:
        self._process = 0

    def _check_writing(self) -> None:
        """Raise ValueError unless the writer is open, in this process."""
        if not self._process:
            raise ValueError("the writer is closed")
        if self._process != os.getpid():
            raise foreign_process_error("the writer", self._process)

    @property
    @abstractmethod
    def _target(self) -> str:
        """Name of what is written, for messages."""

    @abstractmethod
    def close(self) -> Any:
        """Complete what was written."""

    def abort(self) -> None:
        """Discard what was written; what was there before stays. Does nothing after `close`."""
        process, self._process = self._process, 0
        if process == os.getpid():
            self._discard()

    @abstractmethod
    def _discard(self) -> None:
        """Remove what was written, and release threads and memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __getstate__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied: open one in each process")

    def __del__(self, getpid: Callable[[], int] = os.getpid, warn: Callable[..., None] = warnings.warn) -> None:
        if self._process == getpid():
            lost = f"{type(self).__name__}({self._target!r}) was never closed"
            self.abort()
            warn(f"{lost}: its rows are lost; use it in a with block, or call close()", ResourceWarning, 2, self)


def foreign_process_error(what: str, process: int) -> ValueError:
    """Return the error for a forked child that uses what its parent opened."""
    return ValueError(f"{what} belongs to process {process}: a forked process must open its own")
