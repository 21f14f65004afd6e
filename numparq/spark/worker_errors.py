"""Errors of workers: their sentence first in Spark's text, and rebuilt from it on the driver."""

from __future__ import annotations

import ast
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from numparq import errors
from numparq.errors import ParquetError

_WORKER_VARIABLES = "PYTHON_WORKER_FACTORY_"  # set by Spark for its Python workers
_TRACEBACK = "Traceback (most recent call last):"
_ERROR_CLASSES: dict[str, type[ParquetError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ParquetError)
}
_PARQUET_ERROR = re.compile(rf"numparq\.errors\.({'|'.join(_ERROR_CLASSES)})(?:: (.*))?", re.DOTALL)
_LOCATION = re.compile(r" \((file '|file \"|row group |column '|column \"|page )")
# Parts of a location as `ParquetError.__str__` formats them.
_LOCATION_PART = re.compile(r"""(?:, )?(file|row group|column|page) ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+)""")


@contextmanager
def raise_worker_errors() -> Iterator[None]:
    """Raise a worker's `ParquetError` as itself, with Spark's exception as the cause.

    Class, message and location (`ParquetError.where`) are those that it had in the worker.
    """
    try:
        yield
    except Exception as failure:
        error = parse_parquet_error(failure)
        if error is None:
            raise
        raise error from failure


@contextmanager
def sentence_first() -> Iterator[None]:
    """Write the class and message of an error before Python's traceback in the text that Spark gets.

    PySpark sends a traceback, or with this variable the class, the message and the notes; the worker ends then.
    """
    try:
        yield
    except (ParquetError, ValueError, TypeError, OSError, ImportError) as error:
        if any(name.startswith(_WORKER_VARIABLES) for name in os.environ):
            error.add_note(traceback.format_exc())
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def parse_parquet_error(failure: BaseException) -> ParquetError | None:
    """Parse the `ParquetError` that ended a worker from Spark's exception; None for any other failure."""
    text = str(failure)
    start = text.rfind(_TRACEBACK)
    if start < 0 or isinstance(failure, ParquetError):
        return None
    told = _last_line(text[start:])
    found = None if told is None else _PARQUET_ERROR.fullmatch(told)
    return None if found is None else _rebuild(_ERROR_CLASSES[found[1]], found[2] or "")


def _last_line(text: str) -> str | None:
    """Return what follows the frames of a traceback: the class and the message, which may have several lines."""
    lines = text.split("\n")[1:]
    for at, line in enumerate(lines):
        if line and not line[0].isspace():
            return "\n".join(_without_java(lines[at:])).strip()
    return None


def _without_java(lines: list[str]) -> list[str]:
    """Drop Java's stack frames, which follow in some Spark versions and logs."""
    for at, line in enumerate(lines):
        if line.startswith("\tat ") or (not line.strip() and any(after.startswith("\tat ") for after in lines[at:])):
            return lines[:at]
    return lines


def _rebuild(kind: type[ParquetError], text: str) -> ParquetError:
    """Build an error with this text, split into message and location if possible."""
    for found in reversed(list(_LOCATION.finditer(text))):
        where = _parse_location(text[found.end(0) - len(found[1]) :])
        if where is not None:
            error = kind(text[: found.start()], **where[0])
            for note in where[1]:
                error.add_note(note)
            return error
    return kind(text)


def _parse_location(text: str) -> tuple[dict[str, object], list[str]] | None:
    """Parse a location up to its parenthesis, and the notes below it; None if the text is not one."""
    where: dict[str, object] = {}
    at = 0
    while (part := _LOCATION_PART.match(text, at)) is not None:
        where[part[1].replace(" ", "_")] = ast.literal_eval(part[2])
        at = part.end()
    rest = text[at:]
    if not where or not rest.startswith(")") or rest[1:2] not in ("", "\n"):
        return None
    return where, rest[2:].splitlines()
