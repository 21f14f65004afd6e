"""Keys of modules, and the protocol of whoever has the keys of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .part_prefix import PartPrefix

KEY_BYTES = (16, 24, 32)
NAME_A_PROVIDER = "pass the name of a key provider instead of keys: 'package.module:attribute'"


class Key:
    """An AES key; it can neither be copied, pickled nor compared, and its `repr` has the size alone."""

    __slots__ = ("value",)

    def __init__(self, value: bytes) -> None:
        if len(value) not in KEY_BYTES:
            raise ValueError(f"a key must have 16, 24 or 32 bytes, not {len(value)}")
        if not any(value):
            raise ValueError("a key of zero bytes only is no key")
        self.value = value

    def __repr__(self) -> str:
        return f"<AES-{8 * len(self.value)} key>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("keys cannot be pickled or copied")

    def __eq__(self, other: object) -> bool:
        raise TypeError("keys cannot be compared")

    __hash__ = None  # type: ignore[assignment]


def check_named(keys: object, owner: str) -> None:
    """Raise TypeError if an owner of keys, named in the message, cannot be pickled or copied.

    The keys must be those of a provider (`numparq.keys.provider`), whose name is pickled and never a key.
    """
    if keys is not None and not getattr(keys, "are_named", False):
        raise TypeError(f"{owner} cannot be pickled or copied with its keys; {NAME_A_PROVIDER}")


class KeySource(Protocol):
    """Keys for the files of one read.

    Attributes
    ----------
    identity : bytes
        Bytes that differ between different keys, part of every key of a cache; no public function derives them.
    aad_prefix : bytes, PartPrefix or None
        AAD prefix that the files have.
    allow_plaintext_files : bool
        Whether files that are not encrypted are read as well.
    check_footer_integrity : bool
        Whether the signatures of plaintext footers are checked.
    """

    @property
    def identity(self) -> bytes:
        """Bytes that differ between different keys."""

    @property
    def aad_prefix(self) -> bytes | PartPrefix | None:
        """AAD prefix that the files have."""

    @property
    def allow_plaintext_files(self) -> bool:
        """Whether files that are not encrypted are read as well."""

    @property
    def check_footer_integrity(self) -> bool:
        """Whether the signatures of plaintext footers are checked."""

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        """Return the footer key; None if it is not known."""

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column by its path; None if it is not known."""

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> KeySource:
        """Return the keys of one file, called when it is opened.

        `read_sibling` returns a small file of the same folder by its name; None, as `path`, for bytes and file objects.
        """
