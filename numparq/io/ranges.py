"""Byte ranges of a source: checked before anything is done for them, and the memory that takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidFileError, LimitError
from ..kernels.tables import SLACK

if TYPE_CHECKING:
    from .source import Source

__all__ = ["Ranges", "checked_ranges", "completed", "room_for", "too_short"]

Ranges = Iterable[tuple[int, int]]


def checked_ranges(ranges: Ranges, source: Source) -> list[tuple[int, int]]:
    """Check that byte ranges lie within a source, before anything is done for them; gives them as Python's ints.

    Parameters
    ----------
    ranges : iterable of (int, int)
        First byte, and the byte behind the last.
    source : Source
        What has to have them.

    Returns
    -------
    list of (int, int)

    Raises
    ------
    InvalidFileError
        When one does not.
    """
    checked = []
    for start, stop in ranges:
        if not source.has(start, stop):
            raise too_short(source, start, stop - start)
        checked.append((int(start), int(stop)))
    return checked


def completed(pieces: list[np.ndarray | None], wanted: list[tuple[int, int]], source: Source) -> list[np.ndarray]:
    """Read what is missing of byte ranges, all at once.

    Parameters
    ----------
    pieces : list of uint8 array or None
        What is at hand of each range, as `Source.read_ranges` gives it; filled up.
    wanted : list of (int, int)
        The ranges.
    source : Source
        What has the others.

    Returns
    -------
    list of uint8 array
    """
    missing = [place for place, piece in enumerate(pieces) if piece is None]
    fetched = source.read_ranges([wanted[place] for place in missing]) if missing else []
    for place, piece in zip(missing, fetched, strict=True):
        pieces[place] = piece
    return [piece for piece in pieces if piece is not None]


def room_for(length: int) -> np.ndarray:
    """Give a uint8 array for so many bytes, with SLACK behind; LimitError where memory does not suffice."""
    try:
        return np.empty(length + SLACK, np.uint8)
    except MemoryError:
        raise LimitError(f"there is not enough memory for {length:,} bytes of the file") from None


def too_short(source: Source, position: int, length: int) -> InvalidFileError:
    """Make an error that says what was wanted, and what there is."""
    return InvalidFileError(
        f"bytes {position} to {position + length} are wanted, but there are only {source.size}: the file is cut off, "
        "or an offset in it is wrong",
        file=source.name,
    )
