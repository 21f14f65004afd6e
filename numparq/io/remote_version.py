"""Versions of remote files: what a file system reports that changes with a file's content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from numparq.errors import InvalidFileError

# Keys of fsspec infos whose value changes with the file: those of object stores first, then times.
_KEYS = (
    "ETag",
    "etag",
    "content_md5",
    "md5Hash",
    "Content-MD5",
    "Digest",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "mtime",
    "modified",
    "modificationTime",
    "modify",
    "created",
)


_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_TIMES: list[tuple[re.Pattern[str], Callable[[str], datetime]]] = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.{0,30}"), datetime.fromisoformat),
    (re.compile(r"[A-Z][a-z]{2}, .{10,30}"), parsedate_to_datetime),
]


class RemoteStamp(NamedTuple):
    """Size of a remote file in bytes, and its version; None if unknown."""

    size: int | None
    version: str | None


def replaced_file_error(name: str) -> InvalidFileError:
    """Return the error for a remote file whose bytes may be of two versions."""
    return InvalidFileError(
        "the file was replaced during the read, or since it was opened: open it and read again", file=name
    )


def info_version(info: Mapping[str, Any]) -> str | None:
    """Return the version in an info of fsspec: an ETag, or else a checksum or time; None without any."""
    version = next((info[key] for key in _KEYS if info.get(key) is not None), None)
    if isinstance(version, datetime):
        version = version.timestamp()  # `info` returns a datetime where `find` returns a number
    return None if version is None else str(version)


def has_version(info: Mapping[str, Any], version: str | None) -> bool:
    """Whether a version, of a listing or an earlier info, is one of those in an info; True if they cannot be compared.

    A listing may have only the time of a file whose info has an ETag, and spell both in another way. The time of
    creation counts only if there is nothing else, because it may stay when a file is written to.
    """
    found = {key: _parse(info[key]) for key in _KEYS if info.get(key) is not None}
    if version is None:
        return True
    known = _parse(version)
    alike = {key: each for key, each in found.items() if isinstance(each, str) == isinstance(known, str)}
    if len(alike) > 1:
        alike.pop("created", None)
    return not alike or any(_are_equal(known, each) for each in alike.values())


def _parse(version: object) -> str | float:
    """Return a time as seconds since 1970, other versions as text, without the marks of an ETag."""
    if isinstance(version, datetime):
        return version.timestamp()
    if not isinstance(version, str):
        return float(version) if isinstance(version, (int, float)) else str(version)
    if _NUMBER.fullmatch(version):
        return float(version)
    for pattern, parse in _TIMES:
        if pattern.fullmatch(version):
            try:
                moment = parse(version)
            except (ValueError, TypeError, OverflowError):
                continue
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return version.removeprefix("W/").strip('"')


def _are_equal(one: str | float, other: str | float) -> bool:
    """Whether two parsed versions are the same; times may have been cut to seconds."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one == other or (one // 1 == other // 1 and (one % 1 == 0 or other % 1 == 0))
