"""Open paths, URLs, file systems, bytes and file objects as sources or sinks."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from numparq.errors import UnsupportedError

from .filesystem import check_readable, innermost_filesystem, is_url, strip_file_scheme, url_to_filesystem
from .local_source import BytesSource, FileObjectSource, FileSource
from .source import Source

if TYPE_CHECKING:
    from numparq.typing import PathOrBuffer, PathOrPaths, StorageOptions

    from .sink import Sink


def open_sink(path: PathOrBuffer | Sink | None, storage_options: StorageOptions = None, filesystem: Any = None) -> Sink:
    """Open a path, URL, binary file object or None (bytes in memory) for writing; return a `Sink` as it is.

    A local file is replaced in one step on commit; a file object is written from its current position and left open.
    """
    from .sink import BytesSink, Sink, StreamSink

    if not isinstance(path, (str, os.PathLike)):
        if storage_options or filesystem is not None:
            raise ValueError("storage_options and filesystem need a path or URL")
        if path is None:
            return BytesSink()
        if isinstance(path, Sink):
            return path
        if hasattr(path, "write"):
            return StreamSink(path)
        raise TypeError(f"path must be a str, PathLike, binary file object or None, not {type(path).__name__}")
    name = os.fsdecode(path)
    resolved, place = _resolve(name, storage_options or {}, filesystem)
    sink = open_local_sink(place) if resolved is None else open_filesystem_sink(resolved, place, name)
    sink.location = name, storage_options, filesystem
    return sink


def _resolve(name: str, storage_options: Mapping[str, Any], filesystem: Any) -> tuple[Any, str]:
    """Return the file system of a path or URL, None if it is local, and the path on it."""
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options cannot be combined with filesystem, which has its own")
        return filesystem, name
    if is_url(name):
        return url_to_filesystem(name, storage_options)
    if storage_options:
        raise ValueError(f"storage_options need a URL, but {name!r} is a local path")
    return None, strip_file_scheme(name)


def open_local_sink(name: str) -> Sink:
    """Open a local file for writing, ``~`` expanded; a device or pipe is written directly."""
    from .local_sink import DeviceSink, FileSink

    name = os.path.expanduser(name)
    if not name:
        raise FileNotFoundError(errno.ENOENT, "the path is empty", name)
    if name.endswith((os.sep, "/")):
        raise IsADirectoryError(errno.EISDIR, "path names a directory; name a file in it", name)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        return FileSink(name)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "path is a directory; name a file in it", name)
    return FileSink(name) if stat.S_ISREG(mode) else DeviceSink(name)


def open_filesystem_sink(filesystem: Any, path: str, name: str | None = None) -> Sink:
    """Open a file on a fsspec or pyarrow file system for writing; `name` is its name in messages."""
    if not (hasattr(filesystem, "open_output_stream") or hasattr(filesystem, "open")):
        raise TypeError(f"filesystem must be of fsspec or pyarrow, not {type(filesystem).__name__}")
    inner, (place,) = innermost_filesystem(filesystem, [path])
    if inner is None:
        return open_local_sink(place)
    from .remote_sink import ArrowSink, FsspecSink

    kind = ArrowSink if hasattr(inner, "open_output_stream") else FsspecSink
    return kind(inner, place, name or path)


def open_source(path: PathOrPaths | Source, storage_options: StorageOptions = None, filesystem: Any = None) -> Source:
    """Open a path, URL, bytes-like object or binary file object for reading; return a `Source` as it is.

    Raises as `open` does, and UnsupportedError for a directory or a list of paths.
    """
    if isinstance(path, (str, os.PathLike)):
        name = path if isinstance(path, str) else os.fsdecode(path)
        if ":" in name or storage_options or filesystem is not None:
            filesystem, place = _resolve(name, storage_options or {}, filesystem)
            return open_local_source(place) if filesystem is None else open_filesystem_source(filesystem, place, name)
        return open_local_source(name)
    if isinstance(path, (list, tuple)):
        raise UnsupportedError("several files cannot be opened as one; use numparq.read_parquet or numparq.Dataset")
    if storage_options or filesystem is not None:
        raise ValueError("storage_options and filesystem need a path or URL")
    if isinstance(path, (bytes, bytearray, memoryview)):
        return BytesSource(path)
    if hasattr(path, "read_ranges"):
        return cast(Source, path)
    if hasattr(path, "read") and hasattr(path, "seek"):
        return FileObjectSource(cast(BinaryIO, path))
    raise TypeError(f"path must be a str, PathLike, bytes or binary file object, not {type(path).__name__}")


def open_local_source(name: str) -> FileSource:
    """Open a local file by its name, ``~`` expanded; raise UnsupportedError for a directory."""
    path = os.path.expanduser(name) if name[:1] == "~" else name
    try:
        return FileSource(path)
    except OSError:
        if os.path.isdir(path):  # Windows has no error of its own for it
            message = "path is a directory; numparq.read_parquet and numparq.Dataset read all of its files"
            raise UnsupportedError(message, file=name) from None
        raise


def open_filesystem_source(
    filesystem: Any, path: str, name: str | None = None, size: int | None = None, version: str | None = None
) -> Source:
    """Open a file on a fsspec or pyarrow file system for reading; `name` is its name in messages.

    `size` in bytes and `version`, known from a listing, save a request. A missing file is then an error only when it
    is read.
    """
    check_readable(filesystem)
    inner, (place,) = innermost_filesystem(filesystem, [path])
    if inner is None:
        return open_local_source(place)
    from .remote_source import ArrowSource, FsspecSource

    if hasattr(inner, "open_input_file"):
        return ArrowSource(inner, place, name or path)
    return FsspecSource(inner, place, name or path, size, version)
