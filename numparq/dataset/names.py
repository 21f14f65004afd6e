"""What the names of files and directories say: which are data, and which partition they belong to."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote

from ..errors import InvalidFileError

__all__ = ["COMMON_METADATA", "METADATA", "is_hidden", "is_ignored", "partition_values", "segment_keys"]

METADATA, COMMON_METADATA = "_metadata", "_common_metadata"
# What stands for a null in the name of a directory, since Hive.
NULL = "__HIVE_DEFAULT_PARTITION__"
# Object stores have no directories: Hadoop puts an empty object in their place, named like this.
_PLACE_OF_DIRECTORY = "_$folder$"


def is_hidden(name: str, is_directory: bool) -> bool:
    """Say whether a name is of something that is no data, whatever lies in it.

    Parameters
    ----------
    name : str
        Of a file or directory, without what is above it.
    is_directory : bool
        A directory ``_x=1`` is a partition by a column ``_x``, as in Spark, and the null partition is one, whatever
        the column. (pyarrow leaves them out, which loses rows.)

    Returns
    -------
    bool
        True for names that begin with "." or "_", as ``_SUCCESS``, ``_temporary`` and ``.part-0.crc`` do.
    """
    first = name[:1]
    if first == "_":
        return not (is_directory and ("=" in name or name == NULL))
    return first == "." or name.endswith(_PLACE_OF_DIRECTORY)


def is_ignored(path: str) -> bool:
    """Say whether a part of a relative path is hidden: a directory on the way, or the file itself."""
    if "/." not in path and "/_" not in path and path[:1] not in "._" and not path.endswith(_PLACE_OF_DIRECTORY):
        return False
    *directories, name = path.split("/")
    return is_hidden(name, False) or any(is_hidden(directory, True) for directory in directories)


def segment_keys(directory: str) -> dict[str, str | None]:
    """Find the partition that a directory is, by names of the form ``key=value`` (Hive's).

    Parameters
    ----------
    directory : str
        A path with ``/`` between its parts; those that are of another form do not count.

    Returns
    -------
    dict of str to (str or None)
        The values as text, percent-decoded, by key; None for the null partition.

    Raises
    ------
    InvalidFileError
        When a key or value is no text, or a key occurs twice.
    """
    found: dict[str, str | None] = {}
    if "=" not in directory:
        return found
    for segment in directory.split("/"):
        if "=" not in segment:
            continue
        key, value = _key_and_value(segment)
        if key in found:
            raise InvalidFileError(f"the directory names the partition key {key!r} twice")
        found[key] = value
    return found


def partition_values(directory: str, count: int) -> list[str | None]:
    """Find the partition that a directory is, by the place of its parts: each is a value.

    Parameters
    ----------
    directory : str
        A path relative to the dataset's, with ``/`` between its parts.
    count : int
        How many partition keys there are; further parts do not count.

    Returns
    -------
    list of (str or None)
        As many values as there are parts, `count` at most.
    """
    segments = directory.split("/")[:count] if directory else []
    return [_value(segment) for segment in segments]


@lru_cache(maxsize=1024)  # a year has many days
def _key_and_value(segment: str) -> tuple[str, str | None]:
    key, _, value = segment.partition("=")
    return _decoded(key), _value(value)


def _value(text: str) -> str | None:
    value = _decoded(text)
    return None if value == NULL else value


def _decoded(text: str) -> str:
    """Undo the escapes of a name; a "%" that begins none stays."""
    try:
        decoded = unquote(text, errors="strict") if "%" in text else text
        decoded.encode()
    except UnicodeError:
        raise InvalidFileError(f"the name of the partition {text!r} is no UTF-8 text") from None
    return decoded
