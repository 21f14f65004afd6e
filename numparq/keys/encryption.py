"""`Encryption`: keys given directly, for files to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numparq.crypto.key import Key
from numparq.crypto.part_prefix import PartPrefix
from numparq.errors import SchemaError
from numparq.format.file_encryption import FileKeys, ModuleKey
from numparq.typing import ColumnName
from numparq.util.arguments import check_flag, did_you_mean
from numparq.util.pluralize import pluralize

ALGORITHMS = ("AES_GCM_V1", "AES_GCM_CTR_V1")


class Encryption:
    """Keys and modes of encrypted files to write.

    Parameters
    ----------
    footer_key : bytes
        Key of the footer, of 16, 24 or 32 bytes.
    column_keys : dict of str or tuple of str to bytes, optional
        Keys by column: the path of a leaf column, or the beginning of one, which covers all leaf columns below; the
        longest match counts. None as a key is the footer key. By default all columns are encrypted with the footer key.
    algorithm : {"AES_GCM_V1", "AES_GCM_CTR_V1"}
        ``"AES_GCM_CTR_V1"`` leaves pages unauthenticated.
    plaintext_footer : bool
        Whether the footer is signed but not encrypted, so that readers without keys read the columns that are plain.
    aad_prefix : bytes or PartPrefix, optional
        Identity of the file, or of each part of a dataset, which readers can check.
    store_aad_prefix : bool
        Whether the file stores the prefix; if not, readers have to supply it.
    key_metadata : bytes or dict, optional
        By what readers find the keys: bytes for the footer key, or a dict by column (None: the footer).
    encrypt_other_columns : bool
        Whether columns that `column_keys` does not name are encrypted with the footer key; otherwise they stay plain.

    Notes
    -----
    A key seals at most 2**32 modules. The count is this process's own: prefer a new key for each file.

    Examples
    --------
    >>> import os, pandas, numparq
    >>> encryption = numparq.Encryption(os.urandom(16), {"salary": os.urandom(16)}, plaintext_footer=True)
    >>> data = numparq.to_parquet(pandas.DataFrame({"name": ["A"], "salary": [7]}), encryption=encryption)
    >>> encryption
    Encryption(footer key, 1 column key, plaintext_footer=True)
    """

    def __init__(
        self,
        footer_key: bytes,
        column_keys: Mapping[ColumnName, bytes | None] | None = None,
        *,
        algorithm: str = "AES_GCM_V1",
        plaintext_footer: bool = False,
        aad_prefix: bytes | PartPrefix | None = None,
        store_aad_prefix: bool = True,
        key_metadata: bytes | Mapping[ColumnName | None, bytes] | None = None,
        encrypt_other_columns: bool = False,
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, not {algorithm!r}")
        check_flag(plaintext_footer, "plaintext_footer")
        check_flag(store_aad_prefix, "store_aad_prefix")
        check_flag(encrypt_other_columns, "encrypt_other_columns")
        if not (
            aad_prefix is None or isinstance(aad_prefix, PartPrefix) or (isinstance(aad_prefix, bytes) and aad_prefix)
        ):
            raise TypeError("aad_prefix must be bytes, at least one, a numparq.PartPrefix, or None")
        if encrypt_other_columns and column_keys is None:
            raise ValueError("encrypt_other_columns needs column_keys; without them all columns are encrypted")
        self._algorithm, self._plaintext_footer = algorithm, bool(plaintext_footer)
        self._aad_prefix, self._store_aad_prefix = aad_prefix, bool(store_aad_prefix)
        self._others = bool(encrypt_other_columns) or column_keys is None
        metadata: dict[ColumnName | None, bytes | None]
        metadata = {**key_metadata} if isinstance(key_metadata, Mapping) else {None: key_metadata}
        keys = dict(column_keys or {})
        for name, value in metadata.items():
            if value is not None and not isinstance(value, bytes):
                raise TypeError(f"key_metadata must be bytes, or a dict of bytes, not {type(value).__name__}")
            if name is not None and name not in keys:
                raise ValueError(f"key_metadata names {name!r}, which has no key in column_keys")
        self._footer = ModuleKey(_make_key(footer_key, "footer_key"), metadata.get(None), True)
        self._columns = {
            name: self._footer
            if key is None
            else ModuleKey(_make_key(key, f"column_keys[{name!r}]"), metadata.get(name), False)
            for name, key in keys.items()
        }

    def __repr__(self) -> str:
        parts = ["footer key"]
        if self._columns:
            parts.append(pluralize(len(self._columns), "column key"))
        if self._aad_prefix is not None:
            parts.append(f"aad_prefix={self._aad_prefix!r}")
        if self._plaintext_footer:
            parts.append("plaintext_footer=True")
        return f"Encryption({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "an Encryption has keys and cannot be pickled or copied; pass the name of a key provider instead: "
            "encryption='package.module:attribute'"
        )

    def may_encrypt(self, column: str) -> bool:
        """Whether a column, or any leaf column of it, may be encrypted."""
        names = [name if isinstance(name, str) else ".".join(name) for name in self._columns]
        return self._others or any(
            f"{name}.".startswith(f"{column}.") or f"{column}.".startswith(f"{name}.") for name in names
        )

    def file_keys(self, paths: Sequence[tuple[str, ...]]) -> FileKeys:
        """Return the keys of a file with these leaf columns; SchemaError for a name that matches none."""
        unmatched, leaves = set(self._columns), []
        for path in paths:
            names = [name for end in range(len(path), 0, -1) for name in (path[:end], ".".join(path[:end]))]
            matches = [name for name in names if name in self._columns]
            unmatched.difference_update(matches)
            leaves.append(self._columns[matches[0]] if matches else self._footer if self._others else None)
        if unmatched:
            name = min(unmatched, key=str)
            known = dict.fromkeys(".".join(path[:end]) for path in paths for end in range(1, len(path) + 1))
            raise SchemaError(f"column_keys names {name!r}, which is no column{did_you_mean(name, known)}")
        return FileKeys(
            self._algorithm, self._plaintext_footer, self._aad_prefix, self._store_aad_prefix, self._footer, leaves
        )


def _make_key(value: object, name: str) -> Key:
    """Return a key; errors name the argument and never its value."""
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    try:
        return Key(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
