"""Look-ups of a key: the rows in which a column of integers has one value, read without a plan.

What follows from the footer and the arguments, but for the key, is made once and kept with the footer, so that little
code runs: where there is a pause before each look-up, most of its time goes to code that the processor has forgotten.
The answers are those of `numparq.reading.file.FileRead`, which is left whatever is not so simple.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..column.at_once import AtOnce
from ..column.buffer import ColumnBuffer
from ..column.chunks import RowSlice, columns_table
from ..column.fixed import FixedOutput
from ..column.jobs import item_of, output_of
from ..column.scratch import Scratch, borrowed, give_back
from ..column.writers import faults_of
from ..errors import ParquetError, UnsupportedError
from ..filtering.asked import stored_target
from ..frame import Layout, allocate, assemble
from ..io.source import Source
from ..kernels.located_pages import L_ROW
from ..kernels.tables import C_ITEM_SIZE, C_MASK, C_OUT, COPY
from ..opened import OpenedFile
from ..predicate.columns import find
from ..predicate.domain import domain_of
from ..predicate.expression import Test
from ..pruning.key_pages import KeyPages, KeyRows
from ..pruning.look_up import MOST_CHUNKS
from ..remembered import Kept
from ..schema import INT32, INT64
from ..targets import Target
from ..threads import thread_count
from .choices import Choices
from .columns import columns_of
from .ways import Strict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KeyLookUp", "look_up"]

_MOST_KEPT = 64
_INTEGERS = frozenset({int, *(np.dtype(f"{sign}{size}").type for sign in "iu" for size in (1, 2, 4, 8))})
_DTYPES: dict[int, np.dtype[Any]] = {INT32: np.dtype("i4"), INT64: np.dtype("i8")}


def look_up(file: OpenedFile, columns: Any, choices: Choices) -> pd.DataFrame | None:
    """Read the rows that have a key.

    Parameters
    ----------
    file : OpenedFile
        The file.
    columns : sequence of str or tuple, or None
        The columns wanted, as in `numparq.read_parquet`.
    choices : Choices
        The filter, and what else is asked for.

    Returns
    -------
    pandas.DataFrame or None
        None where that is to be read in another way: it is no look-up of a key, or the first of its kind, for which
        nothing is prepared; or something is in the way, damage among it, of which nothing is said here.
    """
    asked = _key_of(choices.filters)
    if asked is None or not choices.is_simple or file.source.is_remote or file.asked_coalescing is not None:
        return None
    if columns is not None and (type(columns) is not list or set(map(type, columns)) != {str}):
        return None
    name, key = asked
    wanted = None if columns is None else tuple(columns)
    kind = file.footer.kept.get(("key look-up", file.footer_start, name, wanted, choices.dtype_backend), _Kind)
    prepared = kind.prepared(file, columns, choices, name)
    if prepared is None or not prepared.works:
        return None
    thread_count(choices.threads)  # checked, though one is enough
    file.check_unchanged()
    try:
        return prepared.frame(file, key, choices.verify_crc)
    except ParquetError:
        return None


def _key_of(filters: Any) -> tuple[str, int] | None:
    """Give column and key of a filter that asks for just one; None of any other."""
    name: Any
    if type(filters) is Test:
        name, operator, key = filters.name, filters.op, filters.operand
    else:
        for _ in range(2):  # an OR of one AND
            if type(filters) is list and len(filters) == 1:
                filters = filters[0]
        if type(filters) is not tuple or len(filters) != 3:
            return None
        name, operator, key = filters
    is_key = type(name) is type(operator) is str and operator in ("==", "=") and type(key) in _INTEGERS
    return (name, int(key)) if is_key else None


class _Kind:
    """Look-ups of one kind: nothing is prepared for them before there is a second one."""

    __slots__ = ("_is_first", "_made")

    def __init__(self) -> None:
        self._is_first = True
        self._made: tuple[KeyLookUp | None, ...] = ()

    def prepared(self, file: OpenedFile, columns: Any, choices: Choices, name: str) -> KeyLookUp | None:
        """Give what is prepared; None where there is nothing."""
        if not self._made and not self._is_first:
            self._made = (KeyLookUp.of(file, columns, choices, name),)
        self._is_first = False
        return self._made[0] if self._made else None


class _Reading(NamedTuple):
    """As `numparq.column.at_once.Reading`, of a read that is done in one thread."""

    source: Source
    scratch: Scratch
    verify_crc: bool
    bit_packed: int


class _Chunks(NamedTuple):
    """Rows of chunk tables, of one row group: of the column asked as it is stored, and of those wanted."""

    asked: np.ndarray
    wanted: np.ndarray


class KeyLookUp:
    """Look-ups by one column, of the same columns, in files with one and the same footer. Made by `of`.

    Parameters
    ----------
    file : OpenedFile
        Nothing of it is kept but what its footer says.
    columns : list of str, or None
        The columns wanted.
    choices : Choices
        What else is asked for: no more than `Choices.is_simple` lets be.
    name : str
        The column that is to have the key.

    Attributes
    ----------
    works : bool
        Whether it has not been found out that pages are such that they would have to be fetched again.

    Raises
    ------
    ParquetError
        Where columns are many or nested, keys are no integers, or the file is not to be read.
    """

    @classmethod
    def of(cls, file: OpenedFile, columns: Any, choices: Choices, name: str) -> KeyLookUp | None:
        """Prepare look-ups; None where that cannot be, which whoever reads in another way may tell of."""
        try:
            return cls(file, columns, choices, name)
        except ParquetError:
            return None

    def __init__(self, file: OpenedFile, columns: Any, choices: Choices, name: str) -> None:
        read, self._asked = columns_of(file, columns, choices), find(file.schema, name).leaf
        self._labels, self._metadata, self._separate = read.labels, read.metadata, read.separate
        self._leaves = read.leaves if self._asked in read.leaves else [*read.leaves, self._asked]
        if len(self._leaves) > MOST_CHUNKS:
            raise UnsupportedError("of many columns nothing is prepared")
        self._place = self._leaves.index(self._asked)
        groups = range(file.num_row_groups)
        # Chunks in other files are refused here, and left to others.
        self._tables = Strict.tables(file.footer, self._leaves, groups, file.footer_start, None)
        null_counts = self._tables.null_counts()[: len(read.leaves)]
        self._null_counts = [count or 0 for count in null_counts]
        self._targets = read.targets(null_counts)
        self._strings = [place for place, target in enumerate(self._targets) if target.storage == "binary"]
        self._faults = faults_of(file.footer.created_by)
        self._domain = domain_of(self._asked, file.arrow_schema.type_of(self._asked.column))
        self._dtype = _DTYPES.get(self._asked.physical, np.dtype("V0"))
        self._chunks = Kept(_MOST_KEPT)
        self.works = True
        if not self._is_simple():
            raise UnsupportedError("of nested columns, and of keys that are no integers, nothing is prepared")
        self._pages = KeyPages(file, self._leaves, self._asked, self._domain, self._tables)

    def _is_simple(self) -> bool:
        """Whether columns are flat, and keys are integers, those that are stored and those that are shown."""
        if self._asked.is_nested or self._domain.type.kind != "int" or self._dtype.kind != "i":
            return False
        if self._domain.low != np.iinfo(self._dtype).min:  # unsigned, or narrower than they are stored
            return False
        if any(target.nested or target.storage not in ("fixed", "binary") for target in self._targets):
            return False
        shown = self._targets[self._place : self._place + 1]
        return all(target.conversion == COPY and target.dtype == self._dtype for target in shown)

    def frame(self, file: OpenedFile, key: int, verify_crc: bool) -> pd.DataFrame | None:
        """Read the rows that have a key.

        Parameters
        ----------
        file : OpenedFile
            One that has the footer.
        key : int
            The key.
        verify_crc : bool
            Whether pages with a CRC are held against it.

        Returns
        -------
        pandas.DataFrame or None
            None as of `look_up`.

        Raises
        ------
        ParquetError
            Of some of the damage.
        """
        rows = self._pages.with_key(file, key) if self._domain.low <= key < self._domain.high else None
        if rows is None or not self._takes_strings(rows):
            return None
        frame: pd.DataFrame | None = None
        reading = _Reading(
            file.source, borrowed(), verify_crc and self._faults.has_checksums, self._faults.bit_packed
        )  # fmt: skip
        try:
            found = self._having(reading, rows, key)
            frame = None if found is None else self._decoded(reading, found, key)
        finally:
            give_back(reading.scratch)
            self.works &= frame is not None
        return frame

    def _takes_strings(self, rows: Sequence[KeyRows]) -> bool:
        """Whether no strings are of a dictionary, which others read."""
        for group, _, _ in rows:
            for place in self._strings:
                if group.chunks[place].located[0, L_ROW] < 0:
                    return False
        return True

    def _having(self, reading: _Reading, rows: Sequence[KeyRows], key: int) -> list[KeyRows] | None:
        """Find the rows that do have the key, among those that may."""
        found = []
        for group, start, stop in rows:
            located = group.chunks[self._place].located_run(start, stop)
            run = AtOnce.of_run(reading, self._chunks_of(group.ordinal).asked, located, start, stop)
            if run is None:
                return None
            count, scratch = stop - start, reading.scratch
            values, validity = scratch.take("asked 0", count * 8), scratch.take("asked validity 0", count)
            nulls = run.fixed(FixedOutput(values, validity))
            if nulls is None:
                return None
            has_key = values[: count * self._dtype.itemsize].view(self._dtype) == key
            if nulls:
                has_key &= validity[:count] != 0
            places = has_key.nonzero()[0].tolist()
            if places:
                if places[-1] - places[0] >= len(places):
                    return None
                found.append(KeyRows(group, start + places[0], start + places[-1] + 1))
        return found

    def _decoded(self, reading: _Reading, rows: Sequence[KeyRows], key: int) -> pd.DataFrame | None:
        """Decode the rows that have the key."""
        count = out = 0
        for each in rows:
            count += each.stop - each.start
        layout = allocate(self._targets, count, self._separate)
        buffers = list(map(ColumnBuffer, layout.values, layout.validity, self._null_counts))
        for each in rows:
            chunks = self._chunks_of(each.group.ordinal).wanted.copy()
            for place, buffer in enumerate(buffers):
                if place != self._place and not self._decode(reading, layout, buffer, place, chunks[place], each, out):
                    return None
            out += each.stop - each.start
        for buffer in buffers[self._place : self._place + 1]:  # none, where it is only asked
            _fill(buffer, key)
        return assemble(layout, buffers, self._labels, self._metadata)

    def _decode(
        self, reading: _Reading, layout: Layout, buffer: ColumnBuffer, place: int, chunk: np.ndarray, rows: KeyRows,
        out: int,
    ) -> bool:  # fmt: skip
        """Decode a column in some rows, which become those from `out` on; whether that worked."""
        group, start, stop = rows
        is_fixed = self._targets[place].storage == "fixed"
        chunk[C_MASK] = out
        if is_fixed:
            chunk[C_OUT] = item_of(layout, place, out) * chunk[C_ITEM_SIZE]
        located = group.chunks[place].located_run(start, stop)
        if not is_fixed and not AtOnce.takes_strings(located, stop - start):
            return False
        run = AtOnce.of_run(reading, chunk, located, start, stop)
        if run is None:
            return False
        if is_fixed:
            nulls = run.fixed(output_of(layout, place))
        else:
            piece = run.strings(self._targets[place].utf8)
            buffer.pieces.append(piece)
            nulls = None if piece is None else piece.null_count
        buffer.null_count = buffer.null_count or nulls or 0
        return nulls is not None

    def _chunks_of(self, row_group: int) -> _Chunks:
        return self._chunks.get(row_group, lambda: self._made_chunks(row_group))

    def _made_chunks(self, row_group: int) -> _Chunks:
        asked = self._table(row_group, [self._place], [stored_target(self._asked)])
        return _Chunks(asked[0], self._table(row_group, range(len(self._targets)), self._targets))

    def _table(self, row_group: int, places: Sequence[int], targets: Sequence[Target]) -> np.ndarray:
        common = columns_table([self._leaves[place] for place in places], targets)
        table = self._tables.of_row_group(common, np.array(places, np.intp), RowSlice(row_group, 0, 0, 0))
        table.flags.writeable = False
        return table


def _fill(buffer: ColumnBuffer, key: int) -> None:
    """Let all rows have the key."""
    buffer.fixed[:] = key
    if buffer.validity is not None:
        buffer.validity[:] = 1
