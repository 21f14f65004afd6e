"""Point lookup by an integer key through a prepared read; falls back to the scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn
from numparq.column.read.chunk_selection import ChunkSelection
from numparq.column.read.chunk_table import chunk_template
from numparq.column.read.decode import is_utf8
from numparq.column.read.decompress import verify_crcs
from numparq.column.read.dictionary import EMPTY_DICTIONARY
from numparq.column.read.output import FixedOutput, fixed_output, output_item
from numparq.column.read.page_walk import read_located_pages, split_locations
from numparq.column.read.pages import PageFailure, Pages
from numparq.column.read.row_selection import RowSlices
from numparq.column.scratch import Scratch, borrow_scratch, return_scratch
from numparq.errors import ParquetError, UnsupportedError
from numparq.expr.expression import ColumnPredicate
from numparq.expr.resolve import resolve_column
from numparq.expr.sort_keys import key_domain
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import INT32, INT64
from numparq.format.writer_quirks import page_quirks
from numparq.io.source import Source
from numparq.kernels.enums import BIT_PACKED
from numparq.kernels.tables import (
    ARRAY_FILLERS,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_OUT,
    C_QUIRKS,
    C_VALIDITY,
    COPY,
    L_ROW,
    PADDED_PAGES,
)
from numparq.prune.lookup import MAX_CHUNKS, KeyPageFinder, KeyRowRange
from numparq.to_pandas.frame import BlockLayout, allocate_blocks, assemble
from numparq.types.output_type import OutputType
from numparq.typing import Columns
from numparq.util.arguments import thread_count
from numparq.util.bounded_cache import BoundedCache

from .error_policy import RaiseOnDamage
from .filter_columns import stored_output_type
from .options import ScanOptions
from .projected_columns import project_columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PointLookup", "point_lookup"]

_MOST_KEPT = 64
_HARMLESS_QUIRKS = PADDED_PAGES | ARRAY_FILLERS
_INTEGERS = frozenset({int, *(np.dtype(f"{sign}{size}").type for sign in "iu" for size in (1, 2, 4, 8))})
_DTYPES: dict[int, np.dtype[Any]] = {INT32: np.dtype("i4"), INT64: np.dtype("i8")}


def point_lookup(file: OpenFile, columns: Columns, options: ScanOptions) -> pd.DataFrame | None:
    """Read the rows that have a key.

    Parameters
    ----------
    file : OpenFile
        The file.
    columns : sequence of str or tuple, or None
        The columns wanted, as in `numparq.read_parquet`.
    options : ScanOptions
        The filter, and what else is asked for.

    Returns
    -------
    pandas.DataFrame or None
        None where that is to be read in another way: it is no look-up of a key, or the first of its kind, for which
        nothing is prepared; or something is in the way, damage among it, of which nothing is said here.
    """
    asked = _parse_key(options.filters)
    if asked is None or not options.has_only_filters or file.source.is_remote or file.user_coalescing is not None:
        return None
    if columns is not None and (type(columns) is not list or set(map(type, columns)) != {str}):
        return None
    name, key = asked
    wanted = None if columns is None else tuple(columns)
    kind = file.footer.cache.get_or_make(
        ("key look-up", file.calendar, file.footer_start, name, wanted, options.dtype_backend, options.dates),
        _PreparedOnSecondUse,
    )
    prepared = kind.prepared(file, columns, options, name)
    if prepared is None or not prepared.is_usable:
        return None
    thread_count(options.threads)  # checked, though one is enough
    file.check_unchanged()
    try:
        frame = prepared.to_frame(file, key, options.verify_crc)
        file.check_unchanged()
        return frame
    except ParquetError:
        return None


def _parse_key(filters: Any) -> tuple[str, int] | None:
    """Give column and key of a filter that asks for just one; None of any other."""
    name: Any
    if type(filters) is ColumnPredicate:
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


class _PreparedOnSecondUse:
    """Look-ups of one kind: nothing is prepared for them before there is a second one."""

    __slots__ = ("_is_first", "_made")

    def __init__(self) -> None:
        self._is_first = True
        self._made: tuple[PointLookup | None, ...] = ()

    def prepared(self, file: OpenFile, columns: Columns, options: ScanOptions, name: str) -> PointLookup | None:
        """Give what is prepared; None where there is nothing."""
        if not self._made and not self._is_first:
            self._made = (PointLookup.prepare(file, columns, options, name),)
        self._is_first = False
        return self._made[0] if self._made else None


class _LookupContext(NamedTuple):
    """Source, buffers and checks of a read that is done in one thread."""

    source: Source
    scratch: Scratch
    verify_crc: bool
    bit_packed: int


class _RowRun:
    """A run of rows of a flat column chunk, and the locations of its pages; None of its methods: others read it."""

    def __init__(self, reading: _LookupContext, chunk: np.ndarray, located: np.ndarray, start: int, stop: int) -> None:
        self._reading = reading
        self._chunks = chunk.reshape(1, -1).copy()
        self._located = located
        self._rows = ChunkSelection(np.array([[start, stop]]), None)

    def read_fixed(self, output: FixedOutput) -> int | None:
        """Decode values to C_OUT and C_VALIDITY of the chunk; return the null count."""
        return self._read(lambda pages: self._rows.read_fixed(pages, output, None, self._reading.scratch))

    def read_strings(self, utf8: bool) -> BinaryArray | None:
        """Return strings of pages without a dictionary."""
        strings = self._rows.allocate_strings(0)
        nulls = self._read(
            lambda pages: self._rows.read_binary(pages, EMPTY_DICTIONARY, strings, self._reading.scratch)
        )
        if nulls is None or (utf8 and not is_utf8(strings)):
            return None
        if not nulls:
            strings.validity = None
        return strings

    def _read(self, decode: Callable[[Pages], None]) -> int | None:
        reading = self._reading
        if reading.bit_packed != BIT_PACKED or self._chunks[0, C_QUIRKS] & ~_HARMLESS_QUIRKS:
            return None
        try:
            for part in split_locations(self._located):
                pages = read_located_pages(reading.source, self._chunks, part, True, reading.scratch)
                if reading.verify_crc:
                    verify_crcs(pages)
                decode(pages)
        except (PageFailure, ParquetError):
            return None
        return int(self._chunks[0, C_NULL_COUNT]) if self._rows.num_decoded == self._rows.count else None


class _LookupChunks(NamedTuple):
    """Rows of chunk tables, of one row group: of the column asked as it is stored, and of those wanted."""

    asked: np.ndarray
    wanted: np.ndarray


class PointLookup:
    """Look-ups by one column, of the same columns, in files with one and the same footer. Made by `prepare`.

    Parameters
    ----------
    file : OpenFile
        Nothing of it is kept but what its footer says.
    columns : list of str, or None
        The columns wanted.
    choices : ScanOptions
        What else is asked for: no more than `ScanOptions.is_simple` lets be.
    name : str
        The column that is to have the key.

    Attributes
    ----------
    is_usable : bool
        Whether it has not been found out that pages are such that they would have to be fetched again.

    Raises
    ------
    ParquetError
        Where columns are many or nested, keys are no integers, or the file is not to be read.
    """

    @classmethod
    def prepare(cls, file: OpenFile, columns: Columns, options: ScanOptions, name: str) -> PointLookup | None:
        """Prepare look-ups; None where that cannot be, which whoever reads in another way may tell of."""
        try:
            return cls(file, columns, options, name)
        except ParquetError:
            return None

    def __init__(self, file: OpenFile, columns: Columns, options: ScanOptions, name: str) -> None:
        read, self._asked = project_columns(file, columns, options), resolve_column(file.schema, name).leaf
        self._labels, self._metadata, self._separate = read.labels, read.metadata, read.index_leaves
        self._leaves = read.leaves if self._asked in read.leaves else [*read.leaves, self._asked]
        if len(self._leaves) > MAX_CHUNKS:
            raise UnsupportedError(f"a prepared look-up has at most {MAX_CHUNKS} columns, not {len(self._leaves)}")
        self._place = self._leaves.index(self._asked)
        groups = range(file.num_row_groups)
        # Chunks in other files are refused here, and left to others.
        self._tables = RaiseOnDamage.chunk_tables(file.footer, self._leaves, groups, file.footer_start, None)
        null_counts = self._tables.null_counts[: len(read.leaves)]
        self._null_counts = [count or 0 for count in null_counts]
        self._targets = read.output_types(null_counts)
        self._strings = [place for place, target in enumerate(self._targets) if target.storage == "binary"]
        self._faults = page_quirks(file.footer.created_by)
        self._domain = key_domain(self._asked, file.arrow_schema.field_type(self._asked.column))
        self._dtype = _DTYPES.get(self._asked.physical, np.dtype("V0"))
        self._chunks = BoundedCache(_MOST_KEPT)
        self.is_usable = True
        if not self._is_simple():
            raise UnsupportedError("a prepared look-up needs flat columns and integer keys")
        self._pages = KeyPageFinder(file, self._leaves, self._asked, self._domain, self._tables)

    def _is_simple(self) -> bool:
        """Whether columns are flat, and keys are integers, those that are stored and those that are shown."""
        if self._asked.is_nested or self._domain.type.kind != "int" or self._dtype.kind != "i":
            return False
        if self._domain.low != np.iinfo(self._dtype).min:  # unsigned, or narrower than they are stored
            return False
        if any(target.nested or target.storage not in ("fixed", "binary") for target in self._targets):
            return False
        if any(leaf.rebase is not None for leaf in self._leaves):
            return False
        shown = self._targets[self._place : self._place + 1]
        return all(target.conversion == COPY and target.dtype == self._dtype for target in shown)

    def to_frame(self, file: OpenFile, key: int, verify_crc: bool) -> pd.DataFrame | None:
        """Read the rows that have a key.

        Parameters
        ----------
        file : OpenFile
            One that has the footer.
        key : int
            The key.
        verify_crc : bool
            Whether pages with a CRC are held against it.

        Returns
        -------
        pandas.DataFrame or None
            None as of `point_lookup`.

        Raises
        ------
        ParquetError
            Of some of the damage.
        """
        rows = self._pages.find(file, key) if self._domain.low <= key < self._domain.high else None
        if rows is None or not self._can_read_strings(rows):
            return None
        frame: pd.DataFrame | None = None
        reading = _LookupContext(
            file.source, borrow_scratch(), verify_crc and self._faults.has_checksums, self._faults.bit_packed
        )
        try:
            found = self._find_rows(reading, rows, key)
            frame = None if found is None else self._decoded(reading, found, key)
        finally:
            return_scratch(reading.scratch)
            self.is_usable &= frame is not None
        return frame

    def _can_read_strings(self, rows: Sequence[KeyRowRange]) -> bool:
        """Whether no strings are of a dictionary, which others read."""
        for group, start, stop in rows:
            for place in self._strings:
                if group.chunks[place].page_table_in_range(start, stop)[0, L_ROW] < 0:
                    return False
        return True

    def _find_rows(self, reading: _LookupContext, rows: Sequence[KeyRowRange], key: int) -> list[KeyRowRange] | None:
        """Find the rows that do have the key, among those that may."""
        found = []
        for group, start, stop in rows:
            located = group.chunks[self._place].page_table_in_range(start, stop)
            run = _RowRun(reading, self._chunks_of(group.ordinal).asked, located, start, stop)
            count, scratch = stop - start, reading.scratch
            values, validity = scratch.buffer("asked 0", count * 8), scratch.buffer("asked validity 0", count)
            nulls = run.read_fixed(FixedOutput(values, validity))
            if nulls is None:
                return None
            has_key = values[: count * self._dtype.itemsize].view(self._dtype) == key
            if nulls:
                has_key &= validity[:count] != 0
            places = has_key.nonzero()[0].tolist()
            if places:
                if places[-1] - places[0] >= len(places):
                    return None
                found.append(KeyRowRange(group, start + places[0], start + places[-1] + 1))
        return found

    def _decoded(self, reading: _LookupContext, rows: Sequence[KeyRowRange], key: int) -> pd.DataFrame | None:
        """Decode the rows that have the key."""
        count = out = 0
        for each in rows:
            count += each.stop - each.start
        layout = allocate_blocks(self._targets, count, self._separate)
        buffers = list(map(DecodedColumn, layout.values, layout.validity, self._null_counts))
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
        self,
        reading: _LookupContext,
        layout: BlockLayout,
        buffer: DecodedColumn,
        position: int,
        chunk: np.ndarray,
        rows: KeyRowRange,
        out: int,
    ) -> bool:
        """Decode a column in some rows, which become those from `out` on; whether that worked."""
        group, start, stop = rows
        is_fixed = self._targets[position].storage == "fixed"
        chunk[C_VALIDITY] = out
        if is_fixed:
            chunk[C_OUT] = output_item(layout, position, out) * chunk[C_ITEM_SIZE]
        located = group.chunks[position].page_table_in_range(start, stop)
        if not is_fixed and located[0, L_ROW] < 0:
            return False
        run = _RowRun(reading, chunk, located, start, stop)
        if is_fixed:
            nulls = run.read_fixed(fixed_output(layout, position))
        else:
            piece = run.read_strings(self._targets[position].utf8)
            buffer.arrays.append(piece)
            nulls = None if piece is None else piece.null_count
        buffer.null_count = buffer.null_count or nulls or 0
        return nulls is not None

    def _chunks_of(self, row_group: int) -> _LookupChunks:
        return self._chunks.get_or_make(row_group, lambda: self._build_chunks(row_group))

    def _build_chunks(self, row_group: int) -> _LookupChunks:
        asked = self._table(row_group, [self._place], [stored_output_type(self._asked)])
        return _LookupChunks(asked[0], self._table(row_group, range(len(self._targets)), self._targets))

    def _table(self, row_group: int, places: Sequence[int], targets: Sequence[OutputType]) -> np.ndarray:
        common = chunk_template([self._leaves[place] for place in places], targets)
        table = self._tables.chunk_table(common, np.array(places, np.intp), RowSlices.single(row_group, 0, 0))
        table.flags.writeable = False
        return table


def _fill(buffer: DecodedColumn, key: int) -> None:
    """Let all rows have the key."""
    buffer.fixed_values[:] = key
    if buffer.validity is not None:
        buffer.validity[:] = 1
