"""Keys of a salvage: those of the damaged file, and those of the new one, which is read back with its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from numparq.errors import UnsupportedError

if TYPE_CHECKING:
    from numparq.crypto.key import Key, KeySource
    from numparq.format.encryption_metadata import EncryptionMetadata
    from numparq.format.file_encryption import FileKeys
    from numparq.typing import EncryptionKeys


@dataclass(frozen=True)
class SalvageKeys:
    """Keys and their arguments in `salvage`, checked.

    Attributes
    ----------
    decryption : KeySource or None
        Keys of the damaged file.
    encryption : EncryptionKeys or None
        Keys of the new file.
    plaintext_output : bool
        Whether the new file of an encrypted one may be plain.
    """

    decryption: KeySource | None = None
    encryption: EncryptionKeys | None = None
    plaintext_output: bool = False

    def must_rewrite(self, encryption: EncryptionMetadata | None) -> bool:
        """Whether the new file needs pages of its own, given how the damaged file is encrypted.

        Pages of an encrypted file belong to their place in it, so they cannot be copied. Raise ValueError if nothing
        tells whether to encrypt the new file.
        """
        if encryption is None:
            return self.encryption is not None
        if self.encryption is None and not self.plaintext_output:
            raise ValueError(
                "the file is encrypted; pass encryption= with keys for the new file, or plaintext_output=True"
            )
        return True

    def check_missing_footer(self) -> None:
        """Raise UnsupportedError if the new file of a plain one without a footer is to be encrypted."""
        if self.encryption is not None:
            raise UnsupportedError(
                "pages of a file without a footer are copied as they are: salvage it without encryption=, then write "
                "what was saved with encryption="
            )


class WrittenKeys:
    """Keys with which a file is written; they read it back."""

    allow_plaintext_files, check_footer_integrity = False, True

    def __init__(self, keys: EncryptionKeys) -> None:
        self._keys = keys
        self._file: FileKeys | None = None
        self._leaf_keys: dict[tuple[str, ...], Key] = {}
        self.identity = os.urandom(32)

    def __repr__(self) -> str:
        return f"WrittenKeys({self._keys!r})"

    def may_encrypt(self, column: str) -> bool:
        """Whether a column, or any leaf column of it, may be encrypted."""
        return self._keys.may_encrypt(column)

    def file_keys(
        self, paths: Sequence[tuple[str, ...]], material_names: Callable[[], Collection[str]] | None = None
    ) -> FileKeys:
        """Return the keys of a file with these leaf columns, which read it back."""
        keys = self._file = self._keys.file_keys(paths, material_names)
        self._leaf_keys = {path: leaf.key for path, leaf in zip(paths, keys.leaves, strict=True) if leaf is not None}
        self.identity = os.urandom(32)
        return keys

    @property
    def aad_prefix(self) -> bytes | None:
        """AAD prefix of the file."""
        return None if self._file is None else cast("bytes | None", self._file.aad_prefix)

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        """Return the footer key."""
        return None if self._file is None else self._file.footer.key

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        """Return the key of a leaf column."""
        return self._leaf_keys.get(path)

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> WrittenKeys:
        """Return itself: it belongs to one file."""
        return self
