"""Splits, as data: which files, and which rows of them, one process reads. They are small, and can be pickled."""

from __future__ import annotations

from typing import NamedTuple

from ..files import DataFile

__all__ = ["GroupRows", "Split", "SplitPart"]


class GroupRows(NamedTuple):
    """Rows of a row group.

    Attributes
    ----------
    row_group : int
        Its ordinal in the file.
    start, stop : int
        The rows, counted within it. Of those between them, some may be known not to be wanted: the reader finds out
        the same from the file's indexes.
    """

    row_group: int
    start: int
    stop: int


class SplitPart(NamedTuple):
    """What a split has of one file.

    Attributes
    ----------
    file : DataFile
        Path, name, partition values; `size` and `version` are those that the file had when it was planned, of a local
        one the time of its last change in nanoseconds.
    groups : tuple of GroupRows, or None
        The rows. None where the footer was not read: then those of `byte_range`.
    byte_range : (int, int or None), or None
        First byte, and the byte behind the last one (None: to the end): row groups whose mid-points are in it.
    digest : bytes or None
        Of the footer that was read, by which the file is known again.
    """

    file: DataFile
    groups: tuple[GroupRows, ...] | None
    byte_range: tuple[int, int | None] | None = None
    digest: bytes | None = None


class Split(NamedTuple):
    """What one process reads.

    Attributes
    ----------
    parts : tuple of SplitPart
        One for each file, in the order of their rows. Without any, there are no rows.
    num_rows : int or None
        Rows that it gives; None where a filter, or a footer that was not read, leaves that open.
    num_bytes : int
        Of the columns asked for, as they are stored; estimated where footers were not read.
    """

    parts: tuple[SplitPart, ...] = ()
    num_rows: int | None = 0
    num_bytes: int = 0

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return [part.file.name for part in self.parts]

    def __repr__(self) -> str:
        rows = "" if self.num_rows is None else f"{self.num_rows:,} rows, "
        return f"<Split: {rows}{self.num_bytes:,} bytes of {', '.join(self.files) or 'nothing'}>"
