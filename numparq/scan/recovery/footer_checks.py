"""Column chunks and page headers checked against the footer; a damaged chunk is emptied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.read.chunk_table import MAGIC_BYTES, ChunkTables
from numparq.column.read.pages import PageFailure, Pages
from numparq.errors import CorruptPageError, DecryptionError, InvalidFileError, ParquetError
from numparq.format.footer.column_chunks import CHUNK_FIELDS, CHUNK_FLAGS
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Leaf
from numparq.format.thrift.decode import Record
from numparq.kernels.enums import DATA_PAGE, DICTIONARY_PAGE, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY
from numparq.kernels.tables import (
    C_MAX_DEFINITION,
    P_CHUNK,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_REPETITION_ENCODING,
    P_TYPE,
)

from .intact_pages import DamagedChunk
from .losses import without_frames

if TYPE_CHECKING:
    from numparq.io.multi_file_source import MultiFileSource

_ANY = -1
_HIGHEST = 62
_DICTIONARY = 1 << PLAIN_DICTIONARY | 1 << RLE_DICTIONARY


class TolerantChunkTables(ChunkTables):
    """Chunk tables in which a column chunk with damaged metadata, or one known to be damaged, is empty.

    `faults` are the errors of emptied chunks, by row group and leaf position. `damaged_pages` is what units
    of the read have found of damaged nested chunks, by row group and name of the leaf.
    """

    def __init__(
        self,
        footer: Footer,
        leaves: Sequence[Leaf],
        row_groups: Sequence[int],
        end: int,
        files: MultiFileSource | None,
        damaged_chunks: Mapping[tuple[int, str], ParquetError],
        damaged_pages: dict[tuple[int, str], DamagedChunk] | None = None,
    ) -> None:
        self.damaged_pages = {} if damaged_pages is None else damaged_pages
        self.footer = footer
        self.leaves = leaves
        self.faults: dict[tuple[int, int], ParquetError] = {}
        for (row_group, name), error in damaged_chunks.items():
            guilty = (place for place, leaf in enumerate(leaves) if is_within(leaf.name, name))
            self.faults.update(((row_group, place), error) for place in guilty)
        super().__init__(footer, leaves, row_groups, end, files)

    def _read_metadata(self, footer: Footer) -> dict[str, np.ndarray]:
        """Read the metadata of all chunks; zeros for those that are damaged."""
        try:
            return super()._read_metadata(footer)
        except (InvalidFileError, DecryptionError):
            pass
        shape = len(self._row_groups), len(self._leaves)
        facts = {name: np.zeros(shape, np.int64) for name in (*CHUNK_FIELDS, *CHUNK_FLAGS)}
        for at in np.ndindex(shape):
            row_group = self._row_groups[at[0]]
            try:
                known = footer.chunks.read_table([row_group], [self._leaves[at[1]].index])
            except (InvalidFileError, DecryptionError) as error:
                self.faults.setdefault((row_group, at[1]), without_frames(error))
                continue
            for name, values in known.items():
                facts[name][at] = values[0, 0]
        return facts

    def _reject(self, row_group: int, position: int, error: ParquetError) -> None:
        """Record a chunk whose sibling file is not read, or whose key was not given."""
        self.faults.setdefault((row_group, position), without_frames(error))

    def _check(self) -> None:
        """Record what is wrong with each chunk, and empty those with a fault."""
        for failed, kind, message in self._checks():
            for group, place in np.argwhere(failed).tolist():
                self.faults.setdefault((self._row_groups[group], place), kind(message))
        for row_group, place in self.faults:
            if row_group not in self._position:
                continue
            at = self._position[row_group], place
            self._starts[at] = MAGIC_BYTES
            for name, value in (
                ("total_compressed_size", 0),
                ("num_values", self._num_rows[at[0]]),
                ("codec", 0),
                ("null_count", -1),
                ("total_uncompressed_size", 0),
            ):
                self._metadata[name][at] = value


def is_within(leaf: str, column: str) -> bool:
    """Whether a path names a column or something inside it."""
    return leaf == column or leaf.startswith(column + ".")


class PageHeaderCheck:
    """Check of page encodings against those that the footer lists for the column chunk."""

    def __init__(self, footer: Footer, leaves: Sequence[Leaf]) -> None:
        self._footer = footer
        self._leaves = leaves
        self._known: dict[tuple[int, int], int] = {}

    @cached_property
    def _row_groups(self) -> Sequence[Record] | None:
        try:
            row_groups: Sequence[Record] = self._footer.record.row_groups
            return row_groups
        except ParquetError:
            return None

    def _allowed(self, row_group: int, column: int) -> int:
        """Return the encodings of a chunk as bits; all bits if the footer is damaged or lists none."""
        found = self._known.get((row_group, column))
        if found is None:
            found = self._known[row_group, column] = self._footer_encodings(row_group, self._leaves[column].index)
        return found

    def _footer_encodings(self, row_group: int, leaf: int) -> int:
        if self._row_groups is None:
            return _ANY
        chunk = self._row_groups[row_group].columns[leaf].meta_data
        encodings = [int(encoding) for encoding in chunk.encodings or ()] if chunk is not None else []
        if not encodings or not all(0 <= encoding <= _HIGHEST for encoding in encodings):
            return _ANY
        bits = sum(1 << encoding for encoding in set(encodings))
        return bits | _DICTIONARY if bits & _DICTIONARY else bits

    def check(self, row_groups: Sequence[int], columns: Sequence[int], pages: Pages) -> None:
        """Raise PageFailure for the first page whose values or levels have an encoding that its chunk lacks.

        If all data pages of a chunk have such an encoding, the footer's list is wrong, not they. `row_groups` and
        `columns` have the row group and leaf position of each row of the chunk table.
        """
        table = pages.pages
        allowed = np.array([*map(self._allowed, row_groups, columns)], np.int64)[table[:, P_CHUNK]]
        repeated = np.array([self._leaves[column].max_repetition_level > 0 for column in columns])[table[:, P_CHUNK]]
        optional = pages.chunks[table[:, P_CHUNK], C_MAX_DEFINITION] > 0
        first_version = table[:, P_TYPE] == DATA_PAGE
        wrong = _is_not_allowed(table[:, P_ENCODING], allowed) & (table[:, P_TYPE] != DICTIONARY_PAGE)
        wrong |= first_version & optional & _is_level_encoding_not_allowed(table[:, P_DEFINITION_ENCODING], allowed)
        wrong |= first_version & repeated & _is_level_encoding_not_allowed(table[:, P_REPETITION_ENCODING], allowed)
        listed = np.bincount(table[~wrong & (table[:, P_TYPE] != DICTIONARY_PAGE), P_CHUNK], minlength=len(columns))
        wrong &= listed[table[:, P_CHUNK]] > 0
        if wrong.any():
            message = "the page header has an encoding that the footer does not list for the column chunk"
            raise PageFailure(int(np.argmax(wrong)), error=CorruptPageError(message))


def _is_not_allowed(encodings: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return for each encoding whether it is missing from the allowed bits."""
    known = (allowed >> encodings.clip(0, _HIGHEST)) & 1 == 1
    found: np.ndarray = ~known | ((encodings < 0) | (encodings > _HIGHEST)) & (allowed != _ANY)
    return found


def _is_level_encoding_not_allowed(encodings: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return for each level encoding whether it is neither RLE nor allowed."""
    found: np.ndarray = (encodings != RLE) & _is_not_allowed(encodings, allowed)
    return found
