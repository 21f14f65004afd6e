"""From the files of a query to pieces of them, and to splits: what statistics and indexes have left, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ...io.remote_source import SIDE_BY_SIDE
from ...opened import OpenedFile
from ...plan.row_group_plan import RowGroupPlan
from ...schema import Leaf
from ...threads import Crew
from ..contents import Contents
from ..files import DataFile
from ..reading import WantedFile
from .dividing import divided
from .opening import digest_of, stamped
from .packing import packed
from .parts import GroupRows, Split, SplitPart
from .query import SplitQuery

__all__ = ["planned_splits"]


class PlannedFile(NamedTuple):
    """A file, and what is wanted of it.

    Attributes
    ----------
    part : SplitPart
        The file, with no rows yet.
    opened : OpenedFile
        The file, open.
    leaves : list of Leaf
        The columns that are read, or asked by the filter.
    groups : list of RowGroupPlan
        What is left of its row groups.
    is_exact : bool
        Whether all these rows are wanted.
    """

    part: SplitPart
    opened: OpenedFile
    leaves: list[Leaf]
    groups: list[RowGroupPlan]
    is_exact: bool


class Piece(NamedTuple):
    """Rows of a row group, to be in one split.

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


def planned_splits(contents: Contents, query: SplitQuery, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide what a query wants of files that are open.

    Parameters
    ----------
    contents : Contents
        The files.
    query : SplitQuery
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
    files = [file for file in _planned(contents, query) if file.groups]
    total = sum(group.num_bytes for file in files for group in file.groups)
    capacity = max(min(split_bytes, total // min_splits), 1)
    pieces = [piece for place, file in enumerate(files) for piece in _pieces(place, file, capacity)]
    places, sizes = [piece.place for piece in pieces], [piece.num_bytes for piece in pieces]
    runs = packed(places, sizes, split_bytes, min_splits)
    return [_split(files, pieces[run.start : run.stop]) for run in runs]


def _planned(contents: Contents, query: SplitQuery) -> list[PlannedFile]:
    """Plan the files that may have wanted rows, side by side where requests take their time."""
    left = query.left()
    found: dict[int, PlannedFile] = {}

    def plan(wanted: WantedFile) -> None:
        found[wanted.ordinal] = _planned_file(contents.files[wanted.ordinal], query, wanted)

    is_remote = any(wanted.file.source.is_remote for wanted in left)
    with Crew(min(SIDE_BY_SIDE, len(left)) if is_remote else 1) as crew:
        crew.run([partial(plan, wanted) for wanted in left])
    return [found[wanted.ordinal] for wanted in left]


def _planned_file(file: DataFile, query: SplitQuery, wanted: WantedFile) -> PlannedFile:
    rows = query.read.known(wanted).rows
    plan = rows.plan()
    shown = {leaf.index for leaf in rows.leaves}
    asked = wanted.condition.leaves if wanted.condition else []
    leaves = [*rows.leaves, *(leaf for leaf in asked if leaf.index not in shown)]
    part = SplitPart(stamped(file, wanted.file), None, digest=digest_of(wanted.file))
    return PlannedFile(part, wanted.file, leaves, list(plan.left), not wanted.condition)


def _pieces(place: int, file: PlannedFile, capacity: int) -> Iterator[Piece]:
    """Give what is wanted of a file, row groups divided that are too large."""
    for whole in file.groups:
        for group in divided(file.opened, file.leaves, whole, capacity):
            rows = GroupRows(group.ordinal, int(group.rows.starts[0]), int(group.rows.stop))
            yield Piece(place, rows, group.rows.count, group.num_bytes)


def _split(files: Sequence[PlannedFile], pieces: Sequence[Piece]) -> Split:
    """Make the split of some pieces, which lie behind one another."""
    groups: dict[int, list[GroupRows]] = {}
    for piece in pieces:
        groups.setdefault(piece.place, []).append(piece.rows)
    parts = [files[at].part._replace(groups=tuple(rows)) for at, rows in groups.items()]
    is_exact = all(files[at].is_exact for at in groups)
    num_rows = sum(piece.num_rows for piece in pieces) if is_exact else None
    return Split(tuple(parts), num_rows, sum(piece.num_bytes for piece in pieces))
