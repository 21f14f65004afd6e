"""Settings of a session that decide what filter text means."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, NamedTuple

from numparq.spark.time_zone import session_time_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkDialect(NamedTuple):
    """Settings of a session that decide what filter text means; by default those of a new one.

    Attributes
    ----------
    time_zone : tzinfo or None
        Zone of timestamps without one; None if it is not known.
    case_sensitive : bool
        Whether column names are exact.
    ansi : bool
        Whether an integer beside a float becomes a double, and not a float.
    escapes : bool
        Whether a backslash in a string is an escape character.
    quoted_names : bool
        Whether double quotes are those of names.
    """

    time_zone: datetime.tzinfo | None = None
    case_sensitive: bool = False
    ansi: bool = True
    escapes: bool = True
    quoted_names: bool = False


DEFAULT_DIALECT = SparkDialect()


def session_dialect(spark: SparkSession) -> SparkDialect:
    """Return what the settings of a session say."""

    def is_set(name: str, default: str) -> bool:
        return (spark.conf.get(name, default) or default).lower() == "true"

    ansi = is_set("spark.sql.ansi.enabled", "true")
    return SparkDialect(
        session_time_zone(spark),
        is_set("spark.sql.caseSensitive", "false"),
        ansi,
        not is_set("spark.sql.parser.escapedStringLiterals", "false"),
        ansi and is_set("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
    )
