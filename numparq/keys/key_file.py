"""Keys in a JSON file that its owner alone may read, for the command line."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.crypto.key import Key

from .direct import Decryption
from .encryption import Encryption
from .private_file import read_private

if TYPE_CHECKING:
    from numparq.typing import ColumnName, PathLike

_Text = TypeVar("_Text")
_Decoded = TypeVar("_Decoded")
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
        self._options = self._parse(read_private(self._path))
        footer_key = self._options.pop("footer_key", None)
        columns: Mapping[str, object] | None = self._options.pop("column_keys", None)
        self._footer_key = None if footer_key is None else self._key(footer_key, "footer_key")
        self._column_keys: dict[str, Key | None] | None = None
        if columns is not None:
            self._column_keys = {
                name: None if key is None else self._key(key, f"the key of column {name!r}")
                for name, key in columns.items()
            }

    def __repr__(self) -> str:
        return f"KeyFile({self._path!r})"

    def decryption(self) -> Decryption:
        """Return the keys for reading."""
        columns: dict[ColumnName, bytes] = {
            name: key.value for name, key in (self._column_keys or {}).items() if key is not None
        }
        footer_key = None if self._footer_key is None else self._footer_key.value
        return Decryption(footer_key, columns, aad_prefix=self._aad_prefix, **self._choose(_READING))

    def encryption(self) -> Encryption:
        """Return the keys for writing."""
        if self._footer_key is None:
            raise self._fault("has no footer_key, which a file to write needs")
        columns: dict[ColumnName, bytes | None] | None = None
        if self._column_keys is not None:
            columns = {name: None if key is None else key.value for name, key in self._column_keys.items()}
        metadata: dict[Any, bytes] = {
            name: self._text(value, f"column_key_metadata of {name!r}").encode()
            for name, value in self._options.get("column_key_metadata", {}).items()
        }
        if "footer_key_metadata" in self._options:
            metadata[None] = self._options["footer_key_metadata"].encode()
        return Encryption(
            self._footer_key.value,
            columns,
            aad_prefix=self._aad_prefix,
            key_metadata=metadata or None,
            **self._choose(_WRITING),
        )

    def _parse(self, data: bytes) -> dict[str, Any]:
        fields = _decode(json.loads, data)
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

    def _choose(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the options of those names."""
        return {name: self._options[name] for name in names if name in self._options}

    @property
    def _aad_prefix(self) -> bytes | None:
        prefix = self._options.get("aad_prefix")
        return None if prefix is None else prefix.encode()

    def _text(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise self._fault(f"has {name} that is no text")
        return value

    def _key(self, value: object, name: str) -> Key:
        decoded = _decode(partial(base64.b64decode, validate=True), self._text(value, name))
        if decoded is None:
            raise self._fault(f"has {name} that is no base64")
        try:
            return Key(decoded)
        except ValueError as error:
            raise self._fault(f"has {name} that is no key: {error}") from None


def _decode(decode: Callable[[_Text], _Decoded], text: _Text) -> _Decoded | None:
    """Return decoded text, or None if it is malformed; its errors hold the text, so none becomes a context."""
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return None
