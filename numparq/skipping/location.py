"""Location of a store, and names of the files of a dataset in it: table identifier, folder, object ids."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from numparq.io.filesystem import protocols, strip_file_scheme
from numparq.typing import FileSystem

if TYPE_CHECKING:
    from numparq.dataset.listing.files import DataFile

_BUCKETS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "cos")


def table_identifier(uri: str) -> str:
    """Return the table identifier of a dataset's URI or path: its decoded path, without trailing slash."""
    if "://" not in uri:
        return os.path.abspath(strip_file_scheme(uri)).replace(os.sep, "/")
    path = uri.partition("://")[2]
    inside = unquote("/" + path.partition("/")[2]) if not uri.startswith("file:///") else unquote(path)
    return inside.rstrip("/") or "/"


def store_folder(base: str, identifier: str) -> str:
    """Return the folder of a dataset's store below a base."""
    return f"{base.rstrip('/')}/{hashlib.sha256(identifier.encode()).hexdigest()}"


def object_path(path: str, filesystem: FileSystem) -> str:
    """Return the path of a listed file as object names have it: absolute, without scheme and host or bucket."""
    if filesystem is None:
        return os.path.abspath(path).replace(os.sep, "/")
    if _has_buckets(filesystem):
        return "/" + path.lstrip("/").partition("/")[2]
    return path if path.startswith("/") else f"/{path}"


def bucket_of(path: str, filesystem: FileSystem) -> str:
    """Return the bucket of a path on an object store; "" on other file systems."""
    return path.lstrip("/").partition("/")[0] if _has_buckets(filesystem) else ""


def _has_buckets(filesystem: FileSystem) -> bool:
    if filesystem is None:
        return False
    kinds = (filesystem.type_name,) if hasattr(filesystem, "type_name") else protocols(filesystem)
    return any(kind in _BUCKETS for kind in kinds)


def object_ids(files: Sequence[DataFile], filesystem: FileSystem) -> tuple[list[str | None], list[int]]:
    """Return the current id of each file, and the time of its last change in nanoseconds (0 if that is not known).

    An id is the path, ``#``, and the modification time in milliseconds. A file that is gone, or whose time is not
    known, has none.
    """
    ids: list[str | None] = []
    changes: list[int] = []
    folders: dict[str, str] = {}
    for file in files:
        folder, _, name = file.path.rpartition("/")
        if folder not in folders:
            folders[folder] = object_path(file.path, filesystem).removesuffix(name)
        path, changed = folders[folder] + name, 0
        if filesystem is None:
            try:
                status = os.stat(file.path)
            except OSError:
                ids.append(None)
                changes.append(0)
                continue
            milliseconds, changed = status.st_mtime_ns // 10**6, status.st_ctime_ns
        elif file.modified is None:
            ids.append(None)
            changes.append(0)
            continue
        else:
            milliseconds = int(file.modified * 1000 + 1e-3)  # a float of seconds is off by less than a microsecond
        ids.append(f"{path}#{milliseconds}")
        changes.append(changed)
    return ids, changes
