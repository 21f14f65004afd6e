"""Exceptions of numparq, and the context (file, row group, column, page) that they carry."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


class ParquetError(Exception):
    """Base of all errors of numparq.

    Attributes
    ----------
    message : str
        What is wrong, without the location.
    where : dict
        Location of the error: any of ``file``, ``row_group``, ``column``, ``page``.
    """

    def __init__(self, message: str, **where: object) -> None:
        super().__init__(message)
        self.message = message
        self.where: dict[str, object] = dict(where)

    def __str__(self) -> str:
        place = ", ".join(
            f"{key.replace('_', ' ')} {value!r}" if isinstance(value, str) else f"{key.replace('_', ' ')} {value}"
            for key, value in sorted(self.where.items(), key=_rank)
        )
        return f"{self.message} ({place})" if place else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message,), {**self.__dict__, "where": dict(self.where)}


_PLACES = ("file", "row_group", "column", "page")


def _rank(item: tuple[str, object]) -> int:
    return _PLACES.index(item[0]) if item[0] in _PLACES else len(_PLACES)


class InvalidFileError(ParquetError, ValueError):
    """The file violates the Parquet specification."""


class CorruptPageError(InvalidFileError):
    """The bytes of a page are damaged, or contradict its header."""


class UnsupportedError(ParquetError, NotImplementedError):
    """The file, or the call, needs a feature that this version of numparq lacks."""


class DecryptionError(ParquetError, ValueError):
    """A module of an encrypted file could not be decrypted, or its key is missing."""


class SchemaError(ParquetError, ValueError):
    """Requested columns or types do not match those of the file."""


class LimitError(ParquetError, MemoryError):
    """The operation would exceed a memory limit, or the memory available."""


class error_context:
    """Add a location to every `ParquetError` that passes; locations set closer to the error win.

    Parameters
    ----------
    **where
        Any of ``file``, ``row_group``, ``column``, ``page``; None is ignored.
    """

    __slots__ = ("_where",)

    def __init__(self, **where: object) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, ParquetError):
            for key, value in self._where.items():
                if value is not None:
                    error.where.setdefault(key, value)


# --- tracebacks -------------------------------------------------------------------------------------------------------

_NUM_FRAMES = 2  # where the error was raised, and by what


def short_traceback(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Return a public function whose errors show the caller's frames and the last two, not 20 of ours.

    The message has file, row group, column and page. With ``NUMPARQ_TRACEBACK=full``, all frames are shown.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except (ParquetError, KeyboardInterrupt) as error:
            if error.__traceback__ is not None and os.environ.get("NUMPARQ_TRACEBACK") != "full":
                _keep_last_frames(error.__traceback__)
            raise

    return call


def _keep_last_frames(trace: TracebackType) -> None:
    """Drop the frames between the first one of a traceback and the last ones."""
    frames = [trace]
    while (after := frames[-1].tb_next) is not None:
        frames.append(after)
    if len(frames) > _NUM_FRAMES + 1:
        trace.tb_next = frames[-_NUM_FRAMES]
