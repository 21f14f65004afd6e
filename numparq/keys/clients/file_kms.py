"""`FileKms`: master keys in a JSON file that its owner alone may read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from numparq.crypto.key import Key
from numparq.errors import DecryptionError
from numparq.keys.key_material import decode_base64
from numparq.keys.private_file import read_private
from numparq.keys.wrapping import unwrap_locally, wrap_locally
from numparq.typing import PathLike

if TYPE_CHECKING:
    from typing import NoReturn


class FileKms:
    """Wraps keys by master keys of a local file: for tests, and where a secret is mounted as a file.

    Parameters
    ----------
    path : str or os.PathLike
        JSON object of master keys by name, each 16, 24 or 32 bytes as base64 text, or a list of such texts: the first
        one wraps, all of them unwrap. The file is read once. If others than its owner may read it, it is refused.

    Raises
    ------
    PermissionError
        If others may read the file.
    ValueError
        If it holds anything else.

    Examples
    --------
    >>> import base64, json, os
    >>> with open("keys.json", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
    ...     json.dump({"staff": base64.b64encode(os.urandom(16)).decode()}, file)
    >>> from numparq.keys.clients import FileKms
    >>> FileKms("keys.json")
    FileKms('keys.json')
    """

    def __init__(self, path: PathLike) -> None:
        self._path = os.fsdecode(path)
        self._keys = _parse(read_private(self._path), self._path)

    def wrap_key(self, key: bytes, master_key_id: str) -> str:
        """Return a key, encrypted by a master key, as text.

        Parameters
        ----------
        key : bytes
            The key.
        master_key_id : str
            Name of the master key.

        Returns
        -------
        str
        """
        return wrap_locally(self._versions(master_key_id)[0], key, master_key_id.encode())

    def unwrap_key(self, wrapped_key: str, master_key_id: str) -> bytes:
        """Return the key that `wrap_key` encrypted.

        Parameters
        ----------
        wrapped_key : str
            What `wrap_key` returned.
        master_key_id : str
            Name of the master key.

        Returns
        -------
        bytes
        """
        *newer, oldest = self._versions(master_key_id)
        for version in newer:
            with suppress(DecryptionError):
                return unwrap_locally(version, wrapped_key, master_key_id.encode())
        return unwrap_locally(oldest, wrapped_key, master_key_id.encode())

    def _versions(self, master_key_id: str) -> list[Key]:
        if master_key_id not in self._keys:
            raise DecryptionError(f"{self._path!r} has no master key {master_key_id!r}")
        return self._keys[master_key_id]

    def __repr__(self) -> str:
        return f"FileKms({self._path!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FileKms has keys and cannot be pickled or copied")


def _parse(data: bytes, path: str) -> dict[str, list[Key]]:
    """Return the versions of each master key; errors show names only."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ValueError(f"the file of keys {path!r} is no JSON object")
    keys = {}
    for name, value in fields.items():
        versions = value if isinstance(value, list) else [value]
        if not versions or not all(isinstance(text, str) for text in versions):
            raise ValueError(f"key {name!r} of {path!r} must be a base64 text, or a list of them")
        try:
            keys[name] = [Key(decode_base64(text, "it")) for text in versions]
        except ValueError as error:
            raise ValueError(f"key {name!r} of {path!r}: {error}") from None
    return keys
