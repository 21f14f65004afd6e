"""Resolve paths and URLs to a file system, local, fsspec or pyarrow, and paths on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numparq.typing import PathLike, StorageOptions


class ResolvedPaths(NamedTuple):
    """Paths on one file system.

    Attributes
    ----------
    filesystem : fsspec or pyarrow file system, or None
        None is the local file system.
    paths : list of str
        Paths as that file system opens them.
    display_name : callable
        Function from such a path to its name in messages.
    """

    filesystem: Any | None
    paths: list[str]
    display_name: Callable[[str], str]


def resolve_paths(paths: Sequence[PathLike], storage_options: StorageOptions, filesystem: Any) -> ResolvedPaths:
    """Return the one file system of all paths or URLs, and their paths on it.

    Raises TypeError or ValueError for other arguments or several file systems, ImportError for URLs without fsspec.
    """
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a list of files must hold paths or URLs, not {type(path).__name__}")
    names = [os.fsdecode(path) for path in paths]
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options cannot be combined with filesystem, which has its own")
        return _on_filesystem(filesystem, names, str)
    names = [strip_file_scheme(name) for name in names]
    urls = list(map(is_url, names))
    if not any(urls):
        if storage_options:
            raise ValueError(f"storage_options need a URL, but {names[0]!r} is a local path")
        return _local(names)
    if not all(urls):
        raise ValueError(
            f"the files of a dataset must be on one file system, but {names[urls.index(True)]!r} is a URL and "
            f"{names[urls.index(False)]!r} is a local path"
        )
    return _on_filesystem(*_behind_urls(names, storage_options or {}))


def is_url(name: str) -> bool:
    """Whether a path is a URL of another scheme than ``file:``."""
    return "://" in name and not name.startswith("file:")


def strip_file_scheme(name: str) -> str:
    """Return a path without the scheme of local files: ``file:///data``, or Hadoop's ``file:/data``."""
    if name.startswith("file://"):
        return name.removeprefix("file://")
    return name.removeprefix("file:") if name.startswith("file:/") else name


def _local(paths: list[str]) -> ResolvedPaths:
    paths = [os.path.expanduser(path) for path in paths]
    return ResolvedPaths(None, [path.replace(os.sep, "/") for path in paths] if os.sep != "/" else paths, str)


def url_to_filesystem(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return fsspec's file system of a URL such as ``s3://bucket/key``, and the path on it.

    ImportError if fsspec or its driver is missing.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"{url} is a URL and needs fsspec: pip install 'numparq[fsspec]'") from None
    filesystem, path = url_to_fs(url, **options)
    return filesystem, path


def protocols(filesystem: Any) -> tuple[str, ...]:
    """Return the protocols of a file system of fsspec."""
    protocol = getattr(filesystem, "protocol", ())
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def innermost_filesystem(filesystem: Any, paths: list[str]) -> tuple[Any | None, list[str]]:
    """Return the file system inside the wrappers of one, None if it is the local one, and the paths on it."""
    if hasattr(filesystem, "type_name"):  # of pyarrow
        if filesystem.type_name == "local":
            return None, [filesystem.normalize_path(path) for path in paths]
        inner = _inside_arrow(filesystem)
    else:
        inner = getattr(filesystem, "fs", None)
        inner = inner if hasattr(inner, "open_input_file") else None  # fsspec's wrapper of a pyarrow file system
        if inner is not None or "file" in protocols(filesystem):
            paths = [filesystem._strip_protocol(path) for path in paths]
        if inner is None and "file" in protocols(filesystem):
            return None, paths
    return (filesystem, paths) if inner is None else innermost_filesystem(inner, paths)


def _inside_arrow(filesystem: Any) -> Any | None:
    """Return the fsspec file system that a pyarrow one wraps, or None.

    pyarrow's wrapper moves and deletes by names in which fsspec expands ``*``, ``?`` and ``[``.
    """
    if filesystem.type_name != "subtree":
        return getattr(getattr(filesystem, "handler", None), "fs", None)
    base = _inside_arrow(filesystem.base_fs)
    if base is None:
        return None
    from fsspec.implementations.dirfs import DirFileSystem

    return DirFileSystem(filesystem.base_path.rstrip("/"), base)


def _behind_urls(urls: list[str], options: Mapping[str, Any]) -> tuple[Any, list[str], Callable[[str], str]]:
    filesystem, first = url_to_filesystem(urls[0], options)
    paths = [first]
    for url in urls[1:]:
        another, path = url_to_filesystem(url, options)
        if another is not filesystem and another != filesystem:
            raise ValueError(
                f"the files of a dataset must be on one file system, but {urls[0]!r} and {url!r} are on two"
            )
        paths.append(path)
    return filesystem, paths, str if any("::" in url for url in urls) else filesystem.unstrip_protocol


def _on_filesystem(filesystem: Any, paths: list[str], name_of: Callable[[str], str]) -> ResolvedPaths:
    """Resolve paths on a given file system; wrappers are unwrapped, and a local one becomes None."""
    check_readable(filesystem)
    inner, paths = innermost_filesystem(filesystem, paths)
    if inner is None:
        return _local(paths)
    if hasattr(inner, "_strip_protocol"):
        paths = [inner._strip_protocol(path) for path in paths]
    return ResolvedPaths(inner, paths, name_of)


def check_readable(filesystem: Any) -> None:
    """Raise TypeError for what is neither a file system of fsspec nor one of pyarrow."""
    if not (hasattr(filesystem, "open_input_file") or hasattr(filesystem, "cat_file")):
        raise TypeError(f"filesystem must be of fsspec or pyarrow, not {type(filesystem).__name__}")
