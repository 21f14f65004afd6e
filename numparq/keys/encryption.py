"""`Encryption`: keys given directly, for files to write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from numparq.crypto.key import NAME_A_PROVIDER, Key
from numparq.crypto.part_prefix import PartPrefix
from numparq.format.file_encryption import FileKeys, ModuleKey
from numparq.typing import ColumnName
from numparq.util.pluralize import pluralize

from .direct import Decryption
from .encryption_modes import EncryptionModes
from .leaf_keys import covers, match_leaves


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
        self._modes = EncryptionModes(
            algorithm, plaintext_footer, aad_prefix, store_aad_prefix, encrypt_other_columns, column_keys is not None
        )
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
        return f"Encryption({', '.join(parts + self._modes.describe())})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(f"keys cannot be pickled or copied; {NAME_A_PROVIDER}")

    def as_decryption(self) -> Decryption:
        """Return the same keys for reading, plaintext files allowed: commits compare existing files with new ones."""
        column_keys = {name: each.key.value for name, each in self._columns.items() if not each.is_footer_key}
        return Decryption(
            self._footer.key.value, column_keys, aad_prefix=self._modes.aad_prefix, allow_plaintext_files=True
        )

    def may_encrypt(self, column: str) -> bool:
        """Whether a column, or any leaf column of it, may be encrypted."""
        return self._modes.encrypts_others or covers(self._columns, column)

    def file_keys(
        self, paths: Sequence[tuple[str, ...]], material_names: Callable[[], Collection[str]] | None = None
    ) -> FileKeys:
        """Return the keys of a file with these leaf columns; SchemaError for a name that matches none.

        Parameters
        ----------
        paths : sequence of tuple of str
            Paths of the leaf columns.
        material_names : callable, optional
            Function that returns names in the file of key material that are in use; None: no such file can be written.

        Returns
        -------
        FileKeys
        """
        other = self._footer if self._modes.encrypts_others else None
        names = match_leaves(self._columns, paths)
        leaves = [other if name is None else self._columns[name] for name in names]
        return FileKeys(
            self._modes.algorithm,
            self._modes.plaintext_footer,
            self._modes.aad_prefix,
            self._modes.store_aad_prefix,
            self._footer,
            leaves,
        )


def _make_key(value: object, name: str) -> Key:
    """Return a key; errors name the argument and never its value."""
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    try:
        return Key(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
