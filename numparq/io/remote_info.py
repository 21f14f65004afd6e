"""Size and other facts of a remote file; on HTTP servers that do not tell its size, by its first byte."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Protocol, cast

from .filesystem import protocols


class _Filesystem(Protocol):
    """Methods of a file system of fsspec; all but `info` are of HTTPFileSystem."""

    kwargs: dict[str, Any]
    loop: object

    def info(self, path: str) -> dict[str, Any]: ...
    def encode_url(self, url: str) -> object: ...
    async def set_session(self) -> object: ...


def fetch_info(filesystem: _Filesystem, path: str) -> dict[str, Any]:
    """Return fsspec's info of a file.

    Some HTTP servers answer HEAD with a length of 0, or without one. The size is then that of an answer to a GET of
    byte 0.
    """
    info = filesystem.info(path)
    if not info.get("size") and is_http(filesystem):
        from fsspec.asyn import sync

        return {**info, "size": cast("int | None", sync(filesystem.loop, _size_by_range, filesystem, path))}
    return info


def is_http(filesystem: object) -> bool:
    """Whether a file system is fsspec's of HTTP servers."""
    return hasattr(filesystem, "encode_url") and not {"http", "https"}.isdisjoint(protocols(filesystem))


async def _size_by_range(filesystem: _Filesystem, url: str) -> int | None:
    """Return the size of a file by the Content-Range of its first byte; None if the server does not tell it."""
    options = dict(filesystem.kwargs)
    headers = {**(options.pop("headers", None) or {}), "Range": "bytes=0-0", "Accept-Encoding": "identity"}
    session = cast("Any", await filesystem.set_session())
    async with session.get(filesystem.encode_url(url), headers=headers, **options) as response:
        if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # it is empty
            return 0
        response.raise_for_status()
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            length = response.headers.get("Content-Length", "")
        else:
            length = response.headers.get("Content-Range", "").rpartition("/")[2]
        return int(length) if length.isdecimal() else None
