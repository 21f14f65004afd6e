"""Keys of one file: a key source bound to the file's path, by which it finds key material stored outside the file."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from numparq.io.sibling_bytes import read_sibling

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource
    from numparq.typing import FileSystem, StorageOptions


def bind_keys(
    keys: KeySource, path: object, storage_options: StorageOptions = None, filesystem: FileSystem = None
) -> KeySource:
    """Return the keys of the file of a path; those of bytes and file objects have no folder to read from."""
    if not isinstance(path, (str, os.PathLike)):
        return keys.for_file(None, None)
    name = os.fsdecode(path)
    return keys.for_file(name, partial(read_sibling, name, storage_options, filesystem))
