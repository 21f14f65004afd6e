"""How much memory rows take: by what the footer says, before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .column.pages import BATCH_BYTES, WINDOW_BYTES
from .errors import LimitError
from .opened import OpenedFile
from .schema import Leaf
from .targets import Target

__all__ = ["RowCosts", "check", "in_words", "scratch_bytes"]

# Bytes of a value that becomes a Python object, by what finishes a column: its pointer, and the object but for what is
# in it. Small numbers and the like that Python has once are counted too: how many of them there are is not known.
_OBJECTS = {
    "decimals": 8 + 104,
    "dates": 8 + 32,
    "times": 8 + 40,
    "uuids": 8 + 112,
    "bytes": 8 + 40,
    "text_objects": 8 + 56,
    "bool_objects": 8,
    "nulls": 8,
}
_OBJECT = 8 + 48  # of a value in nested columns
_CONTAINER = 8 + 120  # a list or dict around such values; there is one a row at least
_MARK = 1  # of a mask, which says of each row whether there is a value
_OFFSET = 8
_CODE = 4 + 4  # of a dictionary: as it is decoded, and as the Categorical has it
# Buffers are a quarter larger than what was last asked of them.
_SLACK = 1.25


class RowCosts:
    """What the rows of a file take once they are decoded.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaves : sequence of Leaf
        The columns.
    targets : sequence of Target
        How each is decoded.
    row_groups : sequence of int
        The row groups that will be asked for.
    as_objects : bool
        Whether nested columns become Python objects, and not Arrow's data.
    besides : int
        Bytes of a row that are in none of these columns.

    Attributes
    ----------
    is_vague : bool
        Whether strings may be much larger than what is stored of them: in a dictionary they are there once, and no
        statistics say how long they are in all.
    """

    def __init__(
        self, file: OpenedFile, leaves: Sequence[Leaf], targets: Sequence[Target], row_groups: Sequence[int],
        as_objects: bool = True, besides: int = 0,
    ) -> None:  # fmt: skip
        groups = list(dict.fromkeys(row_groups))
        facts = file.footer.chunks.table(groups, [leaf.index for leaf in leaves])
        num_rows = np.maximum(file.footer.row_group_num_rows[groups], 1).astype(np.float64)
        self._place = {group: place for place, group in enumerate(groups)}
        self._num_rows = num_rows
        self._besides = besides
        self._bytes = np.zeros((len(groups), len(leaves)))
        said = facts["unencoded_byte_array_data_bytes"]
        stored = np.maximum(facts["total_uncompressed_size"], 0)
        self.is_vague = False
        for place, (leaf, target) in enumerate(zip(leaves, targets, strict=True)):
            sizes = np.where(said[:, place] >= 0, said[:, place], stored[:, place]).astype(np.float64)
            values = np.maximum(facts["num_values"][:, place], 0).astype(np.float64)
            rule = _nested if leaf.is_nested else _RULES[target.storage]
            self._bytes[:, place] = rule(target, num_rows, values, sizes, as_objects)
            has_dictionary = facts["dictionary_page_offset"][:, place] > 0
            self.is_vague |= target.storage == "binary" and bool((has_dictionary & (said[:, place] < 0)).any())
        self._stored = stored + np.maximum(facts["total_compressed_size"], 0)

    def of_row(self, row_group: int) -> float:
        """Give the bytes of a row of a row group, on average."""
        place = self._place[row_group]
        return max(float(self._bytes[place].sum() / self._num_rows[place]) + self._besides, 1.0)

    def of_row_group(self, row_group: int) -> float:
        """Give the bytes of all rows of a row group."""
        return float(self._bytes[self._place[row_group]].sum())

    def of(self, slices: Sequence[Any]) -> int:
        """Give the bytes of rows.

        Parameters
        ----------
        slices : sequence of RowSlice or WantedRows
            The rows.
        """
        return int(sum(len(rows) * self.of_row(rows.row_group) for rows in slices))

    @property
    def largest_row(self) -> float:
        """The bytes of a row, on average, in the row group where that is the most."""
        return max(map(self.of_row, self._place), default=1.0)

    @property
    def largest_chunk(self) -> int:
        """The bytes of the largest column chunk, as it is stored and decompressed."""
        return int(self._stored.max(initial=0))


_Numbers = np.ndarray


def _fixed(target: Target, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    assert target.dtype is not None
    width = target.dtype.itemsize + (_MARK if target.nulls == "mask" else 0) + _OBJECTS.get(target.finish, 0)
    return rows * (width + (_CODE if target.categorical else 0))


def _binary(target: Target, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    objects = _OBJECTS.get(target.finish, 0)
    return rows * (_OFFSET + _MARK + objects) + sizes * (2 if objects else 1)


def _dictionary(target: Target, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    return rows * _CODE + np.minimum(sizes, rows * 64)


def _null(target: Target, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    return rows * _OBJECTS["nulls"]


def _nested(target: Target, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    """Levels and values of a leaf, the arrays that are made of them, and the objects, if they become some."""
    width = _OFFSET if target.dtype is None else target.dtype.itemsize
    decoded = values * (2 + width) + (sizes if target.dtype is None else 0)
    return 2 * decoded + (values * _OBJECT + rows * _CONTAINER if as_objects else rows * _OFFSET)


_RULES = {"fixed": _fixed, "binary": _binary, "dictionary": _dictionary, "null": _null}


def scratch_bytes(costs: Sequence[RowCosts], threads: int) -> int:
    """Give what threads take to decode with, besides what they decode to."""
    each = min(WINDOW_BYTES + 2 * BATCH_BYTES, max((one.largest_chunk for one in costs), default=0))
    return int(threads * each * _SLACK)


def check(parts: Sequence[tuple[RowCosts, Sequence[Any]]], threads: int, limit: int) -> None:
    """Refuse a read that would take more memory than is allowed.

    Parameters
    ----------
    parts : sequence of (RowCosts, sequence of RowSlice or WantedRows)
        What rows take, and the rows, of each file.
    threads : int
        How many decode.
    limit : int
        The most bytes.

    Raises
    ------
    LimitError
        Which says how many it would be, and what to do about it.
    """
    rows = sum(len(some) for _, slices in parts for some in slices)
    needed = sum(costs.of(slices) for costs, slices in parts) + scratch_bytes([costs for costs, _ in parts], threads)
    if needed > limit:
        raise LimitError(
            f"{rows:,} rows would take about {in_words(needed)} of memory, and memory_limit is {in_words(limit)}: read "
            "fewer columns, or fewer rows (filters, row_range, nrows), or a batch after the other (iter_batches)"
        )


def in_words(count: float) -> str:
    """Say how many bytes there are, in the unit that suits the number."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
