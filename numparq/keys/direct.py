"""Keys given directly, or by a function of key metadata."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from numparq.crypto.key import NAME_A_PROVIDER, Key
from numparq.crypto.part_prefix import PartPrefix
from numparq.util.arguments import check_flag

if TYPE_CHECKING:
    from typing import NoReturn

_SECRET = os.urandom(32)  # of this process: identities of keys tell nothing about them
_FOOTER = ()

ColumnPath = str | tuple[str, ...]


class Decryption:
    """Keys with which encrypted files are read.

    Parameters
    ----------
    footer_key : bytes, optional
        Key of the footer, and of columns that have none of their own: 16, 24 or 32 bytes.
    column_keys : dict of str or tuple of str to bytes, optional
        Keys of columns. A column is named by its path, ``"a.b"`` or ``("a", "b")``; a path stands for all leaf columns
        below it, and the longest one counts. Names that a file lacks are ignored.
    aad_prefix : bytes or PartPrefix, optional
        AAD prefix of the files, or of each part of a dataset. Needed if they do not store it; a stored one must equal
        it.
    key_retriever : callable, optional
        Function that returns a key for key metadata (bytes), called once for each key that is not given directly.
    allow_plaintext_files : bool, default False
        Whether files that are not encrypted are read as well.
    check_footer_integrity : bool, default True
        Whether the signature of a plaintext footer is checked, which takes the footer key.

    Attributes
    ----------
    aad_prefix, allow_plaintext_files, check_footer_integrity
        The arguments.
    identity : bytes
        Bytes that are equal for equal keys in this process, and show nothing of them.

    Notes
    -----
    It can be neither pickled nor copied, and its ``repr`` shows no key.

    Examples
    --------
    >>> import numparq
    >>> numparq.Decryption(b"0123456789012345", {"salary": b"1234567890123450"})
    Decryption(footer key, 1 column key)
    """

    __slots__ = (
        "_column_keys",
        "_footer_key",
        "_retrieved",
        "_retriever",
        "aad_prefix",
        "allow_plaintext_files",
        "check_footer_integrity",
        "identity",
    )

    def __init__(
        self,
        footer_key: bytes | None = None,
        column_keys: Mapping[ColumnPath, bytes] | None = None,
        *,
        aad_prefix: bytes | PartPrefix | None = None,
        key_retriever: Callable[[bytes], bytes] | None = None,
        allow_plaintext_files: bool = False,
        check_footer_integrity: bool = True,
    ) -> None:
        check_flag(allow_plaintext_files, "allow_plaintext_files")
        check_flag(check_footer_integrity, "check_footer_integrity")
        self._footer_key = None if footer_key is None else _make_key(footer_key, "footer_key")
        self._column_keys = {
            _path_of(name): _make_key(value, f"the key of column {name!r}")
            for name, value in (column_keys or {}).items()
        }
        self._retriever, self._retrieved = check_retriever(key_retriever), dict[bytes, Key]()
        self.aad_prefix = check_aad_prefix(aad_prefix)
        self.allow_plaintext_files = allow_plaintext_files
        self.check_footer_integrity = check_footer_integrity
        self.identity = os.urandom(32) if key_retriever is not None else self._identity()

    def _identity(self) -> bytes:
        """Return what is equal for equal keys in this process, and shows nothing of them."""
        keys = {_FOOTER: self._footer_key, **self._column_keys}
        parts = sorted((path, key.value) for path, key in keys.items() if key is not None)
        settings = self.aad_prefix, self.allow_plaintext_files, self.check_footer_integrity
        return hmac.new(_SECRET, repr((parts, settings)).encode(), hashlib.sha256).digest()

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        """Return the footer key; None if it is not known.

        Parameters
        ----------
        key_metadata : bytes or None
            Key metadata of the footer.

        Returns
        -------
        Key or None
        """
        return self._footer_key if self._footer_key is not None else self._retrieve(key_metadata)

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column; None if it is not known.

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
        for end in range(len(path), 0, -1):
            for name in (path[:end], (".".join(path[:end]),)):
                if name in self._column_keys:
                    return self._column_keys[name]
        return self._retrieve(key_metadata)

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> Decryption:
        """Return itself: its keys are those of all files.

        Parameters
        ----------
        path : str or None
            Path of a file.
        read_sibling : callable or None
            Function that returns a small file of the same folder by its name.

        Returns
        -------
        Decryption
        """
        return self

    def _retrieve(self, key_metadata: bytes | None) -> Key | None:
        if self._retriever is None or key_metadata is None:
            return None
        if key_metadata not in self._retrieved:
            self._retrieved[key_metadata] = retrieved_key(self._retriever, key_metadata)
        return self._retrieved[key_metadata]

    def __repr__(self) -> str:
        count = len(self._column_keys)
        parts = ["footer key"] * (self._footer_key is not None)
        parts += [f"{count} column key{'s' * (count != 1)}"] * bool(count)
        parts += ["key_retriever"] * (self._retriever is not None)
        if self.aad_prefix is not None:
            parts.append(f"aad_prefix={self.aad_prefix!r}")
        return f"Decryption({', '.join(parts)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"keys cannot be pickled or copied; {NAME_A_PROVIDER}")


def check_aad_prefix(aad_prefix: bytes | PartPrefix | None) -> bytes | PartPrefix | None:
    """Return an AAD prefix; TypeError unless it is bytes, of parts, or None."""
    if aad_prefix is not None and not isinstance(aad_prefix, (bytes, PartPrefix)):
        raise TypeError(f"aad_prefix must be bytes or a numparq.PartPrefix, not {type(aad_prefix).__name__}")
    return aad_prefix


def check_retriever(retriever: Callable[[bytes], bytes] | None) -> Callable[[bytes], bytes] | None:
    """Return a function that finds keys; TypeError unless it is callable or None."""
    if retriever is not None and not callable(retriever):
        raise TypeError(f"key_retriever must be a function, not {type(retriever).__name__}")
    return retriever


def retrieved_key(retriever: Callable[[bytes], bytes], key_metadata: bytes) -> Key:
    """Return the key that a function finds for key metadata."""
    return _make_key(retriever(key_metadata), "the retrieved key")


def _path_of(name: ColumnPath) -> tuple[str, ...]:
    """Return a column's path; a name with dots is one item, which matches either meaning."""
    if isinstance(name, str):
        return (name,)
    if isinstance(name, tuple) and name and all(isinstance(item, str) for item in name):
        return name
    raise TypeError(f"column_keys must be named by str or tuples of str, not {name!r}")


def _make_key(value: bytes, name: str) -> Key:
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    try:
        return Key(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
