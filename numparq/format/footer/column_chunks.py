"""Column chunk metadata of a footer: int64 tables by row group and column, decoded on demand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.thrift.decode import Record, decoder_stack, read_record
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import check_status
from numparq.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from .encrypted_chunks import EncryptedChunks

# Field name -> path in ColumnChunk; the value is -1 where the field is absent.
CHUNK_FIELDS = {
    "type": "meta_data.type",
    "codec": "meta_data.codec",
    "num_values": "meta_data.num_values",
    "total_uncompressed_size": "meta_data.total_uncompressed_size",
    "total_compressed_size": "meta_data.total_compressed_size",
    "data_page_offset": "meta_data.data_page_offset",
    "dictionary_page_offset": "meta_data.dictionary_page_offset",
    "null_count": "meta_data.statistics.null_count",
    "unencoded_byte_array_data_bytes": "meta_data.size_statistics.unencoded_byte_array_data_bytes",
}
# Flag name -> fields of ColumnChunk; the flag is not 0 if any of them is present.
CHUNK_FLAGS = {
    "has_meta_data": ("meta_data",),
    "has_file_path": ("file_path",),
    "is_encrypted": ("crypto_metadata", "encrypted_column_metadata"),
}

_ALL_BITS = -1
_MANY = 1 << 16
_CHUNK_BYTES = 640  # of a decoded chunk, with its place in tables, statistics and index locations


@lru_cache(maxsize=1)
def _field_words() -> tuple[ThriftLayout, dict[str, tuple[int, int]]]:
    """Return the ColumnChunk layout, and the word and bit mask of each field and flag."""
    chunk = thrift_layout("ColumnChunk", *CHUNK_FIELDS.values())
    places = {name: (chunk.slot(path), _ALL_BITS) for name, path in CHUNK_FIELDS.items()}
    places |= {name: (0, sum(chunk.bit(field) for field in fields)) for name, fields in CHUNK_FLAGS.items()}
    return chunk, places


class ColumnChunks:
    """Column chunks of a footer, each decoded once, as ``chunks[field or flag][row_group, column]`` (broadcast).

    `starts` has the offset of each ColumnChunk struct in `data`: int64, (row groups, columns). `encrypted` decrypts the
    metadata of chunks before they are read; None: the file is not encrypted, or opened without keys.
    """

    encrypted: EncryptedChunks | None = None

    def __init__(self, data: np.ndarray, length: int, starts: np.ndarray) -> None:
        self._data = data
        self._length = length
        self._layout, self._places = _field_words()
        self._num_columns = starts.shape[1]
        # `_starts`, `_words` and `_known` are indexed by the chunk's ordinal in the file (`_ordinals`).
        self.starts = starts
        self._starts = starts.reshape(-1)
        self._words = np.empty((starts.size, self._layout.words), np.int64)
        self._known: np.ndarray = np.zeros(starts.size, np.bool_)
        self._reading = fork_safe_lock()

    def __getitem__(self, name: str) -> ChunkField:
        return ChunkField(self, *self._places[name])

    def read_table(self, row_groups: Any, columns: Any) -> dict[str, np.ndarray]:
        """Return all fields and flags of some chunks as int64 arrays of shape (row groups, columns)."""
        return self.fields_of(self.read(np.asarray(row_groups, np.intp)[:, None], columns))

    @staticmethod
    def fields_of(words: np.ndarray) -> dict[str, np.ndarray]:
        """Return all fields and flags of the records that `read` returns."""
        found = {}
        for name, (word, mask) in _field_words()[1].items():
            found[name] = words[..., word] if mask == _ALL_BITS else words[..., word] & mask
        return found

    def read(self, row_groups: Any, columns: Any) -> np.ndarray:
        """Return the records of chunks, read-only int64 of shape (..., words), for ordinals that broadcast.

        A lock keeps other threads from looking up a chunk's words while the kernel decodes them.
        """
        ordinals = self._ordinals(row_groups, columns)
        with self._reading:
            unread = ordinals[~self._known[ordinals]]
            if len(unread):
                self._read(unread)
        if _MANY < ordinals.size == len(self._words) and (ordinals.reshape(-1) == np.arange(ordinals.size)).all():
            return self._words.reshape(*ordinals.shape, -1)  # a copy would be as large as the table
        words: np.ndarray = self._words[ordinals]
        return words

    def _ordinals(self, row_groups: Any, columns: Any) -> np.ndarray:
        """Return the ordinals of chunks within the whole file."""
        ordinals: np.ndarray = np.asarray(row_groups, np.intp) * self._num_columns + np.asarray(columns, np.intp)
        return ordinals

    def _position_of(self, ordinal: int) -> tuple[int, int]:
        """Return row group and leaf ordinal of a chunk."""
        row_group, column = divmod(ordinal, self._num_columns)
        return row_group, column

    def _read(self, ordinals: np.ndarray) -> None:
        if ordinals.min() < 0:  # the kernel would write before the words
            raise IndexError("ordinals of row groups and columns are at least 0")
        if self.encrypted is not None:
            self.encrypted.open_metadata(ordinals, self._words_of)
        words = self._words.reshape(-1)
        if self._read_structs(self._layout, ordinals, ordinals, words) < 0:
            self._blame(ordinals.tolist())
        self._known[ordinals] = True

    def _blame(self, ordinals: list[int]) -> None:
        """Raise the error of the first damaged chunk."""
        for ordinal in ordinals:
            group, column = self._position_of(ordinal)
            words = np.empty(self._layout.words, np.int64)
            status = self._read_structs(self._layout, np.array([ordinal]), np.zeros(1, np.int64), words)
            if status < 0:
                try:
                    check_status(status, InvalidFileError, row_group=group)
                except InvalidFileError as error:
                    error.message = f"the footer is damaged where it describes column chunk {column}: {error.message}"
                    raise

    @property
    def num_bytes(self) -> int:
        """Estimate of the bytes in memory, with what is derived from the decoded chunks."""
        return self.starts.nbytes + _CHUNK_BYTES * int(np.count_nonzero(self._known))

    @property
    def data(self) -> np.ndarray:
        """Bytes of FileMetaData (uint8); positions in chunk records refer to it."""
        return self._data

    def read_words(self, layout: ThriftLayout, row_groups: Any, columns: Any) -> np.ndarray:
        """Read a projection of ColumnChunk without lists: int64 of shape (chunks, layout.words).

        `row_groups` and `columns` have one ordinal per chunk. InvalidFileError if a ColumnChunk is damaged.
        """
        ordinals = self._ordinals(row_groups, columns)
        if self.encrypted is not None:
            self.encrypted.open_metadata(ordinals, self._words_of)
        return self._words_of(layout, ordinals)

    def read_stored_words(self, layout: ThriftLayout, row_groups: Any, columns: Any) -> np.ndarray:
        """Read a projection as `read_words` does, of fields that need no key: nothing is decrypted."""
        return self._words_of(layout, self._ordinals(row_groups, columns))

    def open_all(self) -> None:
        """Decrypt the metadata of all chunks, as far as their keys are known."""
        if self.encrypted is not None:
            self.encrypted.open_metadata(np.arange(len(self._starts)), self._words_of)

    def _words_of(self, layout: ThriftLayout, ordinals: np.ndarray) -> np.ndarray:
        words = np.empty(len(ordinals) * layout.words, np.int64)
        check_status(self._read_structs(layout, ordinals, np.arange(len(ordinals)), words), InvalidFileError)
        return words.reshape(len(ordinals), layout.words)

    def _read_structs(self, layout: ThriftLayout, ordinals: np.ndarray, places: np.ndarray, words: np.ndarray) -> int:
        """Read chunks into records of `words`, by `places`; return the kernel's status."""
        starts, stack = self._starts[ordinals], decoder_stack(len(words), len(words))
        ends = self._ends_of(ordinals)
        return kernels.read_thrift_structs(self._data, starts, ends, places, len(starts), layout.table, words, stack)

    def _ends_of(self, ordinals: np.ndarray) -> np.ndarray:
        """Return the end of the FileMetaData that describes each chunk."""
        return np.full(len(ordinals), self._length)

    def read_texts(self, field: str, row_groups: Sequence[int], columns: Sequence[int]) -> list[str]:
        """Read a string field of chunks, given one row group and column ordinal per chunk; "" where it is absent.

        Bytes that are not UTF-8 become lone surrogates.
        """
        wanted = thrift_layout("ColumnChunk", field)
        words = self.read_words(wanted, row_groups, columns)
        slot = wanted.slot(field)
        found = words[:, slot : slot + 2].tolist()
        data = self._data.data
        return [
            str(data[start : start + length], "utf-8", "surrogateescape") if start >= 0 else ""
            for start, length in found
        ]

    def chunk_record(self, row_group: int, column: int) -> Record:
        """Read the complete ColumnChunk of a row group and a leaf column."""
        whole = thrift_layout("ColumnChunk")
        ordinal = self._ordinals(row_group, column).reshape(1)
        if self.encrypted is not None:
            self.encrypted.open_metadata(ordinal, self._words_of)
        data = self._data[int(self._starts[ordinal[0]]) : int(self._ends_of(ordinal)[0])]
        return Record(whole.record, read_record(data, len(data), whole), 0, data)


class ChunkField:
    """One field or flag of all column chunks, indexed by row group and column."""

    def __init__(self, chunks: ColumnChunks, word: int, mask: int) -> None:
        self._chunks = chunks
        self._word = word
        self._mask = mask

    def __getitem__(self, place: tuple[Any, Any]) -> np.ndarray:
        words: np.ndarray = self._chunks.read(*place)[..., self._word] & self._mask
        return words
