"""Open paths, URLs, file systems, bytes and file objects as sources or sinks."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from numparq.errors import UnsupportedError

from .local_sink import DeviceSink, FileSink
from .local_source import BytesSource, FileObjectSource, FileSource
from .remote_sink import ArrowSink, FsspecSink
from .remote_source import ArrowSource, FsspecSource, protocols
from .sink import BytesSink, Sink, StreamSink
from .source import Source

__all__ = [
    "open_filesystem_sink",
    "open_filesystem_source",
    "open_local_sink",
    "open_local_source",
    "open_sink",
    "open_source",
    "open_url_sink",
    "open_url_source",
]


def open_sink(path: Any, storage_options: dict[str, Any] | None = None, filesystem: Any = None) -> Sink:
    """Open what a user calls a path, for writing.

    Parameters
    ----------
    path : str, os.PathLike, binary file object, Sink or None
        None collects the bytes in memory; a sink is that one. A local file (a ``file://`` URL too) is written beside
        its place and then put there in one step (`numparq.io.local_sink.FileSink`); any other URL is written by fsspec;
        a file object with ``write`` is written from where it stands, and left open.
    storage_options : dict, optional
        For the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        Where `path` is.

    Returns
    -------
    Sink

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As `open` does.
    ImportError
        For a URL, when fsspec is not installed.
    TypeError, ValueError
        For any other path, and for options that do not go with it.
    """
    if not isinstance(path, (str, os.PathLike)):
        if storage_options or filesystem is not None:
            raise ValueError("storage_options and filesystem go with a path or URL only")
        if path is None:
            return BytesSink()
        if isinstance(path, Sink):
            return path
        if hasattr(path, "write"):
            return StreamSink(path)
        raise TypeError(f"path is a str, PathLike, binary file object or None, not {type(path).__name__}")
    name = os.fsdecode(path)
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs; the file system has its own already")

        return open_filesystem_sink(filesystem, name)
    if "://" in name and not name.startswith("file://"):
        return open_url_sink(name, storage_options or {})
    if storage_options:
        raise ValueError(f"storage_options are for URLs, and {name!r} is a local path")

    return open_local_sink(name.removeprefix("file://"))


def open_local_sink(name: str) -> Sink:
    """Open a local file for writing.

    Parameters
    ----------
    name : str
        Its path; ``~`` is the home folder. A device or pipe is written as it is.

    Returns
    -------
    FileSink or DeviceSink
    """
    name = os.path.expanduser(name)
    if not name:
        raise FileNotFoundError(errno.ENOENT, "the path is empty", name)
    if name.endswith((os.sep, "/")):
        raise IsADirectoryError(errno.EISDIR, "names a folder; name a file in it", name)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        return FileSink(name)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", name)
    return FileSink(name) if stat.S_ISREG(mode) else DeviceSink(name)


def open_url_sink(url: str, storage_options: dict[str, Any]) -> Sink:
    """Open a URL for writing.

    Parameters
    ----------
    url : str
        As fsspec takes it: ``s3://bucket/key``.
    storage_options : dict
        For its file system.

    Returns
    -------
    FsspecSink

    Raises
    ------
    ImportError
        When fsspec, or what it needs for this kind of URL, is not installed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"{url} is a URL, which takes fsspec: pip install 'numparq[fsspec]'") from None
    filesystem, path = url_to_fs(url, **storage_options)
    return open_filesystem_sink(filesystem, path, url)


def open_filesystem_sink(filesystem: Any, path: str, name: str | None = None) -> Sink:
    """Open a file on a file system for writing.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        Of local ones, `numparq.io.local_sink` does the work.
    path : str
        The file there.
    name : str, optional
        What to call it in messages.

    Returns
    -------
    Sink
    """
    if hasattr(filesystem, "open_output_stream"):
        if filesystem.type_name == "local":
            return open_local_sink(filesystem.normalize_path(path))
        return ArrowSink(filesystem, path, name or path)
    if not hasattr(filesystem, "open"):
        raise TypeError(f"filesystem is one of fsspec or pyarrow, not {type(filesystem).__name__}")
    protocol = getattr(filesystem, "protocol", ())
    if "file" in ((protocol,) if isinstance(protocol, str) else protocol):
        return open_local_sink(filesystem._strip_protocol(path))
    return FsspecSink(filesystem, path, name or path)


def open_source(path: Any, storage_options: dict[str, Any] | None = None, filesystem: Any = None) -> Source:
    """Open what a user calls a path.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, binary file object, or Source
        A file's name or URL; the bytes of a file; an object with ``read`` and ``seek``; or what is open already.
    storage_options : dict, optional
        For the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        Where `path` is.

    Returns
    -------
    Source

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As `open` does.
    ImportError
        For a URL, when fsspec, or what it needs for this kind of URL, is not installed.
    UnsupportedError
        For a directory or a list of paths, which this version does not read.
    TypeError, ValueError
        For anything else, and for options that do not go with it.
    """
    if isinstance(path, (str, os.PathLike)):
        return _open_named_source(os.fsdecode(path), storage_options or {}, filesystem)
    if isinstance(path, (list, tuple)):
        raise UnsupportedError("numparq does not read several files at once yet; read them one by one")
    if storage_options or filesystem is not None:
        raise ValueError("storage_options and filesystem go with a path or URL only")
    if isinstance(path, (bytes, bytearray, memoryview)):
        return BytesSource(path)
    if hasattr(path, "read_ranges"):
        return path
    if hasattr(path, "read") and hasattr(path, "seek"):
        return FileObjectSource(path)
    raise TypeError(f"path is a str, PathLike, bytes or binary file object, not {type(path).__name__}")


def _open_named_source(name: str, storage_options: dict[str, Any], filesystem: Any) -> Source:
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs; the file system has its own already")

        return open_filesystem_source(filesystem, name)
    if "://" in name and not name.startswith("file://"):
        return open_url_source(name, storage_options)
    if storage_options:
        raise ValueError(f"storage_options are for URLs, and {name!r} is a local path")
    return open_local_source(name.removeprefix("file://"))


def open_local_source(name: str) -> FileSource:
    """Open a local file by its name; UnsupportedError for a directory."""
    try:
        return FileSource(os.path.expanduser(name))
    except OSError:
        if os.path.isdir(name):
            message = "this is a directory: read_parquet and Dataset read all of its files"
            raise UnsupportedError(message, file=name) from None
        raise


def open_url_source(url: str, storage_options: dict[str, Any]) -> Source:
    """Open a URL for reading.

    Parameters
    ----------
    url : str
        As fsspec takes it: ``s3://bucket/key``.
    storage_options : dict
        For its file system.

    Returns
    -------
    Source

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ImportError
        When fsspec, or what it needs for this kind of URL, is not installed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"{url} is a URL, which takes fsspec: pip install 'numparq[fsspec]'") from None
    filesystem, path = url_to_fs(url, **storage_options)
    return open_filesystem_source(filesystem, path, url)


def open_filesystem_source(filesystem: Any, path: str, name: str | None = None, size: int | None = None) -> Source:
    """Open a file on a file system for reading.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        Of local ones, `numparq.io.local_source.FileSource` does the work.
    path : str
        The file there.
    name : str, optional
        What to call it in messages.
    size : int, optional
        Its bytes, where a listing has told them already: that saves a request. A file that is not there is an error
        then only when it is read.

    Returns
    -------
    Source

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    UnsupportedError
        For a directory.
    """
    if hasattr(filesystem, "open_input_file"):
        if filesystem.type_name == "local":
            return open_local_source(filesystem.normalize_path(path))
        wrapped = getattr(getattr(filesystem, "handler", None), "fs", None)
        return (
            ArrowSource(filesystem, path, name or path)
            if wrapped is None
            else open_filesystem_source(wrapped, path, name, size)
        )
    if not hasattr(filesystem, "cat_file"):
        raise TypeError(f"filesystem is one of fsspec or pyarrow, not {type(filesystem).__name__}")
    if "file" in protocols(filesystem):
        return open_local_source(filesystem._strip_protocol(path))
    return FsspecSource(filesystem, path, name or path, size)
