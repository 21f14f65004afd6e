"""From the files of a query to pieces of them, and to splits: what statistics and indexes have left, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...plan.row_group_plan import RowGroupPlan
from ..contents import Contents
from ..files import DataFile
from ..query import Query
from ..reading import WantedFile
from .opening import digest_of, stamped
from .packing import capacity_for, packed
from .parts import GroupRows, Split, SplitPart

__all__ = ["planned_splits"]

# To open a file takes as long as to read so many bytes; of small splits, such a part.
OPEN_BYTES, OPEN_SHARE = 256 << 10, 16


class Piece(NamedTuple):
    """Rows of a row group that are in one split.

    Attributes
    ----------
    place : int
        Which of the planned files it is of.
    rows : GroupRows
        The rows.
    num_rows, num_bytes : int
        Of those that may be wanted.
    """

    place: int
    rows: GroupRows
    num_rows: int
    num_bytes: int


class PlannedFile(NamedTuple):
    """A file, and what is wanted of it.

    Attributes
    ----------
    file : DataFile
        As `stamped` gives it.
    digest : bytes
        Of its footer.
    groups : list of RowGroupPlan
        What is left of its row groups.
    is_exact : bool
        Whether all these rows are wanted.
    """

    file: DataFile
    digest: bytes
    groups: list[RowGroupPlan]
    is_exact: bool


def planned_splits(contents: Contents, query: Query, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide what a query wants.

    Parameters
    ----------
    contents : Contents
        Its files.
    query : Query
        The query.
    split_bytes : int
        Bytes of a split, of the columns asked for.
    min_splits : int
        So many there are to be at least, if rows can be divided so.

    Returns
    -------
    list of Split
        In the order of rows; none where nothing is left.
    """
    files = [_planned(contents, query, wanted) for wanted in query.wanted]
    files = [file for file in files if file.groups]
    opening = min(OPEN_BYTES, split_bytes // OPEN_SHARE)
    total = sum(group.num_bytes for file in files for group in file.groups) + opening * len(files)
    capacity = capacity_for(total, split_bytes, min_splits)
    pieces = [piece for place, file in enumerate(files) for piece in _pieces(place, file)]
    return [_split(files, [pieces[at] for at in run]) for run in packed(_sizes(pieces, opening), capacity)]


def _planned(contents: Contents, query: Query, wanted: WantedFile) -> PlannedFile:
    """Plan one file."""
    plan = query.read.known(wanted).rows.plan()
    file = stamped(contents.files[wanted.ordinal], wanted.file)
    return PlannedFile(file, digest_of(wanted.file), list(plan.left), not wanted.condition)


def _pieces(place: int, file: PlannedFile) -> Iterator[Piece]:
    for group in file.groups:
        rows = GroupRows(group.ordinal, int(group.rows.starts[0]), int(group.rows.stop))
        yield Piece(place, rows, group.rows.count, group.num_bytes)


def _sizes(pieces: Sequence[Piece], opening: int) -> list[int]:
    """Give the bytes of pieces; the first one of a file opens it, too."""
    found, last = [], -1
    for piece in pieces:
        found.append(piece.num_bytes + (opening if piece.place != last else 0))
        last = piece.place
    return found


def _split(files: Sequence[PlannedFile], pieces: Sequence[Piece]) -> Split:
    """Make the split of some pieces, which lie behind one another."""
    groups: dict[int, list[GroupRows]] = {}
    for piece in pieces:
        groups.setdefault(piece.place, []).append(piece.rows)
    parts = [SplitPart(files[at].file, tuple(rows), digest=files[at].digest) for at, rows in groups.items()]
    is_exact = all(files[at].is_exact for at in groups)
    num_rows = sum(piece.num_rows for piece in pieces) if is_exact else None
    return Split(tuple(parts), num_rows, sum(piece.num_bytes for piece in pieces))
