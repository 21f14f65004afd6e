"""Keys of encrypted files, given directly, and those of the shared encrypted files."""

from __future__ import annotations

import os
from collections.abc import Mapping

from numparq.crypto.key import Key

FOOTER_KEY = b"0123456789012345"
COLUMN_KEYS = {"double_field": b"1234567890123450", "float_field": b"1234567890123451"}


class DirectKeys:
    """A KeySource of bytes: a footer key, and column keys by dotted path."""

    def __init__(
        self,
        footer_key: bytes | None = None,
        column_keys: Mapping[str, bytes] | None = None,
        *,
        aad_prefix: bytes | None = None,
        allow_plaintext_files: bool = False,
        check_footer_integrity: bool = True,
    ) -> None:
        self._footer_key = None if footer_key is None else Key(footer_key)
        self._column_keys = {path: Key(value) for path, value in (column_keys or {}).items()}
        self.aad_prefix = aad_prefix
        self.allow_plaintext_files = allow_plaintext_files
        self.check_footer_integrity = check_footer_integrity
        self.identity = os.urandom(16)

    def for_file(self, path: str | None, read_sibling: object) -> DirectKeys:
        return self

    def footer_key(self, key_metadata: bytes | None) -> Key | None:
        return self._footer_key

    def column_key(self, path: tuple[str, ...], key_metadata: bytes | None) -> Key | None:
        names = (".".join(path[:end]) for end in range(len(path), 0, -1))
        return next((self._column_keys[name] for name in names if name in self._column_keys), None)


def shared_keys(**options) -> DirectKeys:
    """Return the keys of the encrypted files of parquet-testing."""
    return DirectKeys(FOOTER_KEY, COLUMN_KEYS, **options)
