"""Structs, pages and Bloom filters of a column chunk as stored, plain or in modules (Encryption.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numparq.column.scratch import allocate
from numparq.crypto.aad import ModuleId, ModuleType
from numparq.io.source import Source, read_bytes
from numparq.kernels.enums import DATA_PAGE_V2, DICTIONARY_PAGE
from numparq.kernels.tables import SLACK
from numparq.util.pluralize import pluralize

from .modules import CTR_OVERHEAD, GCM_OVERHEAD, FileModules, ModuleError, module_length, read_module
from .thrift import DeviationCallback, ThriftDecodeError, read_struct

if TYPE_CHECKING:
    from numparq.crypto.key import Key

_FIRST_READ_BYTES = 1 << 12
_MODULE_TYPES = {
    "ColumnIndex": ModuleType.COLUMN_INDEX,
    "OffsetIndex": ModuleType.OFFSET_INDEX,
    "BloomFilterHeader": ModuleType.BLOOM_HEADER,
}


class StoredChunk(Protocol):
    """Reads of one column chunk; `page_overhead` and `bitset_overhead` are stored bytes beyond the plaintext's."""

    page_overhead: int
    bitset_overhead: int

    def read_struct(
        self, name: str, position: int, limit: int, note: DeviationCallback, page: int = 0
    ) -> tuple[dict[str, Any], int]:
        """Read a struct at a position, of `limit` bytes at most, and return it with the number of its stored bytes.

        `page` is the ordinal in the chunk of the page whose header is read. Raise ThriftDecodeError.
        """

    def open_body(
        self, stored: np.ndarray, header: dict[str, Any], page: int, position: int, note: DeviationCallback
    ) -> np.ndarray:
        """Return the body of a page, followed by SLACK bytes, of its stored bytes, which SLACK bytes follow as well.

        Raise ModuleError if it cannot be decrypted.
        """

    def read_bitset(self, position: int, size: int) -> np.ndarray:
        """Return a Bloom filter's bitset of `size` bytes; ModuleError if it cannot be decrypted."""


class PlainChunk:
    """A column chunk that is not encrypted."""

    page_overhead = bitset_overhead = 0

    def __init__(self, source: Source) -> None:
        self._source = source

    def read_struct(
        self, name: str, position: int, limit: int, note: DeviationCallback, page: int = 0
    ) -> tuple[dict[str, Any], int]:
        """Read a struct, see `StoredChunk`."""
        size = _FIRST_READ_BYTES
        while True:
            size = min(size, limit)
            noted: list[tuple[str, str]] = []

            def keep(check: str, text: str, noted: list[tuple[str, str]] = noted) -> None:
                noted.append((check, text))

            try:
                struct, length = read_struct(name, read_bytes(self._source, position, size), keep)
            except ThriftDecodeError:
                if size == limit:
                    raise
                size *= 8
                continue
            for each in noted:
                note(*each)
            return struct, length

    def open_body(
        self, stored: np.ndarray, header: dict[str, Any], page: int, position: int, note: DeviationCallback
    ) -> np.ndarray:
        """Return a page's body, see `StoredChunk`."""
        return stored

    def read_bitset(self, position: int, size: int) -> np.ndarray:
        """Return a bitset, see `StoredChunk`."""
        bits = allocate(size)
        self._source.read_into(position, bits)
        return bits


class SealedChunk:
    """An encrypted column chunk.

    Parameters
    ----------
    ordinals : (int, int)
        Row group and leaf column.
    first_is_dictionary : bool
        Whether the chunk begins with a dictionary page, by its metadata.
    """

    bitset_overhead = GCM_OVERHEAD

    def __init__(
        self,
        source: Source,
        modules: FileModules,
        key: Key,
        ordinals: tuple[int, int],
        first_is_dictionary: bool,
    ) -> None:
        self._source, self._modules, self._key, self._ordinals = source, modules, key, ordinals
        self._num_dictionaries = int(first_is_dictionary)
        self.page_overhead = CTR_OVERHEAD if modules.is_ctr else GCM_OVERHEAD

    def read_struct(
        self, name: str, position: int, limit: int, note: DeviationCallback, page: int = 0
    ) -> tuple[dict[str, Any], int]:
        """Read a struct, see `StoredChunk`."""
        stored = read_module(self._source, position, limit)
        if name == "PageHeader":
            plaintext = self._open_page_header(stored, position, page)
        else:
            plaintext = self._open(stored, position, _MODULE_TYPES[name])
        struct, end = read_struct(name, plaintext, note)
        self._modules.count_unread(len(plaintext) - end)
        return struct, len(stored)

    def _open(self, stored: bytes, position: int, module_type: ModuleType, page: int = -1) -> bytes:
        return self._modules.open_gcm(self._key, stored, ModuleId(module_type, *self._ordinals, page), position)

    def _open_page_header(self, stored: bytes, position: int, page: int) -> bytes:
        """Open a page header. The first page may be a dictionary page, which the metadata of old writers leave out."""
        ordinal = page - self._num_dictionaries
        if ordinal < 0:
            return self._open(stored, position, ModuleType.DICTIONARY_PAGE_HEADER)
        try:
            return self._open(stored, position, ModuleType.DATA_PAGE_HEADER, ordinal)
        except ModuleError:
            if page:
                raise
            with_dictionary = self._open(stored, position, ModuleType.DICTIONARY_PAGE_HEADER)
            self._num_dictionaries = 1
            return with_dictionary

    def open_body(
        self, stored: np.ndarray, header: dict[str, Any], page: int, position: int, note: DeviationCallback
    ) -> np.ndarray:
        """Return a page's body, see `StoredChunk`."""
        module = stored[: len(stored) - SLACK].tobytes()
        levels = self._plain_levels(module, header, note)
        front, module = module[:levels], module[levels:]
        if module_length(module, len(module), self.page_overhead) != len(module):
            raise ModuleError("module-length", "the length of the page's module differs from that in its header")
        is_dictionary = header["type"] == DICTIONARY_PAGE
        if self._modules.is_ctr:
            plaintext = self._modules.open_ctr(self._key, module, position)
        elif is_dictionary:
            plaintext = self._open(module, position, ModuleType.DICTIONARY_PAGE)
        else:
            plaintext = self._open(module, position, ModuleType.DATA_PAGE, page - self._num_dictionaries)
        body = allocate(len(front) + len(plaintext) + SLACK)
        body[:] = np.frombuffer(front + plaintext + bytes(SLACK), np.uint8)
        return body

    def _plain_levels(self, module: bytes, header: dict[str, Any], note: DeviationCallback) -> int:
        """Return the bytes of levels in front of the module: parquet-java leaves those of version 2 unencrypted."""
        if header["type"] != DATA_PAGE_V2 or int.from_bytes(module[:4], "little") == len(module) - 4:
            return 0
        type_header = header["data_page_header_v2"]
        names = "definition_levels_byte_length", "repetition_levels_byte_length"
        levels: int = sum(max(type_header.get(name, 0), 0) for name in names)
        if int.from_bytes(module[levels : levels + 4], "little") != len(module) - levels - 4:
            return 0
        note("writer-levels", "the levels are not encrypted: they are in front of the module of the values")
        return levels

    def read_bitset(self, position: int, size: int) -> np.ndarray:
        """Return a bitset, see `StoredChunk`."""
        stored = read_module(self._source, position, size + GCM_OVERHEAD)
        plaintext = self._open(stored, position, ModuleType.BLOOM_BITSET)
        if len(plaintext) != size:
            raise ModuleError(
                "bloom-header",
                f"the bitset has {pluralize(len(plaintext), 'byte')}, but {size:,} by the header of the Bloom filter",
            )
        return np.frombuffer(bytearray(plaintext), np.uint8)
