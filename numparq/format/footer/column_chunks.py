"""Column chunk metadata of a footer as int64 tables by row group and column, decoded on demand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.thrift.decode import Record, decoder_stack, read_record
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels import kernels
from numparq.kernels.status import check_status

# Name of a number -> where it is in ColumnChunk. Where it is absent, it is -1.
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
# Name of what is no more than whether one of some fields of ColumnChunk is there; not 0, if so.
CHUNK_FLAGS = {
    "has_meta_data": ("meta_data",),
    "has_file_path": ("file_path",),
    "is_encrypted": ("crypto_metadata", "encrypted_column_metadata"),
}

_ALL_BITS = -1


@lru_cache(maxsize=1)
def _field_words() -> tuple[ThriftLayout, dict[str, tuple[int, int]]]:
    """Give the layout of a chunk, and for each fact its word and the bits in it."""
    chunk = thrift_layout("ColumnChunk", *CHUNK_FIELDS.values())
    places = {name: (chunk.slot(path), _ALL_BITS) for name, path in CHUNK_FIELDS.items()}
    places |= {name: (0, sum(chunk.bit(field) for field in fields)) for name, fields in CHUNK_FLAGS.items()}
    return chunk, places


class ColumnChunks:
    """The column chunks of a file.

    ``chunks[name][row_group, column]`` is one of FACTS or PRESENCE, with ints or arrays that NumPy broadcasts.

    Parameters
    ----------
    data : uint8 array
        The bytes of FileMetaData.
    length : int
        Their number.
    starts : int64 array, (row groups, columns)
        Where in `data` the ColumnChunk structs begin.
    """

    def __init__(self, data: np.ndarray, length: int, starts: np.ndarray) -> None:
        self._data = data
        self._length = length
        self._layout, self._places = _field_words()
        self._num_columns = starts.shape[1]
        # By the chunk's ordinal in the file, as `_ordinals` counts.
        self.starts = starts
        self._starts = starts.reshape(-1)
        self._words = np.empty((starts.size, self._layout.words), np.int64)
        self._known: np.ndarray = np.zeros(starts.size, np.bool_)
        self._reading = Lock()

    def __getitem__(self, name: str) -> ChunkField:
        return ChunkField(self, *self._places[name])

    def table(self, row_groups: Any, columns: Any) -> dict[str, np.ndarray]:
        """Give everything that is known of some chunks, of all named columns in all named row groups.

        Parameters
        ----------
        row_groups, columns : sequence of int
            Ordinals.

        Returns
        -------
        dict of str to int64 array, (row groups, columns)
            Of each of FACTS and PRESENCE.

        Raises
        ------
        InvalidFileError
            When a ColumnChunk is damaged.
        """
        words = self.read(np.asarray(row_groups, np.intp)[:, None], columns)
        return {
            name: words[..., word] if mask == _ALL_BITS else words[..., word] & mask
            for name, (word, mask) in self._places.items()
        }

    def read(self, row_groups: Any, columns: Any) -> np.ndarray:
        """Give the records of chunks, of all kinds that FACTS and PRESENCE name.

        A chunk is read once: while the kernel reads it, its words are not what another thread may look up.

        Parameters
        ----------
        row_groups, columns : int or array of int
            Ordinals, which NumPy broadcasts.

        Returns
        -------
        int64 array, (..., words)
        """
        ordinals = self._ordinals(row_groups, columns)
        with self._reading:
            unread = ordinals[~self._known[ordinals]]
            if len(unread):
                self._read(unread)
        return self._words[ordinals]

    def _ordinals(self, row_groups: Any, columns: Any) -> np.ndarray:
        """Count chunks over the whole file."""
        return np.asarray(row_groups, np.intp) * self._num_columns + np.asarray(columns, np.intp)

    def _read(self, ordinals: np.ndarray) -> None:
        words, starts = self._words.reshape(-1), self._starts[ordinals]
        stack = decoder_stack(len(words), len(words))
        table = self._layout.table
        status = kernels.read_thrift_structs(
            self._data, starts, ordinals, len(starts), self._length, table, words, stack
        )
        if status < 0:
            self._blame(ordinals.tolist())
        self._known[ordinals] = True

    def _blame(self, ordinals: list[int]) -> None:
        """Raise what is wrong with the first chunk that is damaged."""
        for ordinal in ordinals:
            group, column = divmod(ordinal, self._num_columns)
            made = np.empty(self._layout.words, np.int64)
            stack = decoder_stack(len(made), len(made))
            start = int(self._starts[ordinal])
            status = kernels.read_thrift_struct(self._data, start, self._length, self._layout.table, made, 0, stack)
            if status < 0:
                try:
                    check_status(status, InvalidFileError, row_group=group)
                except InvalidFileError as error:
                    error.message = f"the footer is damaged where it describes column chunk {column}: {error.message}"
                    raise

    @property
    def data(self) -> np.ndarray:
        """The bytes of FileMetaData, which positions in records of chunks are positions in; uint8."""
        return self._data

    def words(self, layout: ThriftLayout, row_groups: Any, columns: Any) -> np.ndarray:
        """Read what a projection of ColumnChunk wants of some chunks; it wants no lists.

        Parameters
        ----------
        layout : ThriftLayout
            Of ColumnChunk.
        row_groups, columns : sequence of int
            Ordinals, one of each a chunk.

        Returns
        -------
        int64 array, (chunks, wanted.words)
            A record a chunk.

        Raises
        ------
        InvalidFileError
            When a ColumnChunk is damaged.
        """
        starts = self._starts[self._ordinals(row_groups, columns)]
        words = np.empty(len(starts) * layout.words, np.int64)
        stack, places = decoder_stack(len(words), len(words)), np.arange(len(starts))
        check_status(
            kernels.read_thrift_structs(
                self._data, starts, places, len(starts), self._length, layout.table, words, stack
            ),
            InvalidFileError,
        )
        return words.reshape(len(starts), layout.words)

    def texts(self, field: str, row_groups: Sequence[int], columns: Sequence[int]) -> list[str]:
        """Read a string field of some chunks.

        Parameters
        ----------
        field : str
            Its name in ColumnChunk.
        row_groups, columns : sequence of int
            Ordinals, one of each a chunk.

        Returns
        -------
        list of str
            Empty where it is absent; bytes that are not UTF-8 are lone surrogates.
        """
        wanted = thrift_layout("ColumnChunk", field)
        words = self.words(wanted, row_groups, columns)
        slot = wanted.slot(field)
        found = words[:, slot : slot + 2].tolist()
        data = self._data.data
        return [
            str(data[start : start + length], "utf-8", "surrogateescape") if start >= 0 else ""
            for start, length in found
        ]

    def record(self, row_group: int, column: int) -> Record:
        """Read everything that the footer says of one chunk.

        Parameters
        ----------
        row_group, column : int
            Ordinals; the column among the leaves.

        Returns
        -------
        Record
            A ColumnChunk.
        """
        whole = thrift_layout("ColumnChunk")
        start = int(self._starts[self._ordinals(row_group, column)])
        data = self._data[start : self._length]
        return Record(whole.record, read_record(data, len(data), whole), 0, data)


class ChunkField:
    """One number of all column chunks."""

    def __init__(self, chunks: ColumnChunks, word: int, mask: int) -> None:
        self._chunks = chunks
        self._word = word
        self._mask = mask

    def __getitem__(self, place: tuple) -> np.ndarray:
        return self._chunks.read(*place)[..., self._word] & self._mask
