"""Keys in a JSON file that its owner alone may read, for the command line."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .direct import Decryption
from .encryption import Encryption
from .private_file import read_private

if TYPE_CHECKING:
    from numparq.typing import ColumnName, PathLike

# Fields of the file -> type of their values; keys and prefixes are texts.
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "footer_key": str,
    "column_keys": dict,
    "aad_prefix": str,
    "allow_plaintext_files": bool,
    "check_footer_integrity": bool,
    "algorithm": str,
    "plaintext_footer": bool,
    "store_aad_prefix": bool,
    "encrypt_other_columns": bool,
    "footer_key_metadata": str,
    "column_key_metadata": dict,
}
_READING = ("allow_plaintext_files", "check_footer_integrity")
_WRITING = ("algorithm", "plaintext_footer", "store_aad_prefix", "encrypt_other_columns")


class KeyFile:
    """A file of keys, read once.

    Parameters
    ----------
    path : str or os.PathLike
        JSON object. ``footer_key`` and ``column_keys``, an object by column, hold keys of 16, 24 or 32 bytes as base64
        text; ``aad_prefix`` is text. The other arguments of `numparq.Decryption` and `numparq.Encryption` may follow,
        with ``footer_key_metadata`` and ``column_key_metadata`` as text for ``key_metadata``.

    Raises
    ------
    PermissionError
        If others than the owner may use the file.
    ValueError
        If it holds anything else; no message quotes a value.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = os.fsdecode(path)
        self._fields = self._parse(read_private(self._path))

    def __repr__(self) -> str:
        return f"KeyFile({self._path!r})"

    def decryption(self) -> Decryption:
        """Return the keys for reading."""
        columns: dict[ColumnName, bytes] = {name: key for name, key in self._column_keys().items() if key is not None}
        return Decryption(self._footer_key(), columns, aad_prefix=self._aad_prefix(), **self._options(_READING))

    def encryption(self) -> Encryption:
        """Return the keys for writing."""
        footer_key = self._footer_key()
        if footer_key is None:
            raise self._fault("has no footer_key, which a file to write needs")
        columns = self._column_keys() if "column_keys" in self._fields else None
        metadata: dict[Any, bytes] = {
            name: self._text(value, f"column_key_metadata of {name!r}").encode()
            for name, value in self._fields.get("column_key_metadata", {}).items()
        }
        if "footer_key_metadata" in self._fields:
            metadata[None] = self._fields["footer_key_metadata"].encode()
        return Encryption(
            footer_key,
            columns,
            aad_prefix=self._aad_prefix(),
            key_metadata=metadata or None,
            **self._options(_WRITING),
        )

    def _parse(self, data: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError):
            raise self._fault("is no JSON") from None  # the parser's message quotes the file
        if not isinstance(fields, dict):
            raise self._fault("is no JSON object")
        for name, value in fields.items():
            if name not in _FIELDS:
                raise self._fault(f"has an unknown field; it may have {', '.join(_FIELDS)}")
            if not isinstance(value, _FIELDS[name]):
                raise self._fault(f"has {name} of a wrong type")
        return fields

    def _fault(self, reason: str) -> ValueError:
        return ValueError(f"the file of keys {self._path!r} {reason}")

    def _options(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: self._fields[name] for name in names if name in self._fields}

    def _aad_prefix(self) -> bytes | None:
        prefix = self._fields.get("aad_prefix")
        return None if prefix is None else prefix.encode()

    def _footer_key(self) -> bytes | None:
        key = self._fields.get("footer_key")
        return None if key is None else self._key(key, "footer_key")

    def _column_keys(self) -> dict[ColumnName, bytes | None]:
        keys: Mapping[str, Any] = self._fields.get("column_keys", {})
        return {
            name: None if key is None else self._key(key, f"the key of column {name!r}") for name, key in keys.items()
        }

    def _text(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise self._fault(f"has {name} that is no text")
        return value

    def _key(self, value: object, name: str) -> bytes:
        try:
            return base64.b64decode(self._text(value, name).encode("ascii"), validate=True)
        except (binascii.Error, UnicodeError):
            raise self._fault(f"has {name} that is no base64") from None
