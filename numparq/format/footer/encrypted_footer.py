"""Footers of encrypted files (Encryption.md): encrypted footers, and signatures of plaintext ones."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import DecryptionError, InvalidFileError
from numparq.format.encryption import FileDecryption, describe_key, footer_key
from numparq.format.thrift.decode import Record, decoder_stack, read_record, root_record
from numparq.format.thrift.layout import thrift_layout
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import check_status
from numparq.util.bounded_cache import BoundedCache

from .encrypted_chunks import EncryptedChunks
from .file_metadata import Footer, SchemaElements, digest_end

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_NONCE_BYTES, _TAG_BYTES = 12, 16
_SIGNATURE_BYTES = _NONCE_BYTES + _TAG_BYTES
_CACHED = BoundedCache(64)
_MAX_CACHED_BYTES = 128 << 10  # of a footer as stored; larger ones of local files are in the cache of files


def parse_encrypted_footer(stored: np.ndarray, keys: KeySource | None, is_encrypted: bool) -> Footer:
    """Return the footer of a file that is opened with keys, or whose footer is encrypted.

    `stored` is uint8: FileCryptoMetaData and the footer's module, or FileMetaData and its signature. Readers with the
    same keys share the footers of equal bytes.
    """
    if keys is None:
        raise DecryptionError(_without_keys(stored))
    if len(stored) > _MAX_CACHED_BYTES:
        return _parse(stored, keys, is_encrypted)
    cache_key = hashlib.sha256(stored.tobytes()).digest(), keys.identity, is_encrypted
    known: Footer | None = _CACHED.get(cache_key)
    return known or _CACHED.get_or_make(cache_key, lambda: _parse(stored, keys, is_encrypted))


def _parse(stored: np.ndarray, source: KeySource, is_encrypted: bool) -> Footer:
    data, keys = (_decrypt if is_encrypted else _check_signature)(stored, source)
    footer = Footer(data, len(data))
    footer.end_digest = digest_end(stored)
    footer.content_digest = hashlib.sha256(stored.tobytes()).digest()
    if keys is not None:
        footer.keys = keys
        chunks, paths = footer.chunks, leaf_paths(footer.schema_elements)
        chunks.encrypted = EncryptedChunks(data, keys, paths, chunks.starts.size)
    return footer


def read_crypto_metadata(stored: np.ndarray) -> tuple[Record, int]:
    """Return FileCryptoMetaData, with which an encrypted footer begins, and where it ends."""
    layout = thrift_layout("FileCryptoMetaData")
    words = np.empty(layout.words, np.int64)
    stack = decoder_stack(layout.words, layout.words)
    end = int(kernels.read_thrift_struct(stored, 0, len(stored), layout.table, words, 0, stack))
    check_status(end, InvalidFileError)
    return root_record(layout, words, stored), end


def _without_keys(stored: np.ndarray) -> str:
    """Return the message about an encrypted footer that is opened without keys."""
    try:
        key = describe_key(read_crypto_metadata(stored)[0].key_metadata)
    except InvalidFileError:
        key = "its key metadata are damaged"
    return f"the footer is encrypted; pass decryption= ({key})"


def _decrypt(stored: np.ndarray, source: KeySource) -> tuple[np.ndarray, FileDecryption | None]:
    """Return FileMetaData in memory of its own, and the file's keys."""
    from numparq.crypto.aad import ModuleId, ModuleType, module_aad
    from numparq.crypto.ciphers import open_module

    record, end = read_crypto_metadata(stored)
    if record.encryption_algorithm is None:
        raise InvalidFileError("FileCryptoMetaData names no algorithm")
    keys = FileDecryption(source, record.encryption_algorithm, record.key_metadata)
    aad = module_aad(keys.file_aad, ModuleId(ModuleType.FOOTER))
    plaintext = open_module(keys.footer_key, stored[end:].tobytes(), aad, "footer")
    return _private_copy(plaintext), keys


def _check_signature(stored: np.ndarray, source: KeySource) -> tuple[np.ndarray, FileDecryption | None]:
    """Return FileMetaData in memory of its own, and the file's keys; no keys for a plain file, if those are allowed.

    The signature is checked over the bytes as stored.
    """
    from numparq.crypto.aad import ModuleId, ModuleType, module_aad
    from numparq.crypto.ciphers import sign_footer

    layout = thrift_layout("FileMetaData", "encryption_algorithm", "footer_signing_key_metadata")
    record = root_record(layout, read_record(stored, len(stored), layout), stored)
    if record.encryption_algorithm is None:
        if source.allow_plaintext_files:
            return _private_copy(stored.tobytes()), None
        raise DecryptionError("the file is not encrypted; pass allow_plaintext_files=True to read it")
    if len(stored) <= _SIGNATURE_BYTES:
        raise InvalidFileError("the footer has no signature")
    keys = FileDecryption(source, record.encryption_algorithm, record.footer_signing_key_metadata)
    data, nonce, tag = np.split(stored, [len(stored) - _SIGNATURE_BYTES, len(stored) - _TAG_BYTES])
    if source.check_footer_integrity:
        key = footer_key(source, keys.footer_key_metadata)
        aad = module_aad(keys.file_aad, ModuleId(ModuleType.FOOTER))
        if not hmac.compare_digest(sign_footer(key, data.tobytes(), nonce.tobytes(), aad), tag.tobytes()):
            raise DecryptionError("the footer's signature does not match: the key is wrong or the file was changed")
    return _private_copy(data.tobytes()), keys


def _private_copy(content: bytes) -> np.ndarray:
    """Return bytes as a writable array; the metadata of column chunks are decrypted into it."""
    return np.frombuffer(bytearray(content), np.uint8)


def leaf_paths(elements: SchemaElements) -> list[tuple[str, ...]]:
    """Return the path of each leaf column, the root left out."""
    layout = elements.schema_layout
    name, children = layout.slots["name"].word, layout.slots["num_children"].word
    paths: list[tuple[str, ...]] = []
    groups: list[tuple[tuple[str, ...], int]] = []  # open groups: path, and children still to come
    for record, is_leaf in zip(elements.schema_records.tolist(), elements.is_leaf.tolist(), strict=True):
        while groups and not groups[-1][1]:
            groups.pop()
        above: tuple[str, ...] = ()
        if groups:
            above, left = groups[-1]
            groups[-1] = above, left - 1
        path = (*above, elements.text(record[name], record[name + 1])) if groups else ()
        if is_leaf:
            paths.append(path)
        else:
            groups.append((path, max(record[children], 0)))
    return paths
