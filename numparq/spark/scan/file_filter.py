"""Files of a Spark read, selected as by the options of Spark's own file sources."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING

from numparq.dataset.listing.file_filter import FileFilter

if TYPE_CHECKING:
    from numparq.typing import PathLike

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def build_file_filter(
    base_path: PathLike | None = None,
    path_glob_filter: str | None = None,
    modified_after: datetime.datetime | str | None = None,
    modified_before: datetime.datetime | str | None = None,
    time_zone: datetime.tzinfo | None = None,
) -> FileFilter:
    """Return the filter of Spark's options; `time_zone` is that of times without one."""
    return FileFilter(
        None if base_path is None else os.fsdecode(base_path),
        path_glob_filter,
        None if modified_after is None else _microseconds(modified_after, time_zone),
        None if modified_before is None else _microseconds(modified_before, time_zone),
    )


def parse_time(text: str) -> datetime.datetime:
    """Parse a date or time in ISO's form."""
    try:
        return datetime.datetime.fromisoformat(text.strip())
    except (AttributeError, ValueError):
        raise ValueError("a time such as 2024-01-31T12:00:00") from None


def _microseconds(moment: datetime.datetime | str, time_zone: datetime.tzinfo | None) -> int:
    """Return a time in microseconds since 1970; ValueError for one without a time zone."""
    try:
        found = moment if isinstance(moment, datetime.datetime) else parse_time(moment)
    except ValueError as error:
        raise ValueError(f"modified_after and modified_before must be {error}, not {moment!r}") from None
    if found.tzinfo is None:
        if time_zone is None:
            raise ValueError(
                f"the modification time {found.isoformat()} has no time zone; set the option 'timeZone', or append its "
                "offset, such as Z or +02:00"
            )
        found = found.replace(tzinfo=time_zone)
    return (found - _EPOCH) // _MICROSECOND
