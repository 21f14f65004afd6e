"""Keys of an open encrypted file (Encryption.md): its AAD, the keys of its columns, ciphers of column chunks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from numparq.crypto.part_prefix import PartPrefix
from numparq.errors import DecryptionError, ParquetError, UnsupportedError
from numparq.util.bounded_cache import BoundedCache

if TYPE_CHECKING:
    from numparq.crypto.aad import ModuleId
    from numparq.crypto.chunk_cipher import ChunkCipher
    from numparq.crypto.key import Key, KeySource
    from numparq.format.thrift.decode import Record

_IS_CTR = {"AES_GCM_V1": False, "AES_GCM_CTR_V1": True}
_MAX_CIPHERS = 1024
_MAX_TEXT = 80


class FileDecryption:
    """Keys of one open file; all threads and all readers with the same keys share it.

    Parameters
    ----------
    source : KeySource
        The caller's keys.
    algorithm : Record
        The file's EncryptionAlgorithm.
    footer_key_metadata : bytes or None
        Key metadata of the footer.

    Attributes
    ----------
    file_aad : bytes
        AAD prefix and `aad_file_unique`, with which the AAD of every module begins.
    is_ctr : bool
        Whether pages are encrypted by CTR, and so not authenticated.
    """

    __slots__ = (
        "_ciphers",
        "_column_keys",
        "_locked",
        "_sealed",
        "_source",
        "file_aad",
        "footer_key_metadata",
        "is_ctr",
    )

    def __init__(self, source: KeySource, algorithm: Record, footer_key_metadata: bytes | None) -> None:
        name = algorithm.which()
        if name is None:
            raise UnsupportedError("the file is encrypted by an algorithm that numparq does not know")
        settings = getattr(algorithm, name)
        self._source = source
        self.is_ctr = _IS_CTR[name]
        self.file_aad = _aad_prefix(settings, source.aad_prefix) + (settings.aad_file_unique or b"")
        self.footer_key_metadata = footer_key_metadata
        self._column_keys: dict[tuple[object, ...], Key | None] = {}
        self._sealed: dict[tuple[int, int], Key] = {}
        self._locked: dict[tuple[int, int], str] = {}
        self._ciphers = BoundedCache(_MAX_CIPHERS)

    def __repr__(self) -> str:
        return "FileDecryption()"

    @property
    def identity(self) -> bytes:
        """Identity of the keys, part of every key of a cache."""
        return self._source.identity

    @property
    def footer_key(self) -> Key:
        """The footer key; DecryptionError if it was not given."""
        return footer_key(self._source, self.footer_key_metadata)

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column; None if it was not given. It is retrieved once."""
        column = path, key_metadata
        if column not in self._column_keys:
            self._column_keys[column] = retrieve_key(lambda: self._source.column_key(path, key_metadata))
        return self._column_keys[column]

    def add_chunk(self, row_group: int, leaf: int, key: Key | None, fault: str) -> None:
        """Note the key of an encrypted column chunk, or why it cannot be read."""
        if key is None:
            self._locked[row_group, leaf] = fault
        else:
            self._sealed[row_group, leaf] = key

    def chunk_fault(self, row_group: int, leaf: int) -> str | None:
        """Return why an encrypted column chunk cannot be read; None if its key is known."""
        return None if (row_group, leaf) in self._sealed else self._locked.get((row_group, leaf), _NO_METADATA)

    def is_sealed(self, row_group: int, leaf: int) -> bool:
        """Whether a column chunk is encrypted, with a key that is known."""
        return (row_group, leaf) in self._sealed

    def cipher(self, row_group: int, leaf: int) -> ChunkCipher:
        """Return the cipher of an encrypted column chunk."""
        known: ChunkCipher | None = self._ciphers.get((row_group, leaf))
        if known is None:
            from numparq.crypto.chunk_cipher import ChunkCipher

            key, is_ctr = self._sealed.get((row_group, leaf)), self.is_ctr
            if key is None:
                raise DecryptionError(self.chunk_fault(row_group, leaf) or _NO_METADATA)
            known = self._ciphers.get_or_make(
                (row_group, leaf), lambda: ChunkCipher(key, self.file_aad, row_group, leaf, is_ctr)
            )
        return known

    def open_module(self, stored: bytes, module: ModuleId) -> bytes:
        """Return the plaintext of a module of an encrypted column chunk; `stored` begins with its length."""
        from numparq.crypto.aad import module_aad
        from numparq.crypto.ciphers import open_module

        key = self._sealed[module.row_group, module.leaf]
        return open_module(key, stored, module_aad(self.file_aad, module), module.module_type.label)


_NO_METADATA = "the column chunk is encrypted, and the footer does not say by which key"


def footer_key(source: KeySource, key_metadata: bytes | None) -> Key:
    """Return the footer key; DecryptionError if it was not given."""
    key = retrieve_key(lambda: source.footer_key(key_metadata))
    if key is None:
        raise DecryptionError(f"the footer key was not given ({describe_key(key_metadata)})")
    return key


def locked_column_fault(path: tuple[str, ...], key_metadata: bytes | None, has_keys: bool) -> str:
    """Return the message about a column whose key was not given."""
    reason = "encrypted with a key that was not given" if has_keys else "encrypted; pass decryption="
    return f"column {'.'.join(path)!r} is {reason} ({describe_key(key_metadata)})"


def describe_key(key_metadata: bytes | None) -> str:
    """Return key metadata for a message: of key material (PKMT1) the master key's name alone."""
    if key_metadata is None:
        return "no key metadata"
    try:
        material = json.loads(key_metadata)
    except (ValueError, RecursionError):
        material = None
    if isinstance(material, dict) and material.get("keyMaterialType") == "PKMT1":
        is_named = "masterKeyID" in material
        name = str(material.get("masterKeyID" if is_named else "keyReference"))[:_MAX_TEXT]
        return f"key metadata: PKMT1, {'master key' if is_named else 'key material stored outside as'} {name!r}"
    more = "..." if len(key_metadata) > _MAX_TEXT else ""
    return f"key metadata {key_metadata[:_MAX_TEXT]!r}{more}"


def retrieve_key(call: Callable[[], Key | None]) -> Key | None:
    """Return a key by the caller's key source; its exceptions may quote secrets and are not repeated in messages."""
    try:
        return call()
    except ParquetError:
        raise
    except Exception as error:
        raise DecryptionError(f"no key could be retrieved: {type(error).__name__}") from error


def _aad_prefix(settings: Record, supplied: bytes | PartPrefix | None) -> bytes:
    """Return the AAD prefix of a file: stored, given by the caller, or none."""
    if isinstance(supplied, PartPrefix):
        raise DecryptionError("aad_prefix=PartPrefix(...) is for datasets; pass the prefix of this file as bytes")
    stored: bytes | None = settings.aad_prefix
    if stored is not None and supplied is not None and stored != supplied:
        raise DecryptionError("the file's AAD prefix differs from aad_prefix=")
    if stored is None and settings.supply_aad_prefix and supplied is None:
        raise DecryptionError("the AAD prefix is not stored in the file; pass aad_prefix=")
    if stored is None and not settings.supply_aad_prefix and supplied is not None:
        raise DecryptionError("the file has no AAD prefix, but aad_prefix= was given")
    return stored if stored is not None else supplied or b""
