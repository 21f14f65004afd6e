"""What partitions and their files are called: ``key=value`` folders as Hive and pyarrow have them, and unique names."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from ...errors import SchemaError
from ..commit_record import file_prefix
from ..names import NULL

__all__ = ["file_name", "folder_of", "job_id"]

# What in a key would end it, or its folder, or be taken for an escape; and what some system's names may not have.
_IN_KEYS = re.compile(r'[\x00-\x1f\x7f"*/:<=>?\\|%]')
# Of values, plain letters, digits and little else is left as it is. What is beyond ASCII and Latin-1's controls is as
# well: Spark and Hive take each byte of an escape for a character.
_IN_VALUES = re.compile("[^A-Za-z0-9._~\\-\xa0-\U0010ffff]")
_HIDDEN = ("_", ".")


def job_id() -> str:
    """Give a name for a write that no other has; those of later writes come later in their order."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}"


def file_name(job: str, number: int, task: str = "") -> str:
    """Name a file of a write, or of a task of it; within a partition, names are in the order of the rows."""
    return f"{file_prefix(job)}{task and task + '-'}{number:07}.parquet"


def folder_of(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """Name the folder of a partition.

    Parameters
    ----------
    keys : sequence of str
        The names of the partition columns.
    values : sequence of str or None
        The text of the value of each; None is the null partition.

    Returns
    -------
    str
        A path with slashes; empty where there are no keys. In values, ASCII that is no letter, digit, or one of
        ``-._~`` is escaped by ``%``.
    """
    return "/".join(f"{_key(key)}={NULL if value is None else _escaped(key, value)}"
                    for key, value in zip(keys, values, strict=True))  # fmt: skip


def _key(key: str) -> str:
    if not key:
        raise SchemaError("a partition column needs a name")
    first = f"%{ord(key[0]):02X}" if key[0] in _HIDDEN else _IN_KEYS.sub(_percent, key[0])
    return first + _IN_KEYS.sub(_percent, key[1:])


def _percent(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _escaped(key: str, value: str) -> str:
    if value == "":
        raise SchemaError("an empty string cannot be told from a null in the name of a folder: replace it", column=key)
    if value == NULL:
        raise SchemaError(f"{NULL!r} stands for null in the name of a folder: replace it", column=key)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"the value {value!r} is not valid Unicode", column=key) from None
    return _IN_VALUES.sub(lambda found: quote(found[0], safe=""), value)
