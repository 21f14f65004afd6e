"""Summarize the columns of a file: bounds, nulls, NaNs and distinct values over all its row groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.joined_files import JoinedFile

from .column_climb import ColumnClimb, SummaryNeeds, merge_sources
from .distinct_by_file import DistinctByFile
from .value_kind import plain_value


@dataclass(frozen=True)
class Wish:
    """Needs of a leaf column: bounds, and distinct values unless they are more than `max_distinct` (None: none)."""

    bounds: bool = True
    max_distinct: int | None = None


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of a leaf column in one file.

    Attributes
    ----------
    low, high : bytes or None
        PLAIN bounds; no value but NaN lies beyond. Zeros are -0.0 and 0.0. None without values other than NaN, or if
        bounds are not needed or the type has no order.
    has_values, has_nulls, has_nans : bool or None
        Whether there are values, nulls, NaNs; None if unknown. NaNs may be unused entries of dictionaries. `has_nans`
        is known if bounds are needed.
    bounds_source, values_source : str
        Farthest source that was needed: ``"footer"``, ``"dictionary"``, ``"data"``.
    values : numpy.ndarray, BinaryArray or None
        Distinct values as stored, INT96 and FIXED_LEN_BYTE_ARRAY as ``V{n}``; unused dictionary entries may be among
        them. At most one NaN; both zeros may be there. None if there are too many, or they are not needed.
    """

    low: bytes | None
    high: bytes | None
    has_values: bool | None
    has_nulls: bool | None
    has_nans: bool | None
    bounds_source: str
    values: np.ndarray | BinaryArray | None
    values_source: str


def summarize_file(file: OpenFile, wishes: Mapping[int, Wish]) -> dict[int, ColumnSummary]:
    """Return the summaries of leaf columns by ordinal; raise ParquetError if a chunk that is needed cannot be read.

    A chunk is decoded at most once, and only if neither the footer nor its dictionary is enough.
    """
    (summaries,) = summarize_files([file], [wishes])
    if isinstance(summaries, Exception):
        raise summaries
    return summaries


def summarize_files(
    files: Sequence[OpenFile], wishes: Sequence[Mapping[int, Wish]]
) -> list[dict[int, ColumnSummary] | ParquetError | OSError]:
    """Return what `summarize_file` does for each of some files, or the error that it raises.

    Local files of the same columns and writer that follow one another are joined: their footers take one pass.
    """
    results: list[dict[int, ColumnSummary] | ParquetError | OSError] = []
    keys = [_join_key(file, wish) for file, wish in zip(files, wishes, strict=True)]
    for _, run in groupby(range(len(files)), keys.__getitem__):
        positions = list(run)
        results += _summarize_run([files[position] for position in positions], wishes[positions[0]])
    return results


def _join_key(file: OpenFile, wishes: Mapping[int, Wish]) -> object:
    """Return what files that can be joined have in common."""
    if file.source.is_remote or file.has_keys or file.multi_file_source is not None:
        return id(file)
    leaves = tuple(file.schema.leaf(index) for index in wishes)
    return leaves, tuple(wishes.values()), file.footer.created_by, file.footer.column_order_masks


def _summarize_run(
    files: Sequence[OpenFile], wishes: Mapping[int, Wish]
) -> list[dict[int, ColumnSummary] | ParquetError | OSError]:
    try:
        leaves = [files[0].schema.leaf(index) for index in wishes]
        joined = files[0] if len(files) == 1 else JoinedFile(files, leaves)
        owners = joined.owners if isinstance(joined, JoinedFile) else np.zeros(joined.num_row_groups, np.int64)
        with error_context(file=joined.source.name):
            columns = [
                _summarize_column(joined, leaf, wish, owners, len(files))
                for leaf, wish in zip(leaves, wishes.values(), strict=True)
            ]
    except (ParquetError, OSError) as error:
        if len(files) == 1:
            return [error]
        return [result for file in files for result in _summarize_run([file], wishes)]
    return [{index: column[at] for index, column in zip(wishes, columns, strict=True)} for at in range(len(files))]


def _summarize_column(
    file: OpenFile, leaf: Leaf, wish: Wish, owners: np.ndarray, num_files: int
) -> list[ColumnSummary]:
    """Return the summary of a leaf column for each of some joined files; `owners` has the file of each row group."""
    with error_context(column=leaf.name):
        column = ColumnClimb(file, leaf)
    column.drop_truncated_bounds()
    values = DistinctByFile(wish.max_distinct, num_files)
    bounds_only = SummaryNeeds(counts=False, bounds=wish.bounds)
    lacking = column.lacks(bounds_only) | (wish.max_distinct is not None)
    groups: list[int] = np.flatnonzero(lacking).tolist()
    for group in groups:
        collect = values.reduction(owner := int(owners[group]))
        column.climb(group, bounds_only if collect is None else bounds_only._replace(distinct=collect))
        if collect is not None:
            values.add(owner, *column.distinct.pop(group))
    present = ~column.is_empty()
    lows, highs = _merge_bounds(column, owners, present, num_files) if wish.bounds else [[None] * num_files] * 2
    sources = [["footer"] for _ in range(num_files)]
    for group in groups:
        sources[owners[group]].append(column.sources[group])
    return [
        ColumnSummary(
            low, high, has_values, has_nulls, has_nans, merge_sources(bounds_sources), *values.result(owner, leaf)
        )
        for owner, (low, high, has_values, has_nulls, has_nans, bounds_sources) in enumerate(
            zip(
                lows,
                highs,
                _states(present, present & False, owners, num_files),
                _states(column.nulls > 0, column.nulls < 0, owners, num_files),
                _states((column.nans > 0) | column.has_nan_entry, present & (column.nans < 0), owners, num_files),
                sources,
                strict=True,
            )
        )
    ]


def _states(has: np.ndarray, may_have: np.ndarray, owners: np.ndarray, num_files: int) -> list[bool | None]:
    """Return for each file whether any of its row groups has something; None if none is known to, and some may."""
    some, unknown = (np.bincount(owners[mask], minlength=num_files).tolist() for mask in (has, may_have))
    return [True if one else None if other else False for one, other in zip(some, unknown, strict=True)]


def _merge_bounds(
    column: ColumnClimb, owners: np.ndarray, present: np.ndarray, num_files: int
) -> tuple[list[bytes | None], list[bytes | None]]:
    """Return the PLAIN bounds of each file; None if a row group has unknown ones, or all are without values."""
    lows: list[bytes | None] = [None] * num_files
    highs: list[bytes | None] = [None] * num_files
    selected = np.flatnonzero(present & ~column.is_all_nan())
    unbounded = {*owners[selected][~column.bounds.known[selected]].tolist()}
    starts = np.flatnonzero(np.diff(owners[selected], prepend=-1))
    if not len(selected):
        return lows, highs
    least = np.minimum.reduceat(column.bounds.lows[selected], starts)
    most = np.maximum.reduceat(column.bounds.highs[selected], starts)
    for owner, low, high in zip(owners[selected][starts].tolist(), least, most, strict=True):
        if owner not in unbounded:
            lows[owner], highs[owner] = plain_value(column.leaf, low), plain_value(column.leaf, high)
    return lows, highs
