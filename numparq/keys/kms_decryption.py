"""`KmsDecryption`: keys that a KMS unwraps, for files to read."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from numparq.crypto.key import NAME_A_PROVIDER, Key
from numparq.crypto.part_prefix import PartPrefix
from numparq.errors import DecryptionError
from numparq.util.arguments import check_flag, check_seconds

from .client import KmsClient, check_client, describe_client
from .direct import check_aad_prefix, check_retriever, retrieved_key
from .key_material import KeyMaterial, KeyReference, parse_key_material, parse_key_metadata
from .material_file import material_name, read_material_file
from .wrapping import Unwrapper

if TYPE_CHECKING:
    from typing import NoReturn


class KmsDecryption:
    """Reads encrypted files with keys that a key management system (KMS) unwraps.

    The files say in their key metadata, or in a file of key material next to them, by which master key each key is
    wrapped: they are those of `KmsEncryption`, and of pyarrow's and parquet-java's key tools.

    Parameters
    ----------
    client : KmsClient
        Client of the KMS.
    cache_lifetime : float, default 600
        Seconds for which unwrapped keys are kept. Files that are opened later ask the KMS again.
    aad_prefix : bytes or PartPrefix, optional
        AAD prefix of the files, as in `Decryption`.
    key_retriever : callable, optional
        Function that returns a key for key metadata (bytes) that are no key material.
    allow_plaintext_files : bool, default False
        Whether files that are not encrypted are read as well.
    check_footer_integrity : bool, default True
        Whether the signature of a plaintext footer is checked, which takes the footer key.

    Attributes
    ----------
    aad_prefix, allow_plaintext_files, check_footer_integrity
        The arguments.

    Notes
    -----
    Threads may share it; it can be neither pickled nor copied. Errors of the client are causes of a `DecryptionError`.

    Examples
    --------
    >>> import numparq
    >>> from numparq.keys.clients import VaultKms
    >>> numparq.KmsDecryption(VaultKms("https://vault.example:8200", token="s.1234"))
    KmsDecryption(VaultKms('https://vault.example:8200'))
    """

    def __init__(
        self,
        client: KmsClient,
        *,
        cache_lifetime: float = 600,
        aad_prefix: bytes | PartPrefix | None = None,
        key_retriever: Callable[[bytes], bytes] | None = None,
        allow_plaintext_files: bool = False,
        check_footer_integrity: bool = True,
    ) -> None:
        check_client(client)
        check_flag(allow_plaintext_files, "allow_plaintext_files")
        check_flag(check_footer_integrity, "check_footer_integrity")
        self._lifetime = check_seconds(cache_lifetime, "cache_lifetime")
        self._client, self._unwrapper = client, Unwrapper(client, self._lifetime)
        self._retriever = check_retriever(key_retriever)
        self.aad_prefix = check_aad_prefix(aad_prefix)
        self.allow_plaintext_files = allow_plaintext_files
        self.check_footer_integrity = check_footer_integrity
        self._identity, self._identity_ends = b"", 0.0

    @property
    def identity(self) -> bytes:
        """Random bytes of this object, others when the lifetime of the keys has ended; caches are kept by them."""
        now = time.monotonic()
        if now >= self._identity_ends:
            self._identity, self._identity_ends = os.urandom(32), now + self._lifetime
        return self._identity

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> _FileKeys:
        """Return the keys of one file.

        Parameters
        ----------
        path : str or None
            Path of the file; None for bytes and file objects.
        read_sibling : callable or None
            Function that returns a small file of the same folder by its name.
        """
        return _FileKeys(self, self._unwrapper, self._retriever, path, read_sibling)

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        """Return the footer key of a file without a path.

        Parameters
        ----------
        key_metadata : bytes or None
            Key metadata of the footer.

        Returns
        -------
        Key or None
        """
        return self.for_file(None, None).footer_key(key_metadata)

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column in a file without a path.

        Parameters
        ----------
        path : tuple of str
            The column's path.
        key_metadata : bytes or None
            Key metadata of the column.

        Returns
        -------
        Key or None
        """
        return self.for_file(None, None).column_key(path, key_metadata)

    def __repr__(self) -> str:
        prefix = "" if self.aad_prefix is None else f", aad_prefix={self.aad_prefix!r}"
        return f"KmsDecryption({describe_client(self._client)}{prefix})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"keys cannot be pickled or copied; {NAME_A_PROVIDER}")


class _FileKeys:
    """Keys of one file: its key material, and the data keys unwrapped so far, by key metadata."""

    def __init__(
        self,
        settings: KmsDecryption,
        unwrapper: Unwrapper,
        retriever: Callable[[bytes], bytes] | None,
        path: str | None,
        read_sibling: Callable[[str], bytes] | None,
    ) -> None:
        self.aad_prefix = settings.aad_prefix
        self.allow_plaintext_files = settings.allow_plaintext_files
        self.check_footer_integrity = settings.check_footer_integrity
        # Objects with keys that caches keep belong to a path, next to which key material is read when first needed.
        name = b"" if path is None else path.encode(errors="surrogatepass")
        self.identity = hashlib.sha256(settings.identity + name).digest()
        self._unwrapper, self._retriever = unwrapper, retriever
        self._path, self._read_sibling = path, read_sibling
        self._entries: dict[str, str] | None = None
        self._keys: dict[bytes, Key] = {}

    def __repr__(self) -> str:
        return f"<keys of {self._path!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys cannot be pickled or copied")

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> _FileKeys:
        """Return itself: it is bound to a file."""
        return self

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        """Return the footer key; None without key metadata."""
        return self._key(key_metadata)

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column; None without key metadata."""
        return self._key(key_metadata)

    def _key(self, key_metadata: bytes | None) -> Key | None:
        if key_metadata is None:
            return None
        key = self._keys.get(key_metadata)
        if key is None:
            key = self._keys[key_metadata] = self._find(key_metadata)
        return key

    def _find(self, key_metadata: bytes) -> Key:
        material = parse_key_metadata(key_metadata)
        if isinstance(material, KeyReference):
            return self._find_stored(material.name)
        if material is not None:
            return self._unwrapper.unwrap(material)
        if self._retriever is not None:
            return retrieved_key(self._retriever, key_metadata)
        raise DecryptionError(
            f"the key metadata {key_metadata[:80]!r} are no key material of a KMS (PKMT1); pass key_retriever=, or "
            "the keys by numparq.Decryption"
        )

    def _find_stored(self, name: str) -> Key:
        """Return a key whose key material is stored outside the file; it may have been rotated since it was read."""
        was_known = self._entries is not None
        material = self._stored_material(name)
        try:
            return self._unwrapper.unwrap(material)
        except DecryptionError:
            self._entries = None
            if not was_known or (rotated := self._stored_material(name)) == material:
                raise
        return self._unwrapper.unwrap(rotated)

    def _stored_material(self, name: str) -> KeyMaterial:
        """Return an entry of the file of key material, which is read once."""
        if self._path is None or self._read_sibling is None:
            raise DecryptionError(
                "the key material is stored outside the file; pass the path of the file instead of its bytes"
            )
        if self._entries is None:
            self._entries = read_material_file(self._path, self._read_sibling)
        if name not in self._entries:
            raise DecryptionError(f"{material_name(self._path)!r} has no key material {name[:80]!r}")
        return parse_key_material(self._entries[name])
