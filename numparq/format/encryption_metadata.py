"""How a file is encrypted (Encryption.md): mode, algorithm, AAD prefix, and metadata of the keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from numparq.util.pluralize import agree_noun

from .encryption import describe_key

_MAX_NAMES = 20


class ColumnEncryption(NamedTuple):
    """Key of an encrypted leaf column, by its name.

    Attributes
    ----------
    is_footer_key : bool
        Whether it is the footer key.
    key_metadata : bytes or None
        Metadata of a key of its own.
    """

    is_footer_key: bool
    key_metadata: bytes | None


@dataclass(frozen=True)
class EncryptionMetadata:
    """How a file is encrypted, as it says without keys.

    Attributes
    ----------
    has_encrypted_footer : bool
        Whether the footer is encrypted; a plaintext one is signed.
    algorithm : str
        ``"AES_GCM_V1"``, ``"AES_GCM_CTR_V1"``, or empty if it is unknown.
    footer_key_metadata : bytes or None
        Metadata of the footer key.
    aad_prefix : bytes or None
        AAD prefix, if the file stores it.
    needs_aad_prefix : bool
        Whether readers have to supply the AAD prefix.
    columns : dict of tuple of str to ColumnEncryption
        Encrypted leaf columns by path; empty if the footer is encrypted and its key is not known.
    """

    has_encrypted_footer: bool
    algorithm: str
    footer_key_metadata: bytes | None
    aad_prefix: bytes | None = None
    needs_aad_prefix: bool = False
    columns: Mapping[tuple[str, ...], ColumnEncryption] = field(default_factory=dict)

    def encrypts(self, column: str) -> bool:
        """Whether any leaf column of a column is encrypted.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        bool
        """
        return any(path[0] == column for path in self.columns)

    def describe(self) -> list[str]:
        """Return lines for a report: mode, algorithm and footer key, then the columns of each key."""
        mode = "encrypted footer" if self.has_encrypted_footer else "plaintext footer"
        line = (
            f"{mode}, {self.algorithm or 'an unknown algorithm'}, footer key: {describe_key(self.footer_key_metadata)}"
        )
        if self.aad_prefix is not None:
            line += f", AAD prefix {self.aad_prefix!r}"
        elif self.needs_aad_prefix:
            line += ", with an AAD prefix that it does not store"
        columns: dict[str, list[str]] = {}
        for path, key in self.columns.items():
            name = "with the footer key" if key.is_footer_key else describe_key(key.key_metadata)
            columns.setdefault(name, []).append(".".join(path))
        return [
            line,
            *(f"encrypted {agree_noun(len(names), 'column')}, {key}: {_list(names)}" for key, names in columns.items()),
        ]


def _list(names: list[str]) -> str:
    shortened = ", ".join(map(repr, names[:_MAX_NAMES]))
    return shortened if len(names) <= _MAX_NAMES else f"{shortened} and {len(names) - _MAX_NAMES:,} more"
