"""Modes of encrypted files to write: algorithm, footer, AAD prefix, columns without a name."""

from __future__ import annotations

from dataclasses import dataclass

from numparq.crypto.part_prefix import PartPrefix
from numparq.util.arguments import check_flag

ALGORITHMS = ("AES_GCM_V1", "AES_GCM_CTR_V1")


@dataclass(frozen=True)
class EncryptionModes:
    """Checked modes, which are those of `numparq.Encryption`."""

    algorithm: str
    plaintext_footer: bool
    aad_prefix: bytes | PartPrefix | None
    store_aad_prefix: bool
    encrypt_other_columns: bool
    has_column_keys: bool

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, not {self.algorithm!r}")
        for name in ("plaintext_footer", "store_aad_prefix", "encrypt_other_columns"):
            check_flag(getattr(self, name), name)
        prefix = self.aad_prefix
        if not (prefix is None or isinstance(prefix, PartPrefix) or (isinstance(prefix, bytes) and prefix)):
            raise TypeError("aad_prefix must be bytes, at least one, a numparq.PartPrefix, or None")
        if self.encrypt_other_columns and not self.has_column_keys:
            raise ValueError("encrypt_other_columns needs column_keys; without them all columns are encrypted")

    @property
    def encrypts_others(self) -> bool:
        """Whether columns that no name covers are encrypted with the footer key."""
        return self.encrypt_other_columns or not self.has_column_keys

    def describe(self) -> list[str]:
        """Return the modes that are not the default, for a `repr`."""
        parts = [] if self.aad_prefix is None else [f"aad_prefix={self.aad_prefix!r}"]
        return parts + ["plaintext_footer=True"] * bool(self.plaintext_footer)
