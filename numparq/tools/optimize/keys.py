"""Keys of a rewrite: those of the files that it reads, of the files that it writes, and of these before the commit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from numparq.keys.provider import as_encryption_keys, as_key_source, check_provider_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numparq.crypto.key import KeySource
    from numparq.typing import EncryptionKeys

    from .layout import FileLayout


class StagedFileKeys:
    """Keys of files that are not in their place yet: an AAD prefix by path is taken as the files store it."""

    __slots__ = ("_keys",)
    aad_prefix = None

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("__") or attribute == "_keys":
            raise AttributeError(attribute)
        return getattr(self._keys, attribute)

    @property
    def identity(self) -> bytes:
        """Bytes that differ between keys, and from those of the keys themselves, which check the prefix."""
        return hashlib.sha256(self._keys.identity + b"staged").digest()

    def for_file(self, path: str | None, read_sibling: Callable[[str], bytes] | None) -> StagedFileKeys:
        """Return the keys of one file."""
        return StagedFileKeys(self._keys.for_file(path, read_sibling))

    def __repr__(self) -> str:
        return f"StagedFileKeys({self._keys!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return StagedFileKeys, (self._keys,)


@dataclass(frozen=True)
class RewriteKeys:
    """Keys of a rewrite, by the names of their providers.

    Attributes
    ----------
    decryption : KeySource or None
        Keys of the files to replace.
    encryption : EncryptionKeys or None
        Keys of the new files.
    plaintext_output : bool
        Whether the new files of encrypted ones may be plain.
    """

    decryption: KeySource | None = None
    encryption: EncryptionKeys | None = None
    plaintext_output: bool = False

    @classmethod
    def from_names(cls, decryption: str | None, encryption: str | None, plaintext_output: bool) -> RewriteKeys:
        """Return the keys that providers give; TypeError for keys themselves, which do not travel."""
        if encryption is not None and plaintext_output:
            raise ValueError("encryption= and plaintext_output=True exclude each other")
        names = {"decryption": decryption, "encryption": encryption}
        for argument, name in names.items():
            if name is not None:
                check_provider_name(name, argument)
        return cls(as_key_source(decryption), as_encryption_keys(encryption), plaintext_output)

    def check(self, files: Iterable[FileLayout]) -> None:
        """Raise ValueError if nothing tells whether the new files of encrypted ones are encrypted."""
        if self.encryption is None and not self.plaintext_output and any(file.is_encrypted for file in files):
            raise ValueError(
                "files are encrypted; pass encryption= with keys for the new files, or plaintext_output=True"
            )

    def suits(self, files: Iterable[FileLayout]) -> bool:
        """Whether files are encrypted if the new ones are to be, and plain if not."""
        return all(file.is_encrypted == (self.encryption is not None) for file in files)

    def staged(self) -> KeySource | None:
        """Return the keys with which new files are read before the commit; None: they are plain."""
        if self.encryption is None:
            return None
        as_decryption = getattr(self.encryption, "as_decryption", None)
        keys = self.decryption if as_decryption is None else as_decryption()
        if keys is None:
            raise ValueError(
                "the new files are read again before the commit: pass decryption= with keys that read them, too"
            )
        return cast("KeySource", StagedFileKeys(keys))
