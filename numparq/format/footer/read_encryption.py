"""Read how a file is encrypted (Encryption.md), with or without its keys."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.encryption_metadata import ColumnEncryption, EncryptionMetadata
from numparq.format.thrift.decode import Record, read_record, root_record
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.io.source import Source, read_bytes

from .encrypted_footer import leaf_paths, read_crypto_metadata
from .tail import ENCRYPTED_MAGIC, MIN_FILE_BYTES

if TYPE_CHECKING:
    from .file_metadata import Footer

_MAX_CRYPTO_BYTES = 1 << 20
_BY_FOOTER_KEY = "crypto_metadata.ENCRYPTION_WITH_FOOTER_KEY"
_BY_COLUMN_KEY = "crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.key_metadata"
_SEALED = "encrypted_column_metadata"
_FOOTER_KEY_BIT = 1 << 1  # member of the union ColumnCryptoMetaData


def read_encryption(source: Source, footer: Footer | None = None) -> EncryptionMetadata | None:
    """Return how a file is encrypted; None: it is plain.

    Without a footer, which could not be opened, only an encrypted one is described.
    """
    if source.size < MIN_FILE_BYTES:
        return None
    end = read_bytes(source, source.size - 8, 8)
    if end[4:] != ENCRYPTED_MAGIC:
        return None if footer is None else _plaintext_encryption(footer)
    length = min(int.from_bytes(end[:4], "little"), source.size - 8)
    stored = read_bytes(source, source.size - 8 - length, min(length, _MAX_CRYPTO_BYTES))
    crypto, _ = read_crypto_metadata(np.frombuffer(stored, np.uint8))
    return _describe(crypto.encryption_algorithm, crypto.key_metadata, footer, has_encrypted_footer=True)


def _plaintext_encryption(footer: Footer) -> EncryptionMetadata | None:
    layout = thrift_layout("FileMetaData", "encryption_algorithm", "footer_signing_key_metadata")
    record = root_record(layout, read_record(footer.data, footer.length, layout), footer.data)
    if record.encryption_algorithm is None:
        return None
    return _describe(
        record.encryption_algorithm, record.footer_signing_key_metadata, footer, has_encrypted_footer=False
    )


def _describe(
    algorithm: Record | None, key_metadata: bytes | None, footer: Footer | None, has_encrypted_footer: bool
) -> EncryptionMetadata:
    if algorithm is None:
        raise InvalidFileError("the footer is damaged: it names no encryption algorithm")
    name = algorithm.which() or ""
    settings = getattr(algorithm, name) if name else None
    prefix = settings.aad_prefix if settings is not None else None
    return EncryptionMetadata(
        has_encrypted_footer,
        name,
        key_metadata,
        prefix,
        prefix is None and settings is not None and bool(settings.supply_aad_prefix),
        {} if footer is None else _encrypted_columns(footer),
    )


def _intact_words(
    footer: Footer, layout: ThriftLayout, row_groups: np.ndarray, leaves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the records of the chunks that can be read, and their leaf columns."""
    words, intact = [np.empty((0, layout.words), np.int64)], []
    for at in range(len(leaves)):
        with suppress(InvalidFileError):
            words.append(footer.chunks.read_stored_words(layout, row_groups[at : at + 1], leaves[at : at + 1]))
            intact.append(at)
    return np.concatenate(words), leaves[np.array(intact, np.intp)]


def _encrypted_columns(footer: Footer) -> dict[tuple[str, ...], ColumnEncryption]:
    """Return the leaf columns with an encrypted chunk, by the first one that is not damaged."""
    paths = leaf_paths(footer.schema_elements)
    num_row_groups = len(footer.row_group_num_rows)
    layout = thrift_layout("ColumnChunk", _BY_FOOTER_KEY, _BY_COLUMN_KEY, _SEALED)
    row_groups, leaves = np.divmod(np.arange(num_row_groups * len(paths)), max(len(paths), 1))
    try:
        words = footer.chunks.read_stored_words(layout, row_groups, leaves)
    except InvalidFileError:
        words, leaves = _intact_words(footer, layout, row_groups, leaves)
    is_encrypted = words[:, 0] & (layout.bit("crypto_metadata") | layout.bit(_SEALED)) != 0
    columns = {}
    chunks = is_encrypted.nonzero()[0]
    for leaf, chunk in zip(*(each.tolist() for each in np.unique(leaves[chunks], return_index=True)), strict=True):
        position, length = words[chunks[chunk], layout.slot(_BY_COLUMN_KEY) :][:2].tolist()
        is_footer_key = bool(words[chunks[chunk], layout.slot("crypto_metadata")] & _FOOTER_KEY_BIT)
        columns[paths[leaf]] = ColumnEncryption(
            is_footer_key, footer.binary(position, length) if position >= 0 else None
        )
    return columns
