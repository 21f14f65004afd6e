"""Who wrote a file, by the `created_by` of its footer."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

Version = tuple[int, ...]

# "parquet-mr version 1.8.0-SNAPSHOT (build 1234)", "DuckDB version v1.1.0 (build 1234)", "ClickHouse v25.3.2.39"
_FORM = re.compile(r"\s*(.*?)(?:\s+version)?\s+v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([^\s(]*)", re.IGNORECASE)
_NAME = re.compile(r"\s*(.*?)\s*(?:\bversion\b.*)?$", re.IGNORECASE | re.DOTALL)


class Writer(NamedTuple):
    """A program that writes Parquet.

    Attributes
    ----------
    name : str
        In lower case; empty where the file does not say it.
    version : tuple of int, or None
        Major, minor, patch, and 1, or 0 of what came before that release (``1.8.0-SNAPSHOT``, ``1.6.0rc3``). None
        where the file does not say it.
    """

    name: str
    version: Version | None

    def is_before(self, release: Version | None) -> bool:
        """Tell whether a version is older than a release; an unknown one may be, and all are where that is None."""
        return release is None or self.version is None or self.version < (*release, 1)


@lru_cache(maxsize=256)
def writer_of(created_by: str | None) -> Writer:
    """Take `created_by` apart.

    Parameters
    ----------
    created_by : str or None
        What the footer says.

    Returns
    -------
    Writer
    """
    text = (created_by or "")[:1000]
    match = _FORM.match(text)
    if match is None:
        name = _NAME.match(text)
        return Writer(name.group(1).lower() if name else "", None)
    suffix = match.group(5)
    numbers = (int(number or 0) for number in match.group(2, 3, 4))
    return Writer(match.group(1).lower(), (*numbers, int(not suffix or suffix[0] in ".+")))
