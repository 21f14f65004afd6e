"""Keys of one part of a dataset: those of the dataset, with the AAD prefix of the part's path."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numparq.crypto.part_prefix import PartPrefix
from numparq.io.filesystem import is_url, strip_file_scheme

if TYPE_CHECKING:
    from numparq.crypto.key import Key, KeySource
    from numparq.format.file_encryption import FileKeys
    from numparq.typing import EncryptionKeys

_NEEDS_ROOT = (
    "aad_prefix=PartPrefix(...) needs the path of a part in its dataset; read the dataset by its folder, or pass "
    "PartPrefix(..., root=) with that folder"
)


class PartDecryption:
    """Keys with which one part is read.

    Parameters
    ----------
    keys : KeySource
        Keys of the dataset.
    aad_prefix : bytes
        AAD prefix of the part.

    Attributes
    ----------
    aad_prefix
        The parameter.
    """

    __slots__ = ("_keys", "aad_prefix")

    def __init__(self, keys: KeySource, aad_prefix: bytes) -> None:
        self._keys, self.aad_prefix = keys, aad_prefix

    @property
    def are_named(self) -> bool:
        """Whether a provider named the keys."""
        return getattr(self._keys, "are_named", False)

    @property
    def identity(self) -> bytes:
        """Bytes that differ between keys and between prefixes."""
        return hashlib.sha256(self._keys.identity + self.aad_prefix).digest()

    @property
    def allow_plaintext_files(self) -> bool:
        """Whether files that are not encrypted are read as well."""
        return self._keys.allow_plaintext_files

    @property
    def check_footer_integrity(self) -> bool:
        """Whether the signatures of plaintext footers are checked."""
        return self._keys.check_footer_integrity

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        """Return the footer key; None if it is not known."""
        return self._keys.footer_key(key_metadata)

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column by its path; None if it is not known."""
        return self._keys.column_key(path, key_metadata)

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> KeySource:
        """Return the keys of the part's file."""
        return PartDecryption(self._keys.for_file(path, read_sibling), self.aad_prefix)

    def __repr__(self) -> str:
        return f"PartDecryption({self._keys!r}, aad_prefix={self.aad_prefix!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return PartDecryption, (self._keys, self.aad_prefix)


class PartEncryption:
    """Keys and modes with which one part is written.

    Parameters
    ----------
    keys : EncryptionKeys
        Keys of the dataset.
    name_of : callable
        Function that returns the part's path in its dataset.
    """

    __slots__ = ("_keys", "_name_of")

    def __init__(self, keys: EncryptionKeys, name_of: Callable[[PartPrefix], str]) -> None:
        self._keys, self._name_of = keys, name_of

    def may_encrypt(self, column: str) -> bool:
        """Whether a column, or any leaf column of it, may be encrypted."""
        return self._keys.may_encrypt(column)

    def file_keys(
        self, paths: Sequence[tuple[str, ...]], material_names: Callable[[], Collection[str]] | None = None
    ) -> FileKeys:
        """Return the keys of the part's file."""
        keys = self._keys.file_keys(paths, material_names)
        if not isinstance(keys.aad_prefix, PartPrefix):
            return keys
        return keys._replace(aad_prefix=keys.aad_prefix.of(self._name_of(keys.aad_prefix)))

    def __getattr__(self, name: str) -> object:
        return getattr(self._keys, name)


@dataclass(frozen=True)
class DatasetKeys:
    """Keys of the parts of a dataset; it can be pickled if a provider named them.

    Attributes
    ----------
    keys : KeySource
        The caller's keys.
    base : str or None
        Folder of the dataset; None if it is not known.
    is_local : bool
        Whether it is on the local file system.
    """

    keys: KeySource
    base: str | None
    is_local: bool

    @classmethod
    def of_dataset(cls, keys: KeySource, base: str | None, is_local: bool) -> DatasetKeys:
        """Return the keys of a dataset; ValueError if its parts' paths are needed, and its folder is not known."""
        if isinstance(keys.aad_prefix, PartPrefix):
            base = keys.aad_prefix.root if keys.aad_prefix.root is not None else base
            if base is None:
                raise ValueError(_NEEDS_ROOT)
        return cls(keys, None if base is None else plain_path(base, is_local), is_local)

    def of(self, path: str) -> KeySource:
        """Return the keys of the part at a path; ValueError if it is outside of the dataset's folder."""
        prefix = self.keys.aad_prefix
        if not isinstance(prefix, PartPrefix) or self.base is None:
            return self.keys
        return PartDecryption(self.keys, prefix.of(part_name(self.base, path, self.is_local)))


def commit_keys(
    decryption: KeySource | None, encryption: EncryptionKeys | None, base: str, is_local: bool
) -> DatasetKeys | None:
    """Return the keys with which a commit opens parts: those given to read, or those of the new parts; else None."""
    if decryption is None:
        as_decryption = getattr(encryption, "as_decryption", None)
        decryption = None if as_decryption is None else as_decryption()
    return None if decryption is None else DatasetKeys.of_dataset(decryption, base, is_local)


def keys_of_single_file(keys: KeySource | None, path: object, filesystem: object = None) -> KeySource | None:
    """Return the keys of a file that is opened on its own, of which only a given root tells the path in its dataset."""
    if keys is None or not isinstance(keys.aad_prefix, PartPrefix):
        return keys
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"{_NEEDS_ROOT}; for bytes and file objects, pass aad_prefix=PartPrefix(...).of(path)")
    name = os.fsdecode(path)
    return DatasetKeys.of_dataset(keys, None, filesystem is None and not is_url(name)).of(name)


def encryption_of_part(keys: EncryptionKeys | None, base: str, name: str, is_local: bool) -> EncryptionKeys | None:
    """Return the keys with which the part of a name is written into the dataset at a folder."""

    def name_of(prefix: PartPrefix) -> str:
        return name if prefix.root is None else part_name(plain_path(prefix.root, is_local), f"{base}/{name}", is_local)

    return None if keys is None else PartEncryption(keys, name_of)


def part_name(base: str, path: str, is_local: bool) -> str:
    """Return the path of a file relative to a folder, by `plain_path`."""
    plain = plain_path(path, is_local)
    start = base if base.endswith("/") else f"{base}/"
    if not plain.startswith(start):
        raise ValueError(f"{path!r} is not below {base!r}, the folder of its dataset; {_NEEDS_ROOT}")
    return plain.removeprefix(start)


def plain_path(path: str, is_local: bool) -> str:
    """Return an absolute local path, or a remote one without its scheme, separated by slashes."""
    if is_local:
        return os.path.abspath(os.path.expanduser(strip_file_scheme(path))).replace(os.sep, "/")
    return path.partition("://")[2].strip("/") if is_url(path) else path.strip("/")
