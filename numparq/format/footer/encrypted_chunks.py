"""Column chunk metadata under keys of their own: decrypted where they lie in the private copy of a footer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import DecryptionError, InvalidFileError, error_context
from numparq.format.encryption import FileDecryption, locked_column_fault
from numparq.format.thrift.decode import decoder_stack
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import check_status
from numparq.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numparq.crypto.key import Key

_METADATA = "crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.key_metadata"
_CONTENT = "encrypted_column_metadata"
_FOOTER_KEY, _COLUMN_KEY = 1 << 1, 1 << 2  # members of the union ColumnCryptoMetaData
# Field headers of the compact protocol: a struct as field 3 and bytes as field 9 in the long form, bytes as the next
# field but 14, and bytes as the next field.
_META_DATA, _LONG_HEADER, _PADDING, _SHORT_HEADER = b"\x0c\x06", b"\x08\x12", 0xF8, 0x08
_MAX_PADDING = 1 << 14  # its length is a varint of two bytes


@lru_cache(maxsize=1)
def _crypto_layout() -> ThriftLayout:
    return thrift_layout("ColumnChunk", "crypto_metadata.ENCRYPTION_WITH_FOOTER_KEY", _METADATA, _CONTENT)


class EncryptedChunks:
    """Encrypted column chunks of a footer, each opened once.

    Parameters
    ----------
    data : uint8 array
        FileMetaData, which only this object writes to.
    keys : FileDecryption
        The file's keys.
    paths : sequence of tuple of str
        Paths of the leaf columns.
    num_chunks : int
        Number of column chunks.
    """

    def __init__(
        self, data: np.ndarray, keys: FileDecryption, paths: Sequence[tuple[str, ...]], num_chunks: int
    ) -> None:
        self._data, self._keys, self._paths = data, keys, paths
        self._is_open: np.ndarray = np.zeros(num_chunks, np.bool_)
        self._writing = fork_safe_lock()

    def open_metadata(self, ordinals: np.ndarray, read_words: Callable[[ThriftLayout, np.ndarray], np.ndarray]) -> None:
        """Decrypt the metadata of chunks by their ordinals, as far as their keys are known.

        `read_words` reads a projection of ColumnChunks. Keys are retrieved before the lock is taken.
        """
        if self._is_open[ordinals].all():
            return
        closed = np.unique(ordinals[~self._is_open[ordinals]])
        layout = _crypto_layout()
        words = read_words(layout, closed)
        chosen = [self._key_of(ordinal, layout, record) for ordinal, record in zip(closed.tolist(), words, strict=True)]
        content = layout.slot(_CONTENT)
        with self._writing:
            for ordinal, record, (key, fault) in zip(closed.tolist(), words, chosen, strict=True):
                if self._is_open[ordinal]:
                    continue
                row_group, leaf = divmod(ordinal, len(self._paths))
                if fault or key is not None:
                    self._keys.add_chunk(row_group, leaf, key, fault)
                position, length = record[content : content + 2].tolist()
                if key is not None and position >= 0:
                    self._replace(row_group, leaf, position, length)
                self._is_open[ordinal] = True

    def _key_of(self, ordinal: int, layout: ThriftLayout, record: np.ndarray) -> tuple[Key | None, str]:
        """Return the key of a chunk, or None and why it cannot be read; no reason for a plain one."""
        leaf = ordinal % len(self._paths)
        if not record[0] & (layout.bit("crypto_metadata") | layout.bit(_CONTENT)):
            return None, ""
        member = int(record[layout.slot("crypto_metadata")]) if record[0] & layout.bit("crypto_metadata") else 0
        if member & _FOOTER_KEY:
            try:
                return self._keys.footer_key, ""
            except DecryptionError as error:
                return None, f"column {'.'.join(self._paths[leaf])!r} is encrypted: {error.message}"
        if not member & _COLUMN_KEY:
            return None, "the column chunk is encrypted in a way that numparq does not know"
        position, length = record[layout.slot(_METADATA) :][:2].tolist()
        metadata = self._data[position : position + length].tobytes() if position >= 0 else None
        with error_context(column=".".join(self._paths[leaf])):
            key = self._keys.column_key(self._paths[leaf], metadata)
        return key, "" if key is not None else locked_column_fault(self._paths[leaf], metadata, has_keys=True)

    def _replace(self, row_group: int, leaf: int, position: int, length: int) -> None:
        """Write the decrypted ColumnMetaData, as field 3, over the field that held its module."""
        from numparq.crypto.aad import ModuleId, ModuleType

        data, module = self._data, ModuleId(ModuleType.COLUMN_METADATA, row_group, leaf)
        stored = data[position : position + length].tobytes()
        try:
            plaintext = self._keys.open_module(stored, module)
        except DecryptionError as error:
            error.where.update(row_group=row_group, column=".".join(self._paths[leaf]))
            raise
        start = self._field_start(position)
        written = _META_DATA + plaintext[: _struct_end(plaintext)]
        left = position + length - start - len(written) - 3  # after the header and the length of the padding
        if start < 0 or not 0 <= left < _MAX_PADDING:
            raise InvalidFileError(
                "the footer is damaged: encrypted column metadata are not where they should be", row_group=row_group
            )
        written += bytes((_PADDING, left & 0x7F | 0x80, left >> 7, *bytes(left)))
        data[start : position + length] = np.frombuffer(written, np.uint8)

    def _field_start(self, position: int) -> int:
        """Return where the field begins whose bytes begin at `position`; -1 if its header is not understood."""
        start = position - 1  # of the length, whose bytes but the last have the highest bit
        while position - start < 5 and self._data[start - 1] >= 0x80:
            start -= 1
        if self._data[start - 2 : start].tobytes() == _LONG_HEADER:
            return start - 2
        return start - 1 if self._data[start - 1] & 0x8F == _SHORT_HEADER else -1


def _struct_end(plaintext: bytes) -> int:
    """Return where the ColumnMetaData end; parquet-java leaves bytes behind them in their module."""
    layout = thrift_layout("ColumnMetaData", "codec")
    words, data = np.empty(layout.words, np.int64), np.frombuffer(plaintext, np.uint8)
    stack = decoder_stack(layout.words, layout.words)
    end = int(kernels.read_thrift_struct(data, 0, len(data), layout.table, words, 0, stack))
    check_status(end, InvalidFileError)
    return end
