"""Chunk tables: column chunks as the footer describes them, checked, one row a chunk for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.compression.codecs import max_ratios
from numparq.errors import DecryptionError, InvalidFileError, ParquetError, UnsupportedError, error_context
from numparq.format.footer.column_chunks import ColumnChunks
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.io.multi_file_source import MultiFileSource
from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.kernels.tables import (
    C_CAST,
    C_CODEC,
    C_DICTIONARY_SIZE,
    C_END,
    C_FILL,
    C_FIRST_IS_DICTIONARY,
    C_LEAF,
    C_MAX_DEFINITION,
    C_MAX_RATIO,
    C_NUM_VALUES,
    C_OUT,
    C_PLAIN_SIZE,
    C_QUIRKS,
    C_ROW_GROUP,
    C_ROW_START,
    C_ROW_STOP,
    C_SEALED,
    C_START,
    C_TYPE,
    C_TYPE_LENGTH,
    C_VALIDITY,
    CHUNK_FIELDS,
    CTR_OVERHEAD,
    GCM_OVERHEAD,
)
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.whole_chunks import WholeChunks
from numparq.types.output_type import OutputType
from numparq.util.bounded_cache import BoundedCache

from .row_selection import SLICE_GROUP, SLICE_OUT, SLICE_START, SLICE_STOP, RowSlices

if TYPE_CHECKING:
    from numparq.io.multi_file_source import MultiFileSource


MAGIC_BYTES = 4
MAX_CACHED_COLUMNS = 64  # tables of more columns are not cached
MAX_CACHED_TABLES = 64

_SIZES = {BOOLEAN: 0, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 0}
_STRINGS = (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)
_TARGET_FIELDS = slice(C_CAST, C_FILL + 1)  # as `OutputType.chunk_fields`
_chunk_fields_of = attrgetter("chunk_fields")


def leaf_fields(leaves: Sequence[Leaf]) -> np.ndarray:
    """Return a chunk table with the fields that leaves decide: int64 (leaves, CHUNK_FIELDS)."""
    table = np.zeros((len(leaves), CHUNK_FIELDS), np.int64)
    table[:, C_TYPE] = [leaf.physical for leaf in leaves]
    table[:, C_TYPE_LENGTH] = [_SIZES.get(leaf.physical, leaf.type_length or 0) for leaf in leaves]
    # At least 2 for a repeated leaf: kernels expect num_values == num_rows only of flat columns.
    table[:, C_MAX_DEFINITION] = [
        max(leaf.max_definition_level, 2) if leaf.max_repetition_level else leaf.max_definition_level for leaf in leaves
    ]
    table[:, C_DICTIONARY_SIZE] = -1
    return table


class ChunkTables:
    """Chunk tables of the columns of one read, by row group; `files` opens sibling files (None rejects them).

    Of joined files, `end` is int64 (row groups, 2): where the file of each begins, and where its data end in it.
    ParquetError if a chunk lies outside the file's data (exclusive `end`), contradicts the schema or is unsupported.
    """

    def __init__(
        self,
        footer: Footer,
        leaves: Sequence[Leaf],
        row_groups: Sequence[int],
        end: int | np.ndarray,
        files: MultiFileSource | None = None,
    ) -> None:
        self._leaves = leaves
        self._cache = BoundedCache(MAX_CACHED_TABLES)
        self._string_bytes: dict[int, np.ndarray] = {}
        self._row_groups = list(dict.fromkeys(row_groups))
        self._position: Mapping[int, int] | range = range(len(self._row_groups))
        if self._row_groups != [*self._position]:  # else a table of a million row groups
            self._position = dict(zip(self._row_groups, self._position, strict=True))
        self.num_chunks = len(self._row_groups) * len(leaves)
        self._faults = page_quirks(footer.created_by)
        self._num_rows = footer.row_group_num_rows[self._row_groups]
        self._metadata = self._read_metadata(footer)
        self.keys = footer.keys
        # Some writers leave dictionary_page_offset out, or at 0: a dictionary page, if any, then is the first page at
        # data_page_offset (parquet-mr 1.8; dict-page-offset-zero of parquet-testing).
        data, dictionary = self._metadata["data_page_offset"], self._metadata["dictionary_page_offset"]
        self._starts = np.where((dictionary >= MAGIC_BYTES) & (dictionary < data), dictionary, data)
        self._ends = np.empty(self._starts.shape, np.int64)
        begin, end = (0, end) if isinstance(end, int) else end[self._row_groups].T[..., None]
        self._ends[:] = end
        self._files = (
            self._find_external_chunks(footer, end, files)
            if np.logical_or.reduce(self._metadata["has_file_path"], axis=None)
            else None
        )
        if np.logical_or.reduce(self._metadata["is_encrypted"], axis=None):
            self._check_keys()
        if self._starts.size:
            self._check()
        if self._files is not None:
            self._starts = self._starts + self._files.starts
            self._ends = self._files.ends
        self._starts, self._ends = self._starts + begin, self._ends + begin

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [leaf.name for leaf in self._leaves]

    def _read_metadata(self, footer: Footer) -> dict[str, np.ndarray]:
        """Read the footer's column chunk metadata as arrays of shape (row groups, columns)."""
        return footer.chunks.read_table(self._row_groups, [leaf.index for leaf in self._leaves])

    def _find_external_chunks(
        self, footer: Footer, end: int | np.ndarray, files: MultiFileSource | None
    ) -> ExternalChunks:
        """Locate the chunks in sibling files, and set where each may end."""
        has_path = self._metadata["has_file_path"] != 0
        chunks = ExternalChunks(footer.chunks, self._row_groups, self._leaves, has_path, end, files, self._reject)
        self._ends = chunks.ends - chunks.starts
        return chunks

    def _reject(self, row_group: int, position: int, error: ParquetError) -> None:
        """Handle a chunk whose file or key is not there; subclasses skip it."""
        raise error

    def add_chunk_file(self, error: ParquetError) -> None:
        """Add the sibling file that holds the chunk to an error, if it is an external column chunk."""
        where = error.where
        if self._files is None or not {"row_group", "column"} <= where.keys():
            return
        path = self._files.path_of(where["row_group"], where["column"])
        if path is not None:
            where["chunk_file"] = path

    def _checks(self) -> tuple[tuple[np.ndarray, type[ParquetError], str], ...]:
        """Return each check: failed chunks (row groups, columns), error class and message."""
        facts, start, size = self._metadata, self._starts, self._metadata["total_compressed_size"]
        types = np.array([leaf.physical for leaf in self._leaves])
        repeated = np.array([leaf.max_repetition_level > 0 for leaf in self._leaves])
        num_values, num_rows = facts["num_values"], self._num_rows[:, None]
        few = (num_values < num_rows) | ((num_values > num_rows) & ~repeated)
        return (
            (facts["has_meta_data"] == 0, InvalidFileError, "the footer has no metadata of the column chunk"),
            (facts["type"] != types, InvalidFileError, "the column chunk and the schema differ in physical type"),
            (
                few,
                InvalidFileError,
                "the number of values of the column chunk does not match the rows of its row group",
            ),
            (
                (start < MAGIC_BYTES) | (size < 0) | (start > self._ends),
                InvalidFileError,
                "the column chunk lies outside of the file's data: the file is cut off, or the footer is damaged",
            ),
        )

    def _check(self) -> None:
        for failed, kind, message in self._checks():
            if np.logical_or.reduce(failed, axis=None):
                group, column = np.argwhere(failed)[0].tolist()
                raise kind(message, row_group=self._row_groups[group], column=self._leaves[column].name)

    def _check_keys(self) -> None:
        """Reject encrypted chunks whose keys are not known."""
        for group, column in np.argwhere(self._metadata["is_encrypted"]).tolist():
            leaf, row_group = self._leaves[column], self._row_groups[group]
            error: ParquetError | None = None
            if self.keys is None:
                error = DecryptionError(f"column {leaf.name!r} is encrypted; pass decryption=")
            elif self._metadata["has_file_path"][group, column]:
                error = UnsupportedError("an encrypted column chunk in another file is not read")
            elif (fault := self.keys.chunk_fault(row_group, leaf.index)) is not None:
                error = DecryptionError(fault)
            if error is not None:
                error.where.update(row_group=row_group, column=leaf.name)
                self._reject(row_group, column, error)

    def _add_encryption(self, table: np.ndarray, positions: np.ndarray, columns: Sequence[int]) -> None:
        """Fill the fields of encrypted chunks in a chunk table."""
        assert self.keys is not None
        chunks, metadata = (positions, columns), self._metadata
        data, dictionary = metadata["data_page_offset"][chunks], metadata["dictionary_page_offset"][chunks]
        overhead = CTR_OVERHEAD if self.keys.is_ctr else GCM_OVERHEAD
        table[:, C_SEALED] = np.where(metadata["is_encrypted"][chunks], overhead, 0).reshape(-1)
        table[:, C_ROW_GROUP] = np.array(self._row_groups)[positions].repeat(len(columns))
        table[:, C_LEAF] = np.tile([self._leaves[column].index for column in columns], len(positions))
        table[:, C_FIRST_IS_DICTIONARY] = ((dictionary >= MAGIC_BYTES) & (dictionary < data)).reshape(-1)

    @cached_property
    def _leaf_fields(self) -> np.ndarray:
        return leaf_fields(self._leaves)

    def chunk_table(self, columns: Sequence[int], targets: Iterable[OutputType], slices: RowSlices) -> np.ndarray:
        """Build the chunk table of some columns (positions among those read) for row slices, slice by slice.

        C_OUT and C_VALIDITY hold the first output row, not yet a position in bytes.
        """
        fields = (*map(_chunk_fields_of, targets),)
        if len(columns) * len(slices.table) <= MAX_CACHED_COLUMNS:
            groups = slices.table[:, SLICE_GROUP].tolist()
            key = *groups, -1, *columns, fields
            known: np.ndarray | None = self._cache.get(key)
            if known is None:
                known = self._cache.get_or_make(key, lambda: self._build_table(columns, fields, groups))
            table = known.copy()
        else:
            table = self._build_table(columns, fields, slices.row_groups)
        rows = slices.table if len(slices.table) == 1 else slices.table.repeat(len(columns), axis=0)
        table[:, C_ROW_START], table[:, C_ROW_STOP] = rows[:, SLICE_START], rows[:, SLICE_STOP]
        table[:, C_OUT] = table[:, C_VALIDITY] = rows[:, SLICE_OUT]
        return table

    def _build_table(self, columns: Sequence[int], fields: Any, row_groups: Sequence[int]) -> np.ndarray:
        of_column = self._leaf_fields.take(columns, axis=0)
        of_column[:, _TARGET_FIELDS] = fields
        table = of_column[None].repeat(len(row_groups), axis=0).reshape(-1, CHUNK_FIELDS)
        places = np.array([*map(self._position.__getitem__, row_groups)], np.intp)[:, None]
        starts, ends = self._bounds((places, columns))
        table[:, C_START], table[:, C_END] = starts.reshape(-1), ends.reshape(-1)
        table[:, C_NUM_VALUES] = self._metadata["num_values"][places, columns].reshape(-1)
        table[:, C_PLAIN_SIZE] = self._metadata["total_uncompressed_size"][places, columns].reshape(-1)
        table[:, C_CODEC] = self._metadata["codec"][places, columns].reshape(-1)
        table[:, C_MAX_RATIO] = max_ratios(table[:, C_CODEC])
        table[:, C_QUIRKS] = self._faults.page_flags
        if self._faults.string_flags:
            table[np.isin(table[:, C_TYPE], _STRINGS), C_QUIRKS] |= self._faults.string_flags
        if self.keys is not None:
            self._add_encryption(table, places, columns)
        return table

    def byte_ranges(self, row_groups: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return start and exclusive end of each chunk in the file, as two int64 arrays (row groups, columns)."""
        return self._bounds([self._position[group] for group in row_groups])

    def chunks_as_pages(self, row_groups: Sequence[int]) -> Sequence[tuple[ChunkPages, ...] | WholeChunks]:
        """Return each chunk as a single page, by row group and column; many chunks are built on first use."""
        if len(row_groups) * len(self._leaves) > MAX_CACHED_COLUMNS:
            return self._whole_chunks(row_groups)
        return self._cache.get_or_make(("whole", *row_groups), lambda: [*map(tuple, self._whole_chunks(row_groups))])

    def _whole_chunks(self, row_groups: Sequence[int]) -> list[WholeChunks]:
        return WholeChunks.of_row_groups(*self.byte_ranges(row_groups), [*map(self.num_rows, row_groups)])

    def _bounds(self, chosen: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and exclusive ends of chunks; `chosen` indexes the arrays by row group."""
        starts = self._starts[chosen]
        room = self._ends[chosen] - starts  # a size may reach beyond the file's data, or be any number
        sizes = np.minimum(self._metadata["total_compressed_size"][chosen], room) + self._faults.missing_bytes
        return starts, starts + np.minimum(sizes, room)

    def has_dictionary(self, position: int, row_group: int) -> bool:
        """Whether the footer declares a dictionary page; a chunk may have one nevertheless."""
        at = self._position[row_group], position
        dictionary = self._metadata["dictionary_page_offset"][at]
        return bool(MAGIC_BYTES <= dictionary < self._metadata["data_page_offset"][at])

    def num_rows(self, row_group: int) -> int:
        """Return the number of rows of a row group that is read."""
        return int(self._num_rows[self._position[row_group]])

    @cached_property
    def null_counts(self) -> list[int | None]:
        """Null count of each column by statistics, not to be changed; None if a chunk has no such count."""
        counts = self._metadata["null_count"]
        if len(counts) == 1:
            return [None if count < 0 else count for count in counts[0].tolist()]
        totals: list[int] = counts.sum(axis=0).tolist()
        least: list[int] = counts.min(axis=0).tolist() if len(counts) else totals
        return [None if count < 0 else total for total, count in zip(totals, least, strict=True)]

    def estimate_string_bytes(self, position: int, row_groups: Sequence[int], num_rows: int | np.ndarray) -> int:
        """Estimate the bytes of a BYTE_ARRAY column in rows of row groups, by size statistics or uncompressed size.

        Too large costs address space, too small a copy. Bounded, because damaged footers may claim anything.
        """
        row_bytes = self._string_bytes.get(position)
        if row_bytes is None:
            row_bytes = self._string_bytes[position] = self._estimate_row_bytes(position)
        return int(np.add.reduce(row_bytes[[*map(self._position.__getitem__, row_groups)]] * num_rows))

    def _estimate_row_bytes(self, position: int) -> np.ndarray:
        said = self._metadata["unencoded_byte_array_data_bytes"][:, position]
        stored = self._metadata["total_uncompressed_size"][:, position]
        num_rows = np.maximum(self._num_rows, 1).astype(np.float64)
        there = np.minimum(self._metadata["total_compressed_size"], self._ends)[:, position]  # bytes of the file
        bound = 256 * num_rows + 64.0 * np.maximum(there, 0) + (1 << 20)
        guess = np.minimum(np.where(said >= 0, said, np.maximum(stored, 0)), bound)
        row_bytes: np.ndarray = guess / num_rows
        return row_bytes


class ExternalChunks:
    """Files that hold the column chunks of a read.

    `files` opens sibling files; None means that these are not allowed. `refuse` handles a chunk whose file
    cannot be read: it gets the row group, the column's position among `leaves` and the error.

    Attributes
    ----------
    starts, ends : numpy.ndarray
        int64, (row groups, columns): position of a chunk's file in `files`, end exclusive.
    """

    def __init__(
        self,
        chunks: ColumnChunks,
        row_groups: list[int],
        leaves: Sequence[Leaf],
        has_path: np.ndarray,
        end: int | np.ndarray,
        files: MultiFileSource | None,
        refuse: Callable[[int, int, ParquetError], None],
    ) -> None:
        self.starts = np.zeros(has_path.shape, np.int64)
        self.ends = np.empty(has_path.shape, np.int64)
        self.ends[:] = end
        self._paths: dict[tuple[object, object], str] = {}
        places = np.argwhere(has_path)
        groups, columns = (array.tolist() for array in places.T)
        ordinals = [row_groups[group] for group in groups]
        paths = chunks.read_texts("file_path", ordinals, [leaves[column].index for column in columns])
        for group, ordinal, column, path in zip(groups, ordinals, columns, paths, strict=True):
            if not path:  # unset or empty: the chunk is in the file itself
                continue
            name = leaves[column].name
            try:
                with error_context(row_group=ordinal, column=name):
                    start, size = _file_span(path, files)
            except ParquetError as error:
                refuse(ordinal, column, error)
                continue
            self.starts[group, column], self.ends[group, column] = start, start + size
            self._paths[ordinal, name] = path

    def path_of(self, row_group: object, column: object) -> str | None:
        """Return the path of a chunk's file, by row group and column name; None if it is in the file itself."""
        return self._paths.get((row_group, column))


def _file_span(path: str, files: MultiFileSource | None) -> tuple[int, int]:
    if files is None:
        shown = path if len(path) <= 200 else path[:200] + "..."
        raise UnsupportedError(
            f"the column chunk is in another file, {shown!r}; use external_files=True to read files below the folder "
            "of this file"
        )
    return files.add_file(path)
