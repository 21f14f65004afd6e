"""`KmsEncryption`: new keys for each file to write, wrapped by a KMS."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

from numparq.crypto.key import NAME_A_PROVIDER, Key
from numparq.crypto.part_prefix import PartPrefix
from numparq.errors import UnsupportedError
from numparq.format.file_encryption import FileKeys, ModuleKey
from numparq.typing import ColumnName
from numparq.util.arguments import check_flag, check_list, check_seconds
from numparq.util.pluralize import pluralize

from .client import KmsClient, check_client, describe_client
from .encryption_modes import EncryptionModes
from .key_material import KeyMaterial, KeyReference
from .kms_decryption import KmsDecryption
from .leaf_keys import covers, match_leaves
from .material_file import FOOTER_KEY
from .wrapping import Wrapper

if TYPE_CHECKING:
    from typing import NoReturn

KEY_LENGTHS = (128, 192, 256)


class KmsEncryption:
    """Writes encrypted files with new keys for each file, which a key management system (KMS) wraps by master keys.

    The footer and each encrypted leaf column get a random key of their own. The wrapped keys travel with the file, in
    the form of pyarrow's and parquet-java's key tools (PKMT1).

    Parameters
    ----------
    client : KmsClient
        Client of the KMS.
    footer_key : str
        Name of the master key of the footer, and of columns that are encrypted without one of their own.
    column_keys : dict of str to list, optional
        Columns by the name of their master key. A column is named as in `Encryption`. By default all columns are
        encrypted with the footer key.
    double_wrapping : bool, default True
        Whether keys are wrapped by key encryption keys, which the KMS wraps: that takes one call for each master key
        and lifetime, otherwise one for each key.
    internal_key_material : bool, default True
        Whether the wrapped keys are stored in the file, otherwise in ``_KEY_MATERIAL_FOR_<name>.json`` next to it,
        where `rotate_master_keys` can replace them. That needs a path.
    data_key_length_bits : {128, 192, 256}
        Length of the keys of footers and columns.
    cache_lifetime : float, default 600
        Seconds for which a key encryption key is used.
    algorithm, plaintext_footer, aad_prefix, store_aad_prefix, encrypt_other_columns
        As in `Encryption`.

    Notes
    -----
    Threads may share it; it can be neither pickled nor copied.

    Examples
    --------
    >>> import numparq
    >>> from numparq.keys.clients import VaultKms
    >>> kms = VaultKms("https://vault.example:8200", token="s.1234")
    >>> numparq.KmsEncryption(kms, "staff", {"payroll": ["salary"]}, plaintext_footer=True)
    KmsEncryption(VaultKms('https://vault.example:8200'), footer_key='staff', 1 column key, plaintext_footer=True)
    """

    def __init__(
        self,
        client: KmsClient,
        footer_key: str,
        column_keys: Mapping[str, Sequence[ColumnName]] | None = None,
        *,
        double_wrapping: bool = True,
        internal_key_material: bool = True,
        data_key_length_bits: int = 128,
        cache_lifetime: float = 600,
        algorithm: str = "AES_GCM_V1",
        plaintext_footer: bool = False,
        aad_prefix: bytes | PartPrefix | None = None,
        store_aad_prefix: bool = True,
        encrypt_other_columns: bool = False,
    ) -> None:
        check_client(client)
        check_flag(double_wrapping, "double_wrapping")
        self._is_internal = check_flag(internal_key_material, "internal_key_material")
        if data_key_length_bits not in KEY_LENGTHS:
            raise ValueError(f"data_key_length_bits must be 128, 192 or 256, not {data_key_length_bits!r}")
        self._modes = EncryptionModes(
            algorithm, plaintext_footer, aad_prefix, store_aad_prefix, encrypt_other_columns, column_keys is not None
        )
        self._client, self._key_bytes = client, data_key_length_bits // 8
        self._footer_key = _check_master_key(footer_key, "footer_key")
        self._master_keys = _master_keys(column_keys or {})
        self._wrapper = Wrapper(client, check_seconds(cache_lifetime, "cache_lifetime"), bool(double_wrapping))

    def __repr__(self) -> str:
        parts = [describe_client(self._client), f"footer_key={self._footer_key!r}"]
        if self._master_keys:
            parts.append(pluralize(len({*self._master_keys.values()}), "column key"))
        return f"KmsEncryption({', '.join(parts + self._modes.describe())})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"keys cannot be pickled or copied; {NAME_A_PROVIDER}")

    def as_decryption(self) -> KmsDecryption:
        """Return the same KMS for reading, plaintext files allowed: commits compare existing files with new ones."""
        return KmsDecryption(self._client, aad_prefix=self._modes.aad_prefix, allow_plaintext_files=True)

    def may_encrypt(self, column: str) -> bool:
        """Whether a column, or any leaf column of it, may be encrypted."""
        return self._modes.encrypts_others or covers(self._master_keys, column)

    def file_keys(
        self, paths: Sequence[tuple[str, ...]], material_names: Callable[[], Collection[str]] | None = None
    ) -> FileKeys:
        """Return new keys of a file with these leaf columns; SchemaError for a name that matches none.

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
        if self._is_internal:
            return self._make_keys(paths, lambda name, material: material.to_json(is_internal=True).encode())
        if material_names is None:
            raise UnsupportedError(
                "internal_key_material=False stores keys in a file next to the data file: write to a path or a "
                "dataset, not into memory or a file object"
            )
        names, entries = {*material_names()}, dict[str, str]()

        def store(name: str, material: KeyMaterial) -> bytes:
            name = _unused_name(name, names)
            entries[name] = material.to_json(is_internal=False)
            return KeyReference(name).to_json().encode()

        return self._make_keys(paths, store)._replace(material=entries)

    def _make_keys(
        self, paths: Sequence[tuple[str, ...]], key_metadata: Callable[[str, KeyMaterial], bytes]
    ) -> FileKeys:
        """Return new keys; `key_metadata` returns those of a key's name and material."""
        names = match_leaves(self._master_keys, paths)
        footer = self._make_key(self._footer_key, FOOTER_KEY, key_metadata)
        other, number = footer if self._modes.encrypts_others else None, count()
        leaves = [
            other if name is None else self._make_key(self._master_keys[name], f"columnKey{next(number)}", key_metadata)
            for name in names
        ]
        return FileKeys(
            self._modes.algorithm,
            self._modes.plaintext_footer,
            self._modes.aad_prefix,
            self._modes.store_aad_prefix,
            footer,
            leaves,
        )

    def _make_key(self, master_key_id: str, name: str, key_metadata: Callable[[str, KeyMaterial], bytes]) -> ModuleKey:
        key, is_footer_key = Key(os.urandom(self._key_bytes)), name == FOOTER_KEY
        material = self._wrapper.wrap(key, master_key_id, is_footer_key)
        return ModuleKey(key, key_metadata(name, material), is_footer_key)


def _master_keys(column_keys: Mapping[str, Sequence[ColumnName]]) -> dict[ColumnName, str]:
    """Return the master key of each column."""
    columns: dict[ColumnName, str] = {}
    for master_key, names in column_keys.items():
        _check_master_key(master_key, "column_keys")
        for name in check_list(names, f"column_keys[{master_key!r}]"):
            if name in columns:
                raise ValueError(f"column_keys names column {name!r} twice")
            columns[name] = master_key
    return columns


def _check_master_key(name: object, argument: str) -> str:
    if not isinstance(name, str) or not name:
        kind = "an empty text" if name == "" else f"a {type(name).__name__}"
        raise TypeError(f"{argument} must name master keys of the KMS by str, not by {kind}")
    return name


def _unused_name(name: str, used: Collection[str]) -> str:
    """Return a name that the key material of a replaced file has not."""
    return next(each for each in chain([name], (f"{name}-{number}" for number in count(1))) if each not in used)
