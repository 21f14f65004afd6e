"""Parquet Modular Encryption by its specification: an encrypted file becomes the plain file with the same pages.

Structs are those of thriftpy2, modules are opened in one shot, and CTR is made of AES-ECB blocks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from support.files.builder import from_bytes, to_bytes

FOOTER, COLUMN_METADATA, DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_HEADER = range(5)
DICTIONARY_PAGE_HEADER, COLUMN_INDEX, OFFSET_INDEX, BLOOM_HEADER, BLOOM_BITSET = range(5, 10)
_PLAIN, _ENCRYPTED = b"PAR1", b"PARE"
_DICTIONARY, _VERSION_2 = 2, 3  # PageType


def aad(file_aad: bytes, module_type: int, *ordinals: int) -> bytes:
    return file_aad + bytes([module_type]) + b"".join(struct.pack("<h", ordinal) for ordinal in ordinals)


def open_gcm(key: bytes, module: bytes, module_aad: bytes) -> bytes:
    (length,) = struct.unpack("<I", module[:4])
    assert length == len(module) - 4
    return AESGCM(key).decrypt(module[4:16], module[16:], module_aad)


def seal_gcm(key: bytes, plaintext: bytes, module_aad: bytes, nonce: bytes) -> bytes:
    sealed = nonce + AESGCM(key).encrypt(nonce, plaintext, module_aad)
    return struct.pack("<I", len(sealed)) + sealed


def open_ctr(key: bytes, module: bytes) -> bytes:
    (length,) = struct.unpack("<I", module[:4])
    assert length == len(module) - 4
    nonce, sealed = module[4:16], module[16:]
    blocks = b"".join(nonce + struct.pack(">I", number) for number in range(1, -(-len(sealed) // 16) + 1))
    stream = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks)
    return bytes(one ^ other for one, other in zip(sealed, stream, strict=False))


class EncryptedFile:
    """An encrypted file; `column_keys` are named by dotted paths, or their beginnings.

    Attributes
    ----------
    crypto : FileCryptoMetaData or None
        None: the footer is plain.
    footer : FileMetaData
        As thriftpy2 reads it; `save` stores it again.
    """

    def __init__(
        self,
        data: bytes,
        footer_key: bytes,
        column_keys: Mapping[str, bytes] | None = None,
        aad_prefix: bytes | None = None,
    ) -> None:
        assert data[:4] == data[-4:]
        self.footer_key, self.column_keys = footer_key, dict(column_keys or {})
        (length,) = struct.unpack("<I", data[-8:-4])
        self.data, self.body, stored = data, data[: -8 - length], data[-8 - length : -8]
        self.crypto = None
        if data[-4:] == _ENCRYPTED:
            self.crypto, end = from_bytes("FileCryptoMetaData", stored)
            self._begin(self.crypto.encryption_algorithm, aad_prefix)
            self.footer, _ = from_bytes("FileMetaData", open_gcm(footer_key, stored[end:], aad(self.file_aad, FOOTER)))
            return
        self.footer, _ = from_bytes("FileMetaData", stored[:-28])
        self._begin(self.footer.encryption_algorithm, aad_prefix)
        signed = AESGCM(footer_key).encrypt(stored[-28:-16], stored[:-28], aad(self.file_aad, FOOTER))
        assert signed[-16:] == stored[-16:]

    def _begin(self, algorithm: Any, aad_prefix: bytes | None) -> None:
        self.is_ctr = algorithm.AES_GCM_V1 is None
        settings = algorithm.AES_GCM_CTR_V1 if self.is_ctr else algorithm.AES_GCM_V1
        self.file_aad = (settings.aad_prefix or aad_prefix or b"") + settings.aad_file_unique

    def key(self, chunk: Any) -> bytes | None:
        """Return the key of a ColumnChunk; None if it is plain."""
        if chunk.crypto_metadata is None:
            return None
        column = chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY
        if column is None:
            return self.footer_key
        path = [name.decode() for name in column.path_in_schema]
        names = [".".join(path[:end]) for end in range(len(path), 0, -1)]
        return next(self.column_keys[name] for name in names if name in self.column_keys)

    def metadata(self, row_group: int, leaf: int) -> Any:
        """Return the ColumnMetaData of a chunk."""
        chunk = self.footer.row_groups[row_group].columns[leaf]
        if chunk.encrypted_column_metadata is None:
            return chunk.meta_data
        module_aad = aad(self.file_aad, COLUMN_METADATA, row_group, leaf)
        return from_bytes("ColumnMetaData", open_gcm(self.key(chunk), chunk.encrypted_column_metadata, module_aad))[0]

    def seal_metadata(self, row_group: int, leaf: int, metadata: Any, nonce: bytes = b"m" * 12) -> None:
        """Store the ColumnMetaData of a chunk that has encrypted ones."""
        chunk = self.footer.row_groups[row_group].columns[leaf]
        module_aad = aad(self.file_aad, COLUMN_METADATA, row_group, leaf)
        chunk.encrypted_column_metadata = seal_gcm(self.key(chunk), to_bytes(metadata), module_aad, nonce)

    def save(self, nonce: bytes = b"n" * 12) -> bytes:
        """Return the file with its footer sealed or signed again."""
        footer, module_aad = to_bytes(self.footer), aad(self.file_aad, FOOTER)
        if self.crypto is not None:
            stored = to_bytes(self.crypto) + seal_gcm(self.footer_key, footer, module_aad, nonce)
        else:
            stored = footer + nonce + AESGCM(self.footer_key).encrypt(nonce, footer, module_aad)[-16:]
        return self.body + stored + struct.pack("<I", len(stored)) + self.data[-4:]


class _Copy:
    """Copies the modules of one chunk as plaintext."""

    def __init__(self, file: EncryptedFile, out: bytearray, row_group: int, leaf: int) -> None:
        self.file, self.out, self.ordinals = file, out, (row_group, leaf)
        self.chunk = file.footer.row_groups[row_group].columns[leaf]
        self.key = file.key(self.chunk)
        self.metadata = file.metadata(row_group, leaf)
        self.moved: dict[int, tuple[int, int]] = {}  # by the position of a page: new position and size

    def module(self, position: int, module_type: int, *page: int) -> tuple[bytes, int]:
        """Return the plaintext of a GCM module and its end."""
        (length,) = struct.unpack("<I", self.file.data[position : position + 4])
        end = position + 4 + length
        module_aad = aad(self.file.file_aad, module_type, *self.ordinals, *page)
        return open_gcm(self.key, self.file.data[position:end], module_aad), end

    def pages(self) -> None:
        metadata = self.metadata
        first, dictionary = metadata.data_page_offset, metadata.dictionary_page_offset
        has_dictionary = bool(dictionary) and dictionary < first
        position = dictionary if has_dictionary else first
        end, begin, page = position + metadata.total_compressed_size, len(self.out), 0
        plain_size = metadata.total_uncompressed_size
        while position < end:
            at, stored_start = len(self.out), position
            if has_dictionary:
                header, position = self.module(position, DICTIONARY_PAGE_HEADER)
            else:
                header, position = self.module(position, DATA_PAGE_HEADER, page)
            about, _ = from_bytes("PageHeader", header)
            plain_size -= position - stored_start
            stored = self.file.data[position : position + about.compressed_page_size]
            position += len(stored)
            assert about.crc is None or about.crc & 0xFFFFFFFF == zlib.crc32(stored)
            ordinals = (*self.ordinals, page) if about.type != _DICTIONARY else self.ordinals
            body = self.body(stored, about, ordinals)
            about.compressed_page_size = len(body)
            if about.crc is not None:
                crc = zlib.crc32(body)
                about.crc = crc - (1 << 32) if crc >> 31 else crc
            head = to_bytes(about)
            plain_size += len(head)
            self.out += head + body
            self.moved[stored_start] = at, len(self.out) - at
            page, has_dictionary = page + (about.type != _DICTIONARY), False
        metadata.total_compressed_size, metadata.total_uncompressed_size = len(self.out) - begin, plain_size
        metadata.data_page_offset = self.moved[first][0]
        if metadata.dictionary_page_offset:
            metadata.dictionary_page_offset = self.moved[dictionary][0]

    def body(self, stored: bytes, header: Any, ordinals: tuple[int, ...]) -> bytes:
        """Return the body of a page; parquet-java leaves levels of version 2 in front of the module."""
        levels = 0
        if header.type == _VERSION_2 and struct.unpack("<I", stored[:4])[0] != len(stored) - 4:
            about = header.data_page_header_v2
            levels = about.definition_levels_byte_length + about.repetition_levels_byte_length
        front, module = stored[:levels], stored[levels:]
        if self.file.is_ctr:
            return front + open_ctr(self.key, module)
        module_type = DICTIONARY_PAGE if header.type == _DICTIONARY else DATA_PAGE
        return front + open_gcm(self.key, module, aad(self.file.file_aad, module_type, *ordinals))

    def indexes(self) -> None:
        chunk = self.chunk
        if chunk.column_index_offset is not None:
            index, _ = self.module(chunk.column_index_offset, COLUMN_INDEX)
            index = index[: from_bytes("ColumnIndex", index)[1]]  # old parquet-java wrote bytes behind it
            chunk.column_index_offset, chunk.column_index_length = len(self.out), len(index)
            self.out += index
        if chunk.offset_index_offset is not None:
            index, _ = from_bytes("OffsetIndex", self.module(chunk.offset_index_offset, OFFSET_INDEX)[0])
            for location in index.page_locations:
                location.offset, location.compressed_page_size = self.moved[location.offset]
            stored = to_bytes(index)
            chunk.offset_index_offset, chunk.offset_index_length = len(self.out), len(stored)
            self.out += stored
        if self.metadata.bloom_filter_offset is not None:
            header, end = self.module(self.metadata.bloom_filter_offset, BLOOM_HEADER)
            header = header[: from_bytes("BloomFilterHeader", header)[1]]
            bloom_filter = header + self.module(end, BLOOM_BITSET)[0]
            self.metadata.bloom_filter_offset = len(self.out)
            if self.metadata.bloom_filter_length is not None:
                self.metadata.bloom_filter_length = len(bloom_filter)
            self.out += bloom_filter

    def write(self) -> None:
        self.pages()
        self.indexes()
        self.chunk.meta_data = self.metadata
        self.chunk.file_offset = 0
        self.chunk.crypto_metadata = self.chunk.encrypted_column_metadata = None


def decrypt_file(
    data: bytes, footer_key: bytes, column_keys: Mapping[str, bytes] | None = None, aad_prefix: bytes | None = None
) -> bytes:
    """Return the plain file with the pages, indexes and Bloom filters of an encrypted one; plain columns stay."""
    file = EncryptedFile(data, footer_key, column_keys, aad_prefix)
    out = bytearray(_PLAIN + file.body[4:])  # plain chunks keep their place; encrypted ones are copied behind
    for number, group in enumerate(file.footer.row_groups):
        for leaf, chunk in enumerate(group.columns):
            if file.key(chunk) is not None:
                _Copy(file, out, number, leaf).write()
        group.file_offset = None
        group.total_byte_size = sum(chunk.meta_data.total_uncompressed_size for chunk in group.columns)
        group.total_compressed_size = sum(chunk.meta_data.total_compressed_size for chunk in group.columns)
    file.footer.encryption_algorithm = file.footer.footer_signing_key_metadata = None
    footer = to_bytes(file.footer)
    return bytes(out) + footer + struct.pack("<I", len(footer)) + _PLAIN
