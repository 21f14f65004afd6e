"""Rebuild a worker's `ParquetError` on the driver from Spark's exception text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager

from numparq import errors
from numparq.errors import ParquetError

__all__ = ["parse_parquet_error", "raise_worker_errors"]

_TRACEBACK = "Traceback (most recent call last):"
_ERROR_CLASSES: dict[str, type[ParquetError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ParquetError)
}
_PARQUET_ERROR = re.compile(rf"numparq\.errors\.({'|'.join(_ERROR_CLASSES)})(?:: (.*))?", re.DOTALL)
_LOCATION = re.compile(r" \((file '|file \"|row group |column '|column \"|page )")
# The parts of a place as `ParquetError.__str__` has them.
_LOCATION_PART = re.compile(r"""(?:, )?(file|row group|column|page) ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+)""")


@contextmanager
def raise_worker_errors() -> Iterator[None]:
    """Raise what numparq raised in a worker as itself, where Spark would raise an exception of its own.

    Around whatever starts jobs of ours. Spark's exception is the cause, with the worker's traceback.

    Raises
    ------
    ParquetError
        Of the class, the message and the place (`ParquetError.where`) that it had there.
    """
    try:
        yield
    except Exception as failure:
        error = parse_parquet_error(failure)
        if error is None:
            raise
        raise error from failure


def parse_parquet_error(failure: BaseException) -> ParquetError | None:
    """Give the `ParquetError` that ended a worker.

    Parameters
    ----------
    failure : BaseException
        What Spark raised.

    Returns
    -------
    ParquetError or None
        None where something else has failed.
    """
    text = str(failure)
    start = text.rfind(_TRACEBACK)
    if start < 0 or isinstance(failure, ParquetError):
        return None
    told = _last_line(text[start:])
    found = None if told is None else _PARQUET_ERROR.fullmatch(told)
    return None if found is None else _rebuild(_ERROR_CLASSES[found[1]], found[2] or "")


def _last_line(traceback: str) -> str | None:
    """Give what stands below the lines of a traceback: the class, and the message, which may have several lines."""
    lines = traceback.split("\n")[1:]
    for at, line in enumerate(lines):
        if line and not line[0].isspace():
            return "\n".join(_without_java(lines[at:])).strip()
    return None


def _without_java(lines: list[str]) -> list[str]:
    """Leave out the frames of the Java side, which follow in some versions and logs."""
    for at, line in enumerate(lines):
        if line.startswith("\tat ") or (not line.strip() and any(after.startswith("\tat ") for after in lines[at:])):
            return lines[:at]
    return lines


def _rebuild(kind: type[ParquetError], text: str) -> ParquetError:
    """Make an error whose text is this one: of message and place where it can be divided so."""
    for found in reversed(list(_LOCATION.finditer(text))):
        where = _parse_location(text[found.end(0) - len(found[1]) :])
        if where is not None:
            error = kind(text[: found.start()], **where[0])
            for note in where[1]:
                error.add_note(note)
            return error
    return kind(text)


def _parse_location(text: str) -> tuple[dict[str, object], list[str]] | None:
    """Read a place, up to its parenthesis, and the notes that stand below; None where this is no place."""
    where: dict[str, object] = {}
    at = 0
    while (part := _LOCATION_PART.match(text, at)) is not None:
        where[part[1].replace(" ", "_")] = ast.literal_eval(part[2])
        at = part.end()
    rest = text[at:]
    if not where or not rest.startswith(")") or rest[1:2] not in ("", "\n"):
        return None
    return where, rest[2:].splitlines()
