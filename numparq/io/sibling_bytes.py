"""Small files in the folder of another file, on any file system."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from numparq.errors import LimitError
from numparq.util.pluralize import pluralize

from .filesystem import is_url, strip_file_scheme
from .open import open_source
from .replaced_files import find_replaced_file
from .source import Source, read_bytes

if TYPE_CHECKING:
    from numparq.typing import FileSystem, StorageOptions

MAX_SIBLING_BYTES = 16 << 20


def base_name(path: str) -> str:
    """Return the last part of a path or URL."""
    return path[_folder_end(path) :]


def sibling_path(path: str, name: str) -> str:
    """Return the path or URL of a file `name` in the folder of another."""
    return path[: _folder_end(path)] + name


def real_path(path: str) -> str:
    """Return a local path with its symbolic links resolved; URLs stay."""
    return path if is_url(path) else os.path.realpath(os.path.expanduser(strip_file_scheme(path)))


def read_sibling(path: str, storage_options: StorageOptions, filesystem: FileSystem, name: str) -> bytes:
    """Return a small file in the folder of another; FileNotFoundError if there is none.

    A local path may be a symbolic link: a file that is named after the one that it leads to, and next to it, will do.
    So will a file that a commit has replaced, as long as it is kept.
    """
    try:
        return read_small_file(sibling_path(path, name), storage_options, filesystem)
    except FileNotFoundError:
        if filesystem is not None or is_url(path):
            raise
        if os.path.islink(path):
            real = real_path(path)
            path, name = real, name.replace(base_name(path), base_name(real))
        replaced = find_replaced_file(sibling_path(path, name))
        return read_small_file(replaced or sibling_path(path, name), storage_options, filesystem)


def read_small_file(path: str, storage_options: StorageOptions, filesystem: FileSystem) -> bytes:
    """Return the bytes of a file; LimitError for more than MAX_SIBLING_BYTES."""
    with closing(open_source(path, storage_options, filesystem)) as source:
        return read_small_source(source)


def read_small_source(source: Source) -> bytes:
    """Return the bytes of an open file; LimitError for more than MAX_SIBLING_BYTES."""
    if source.size > MAX_SIBLING_BYTES:
        size = pluralize(source.size, "byte")
        raise LimitError(f"it has {size}, the most is {MAX_SIBLING_BYTES:,}", file=source.name)
    return read_bytes(source, 0, source.size)


def _folder_end(path: str) -> int:
    return max(path.rfind("/"), path.rfind(os.sep)) + 1
