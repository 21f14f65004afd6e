"""``numparq spark profile``: what is in a dataset, and how well files could be skipped."""

from __future__ import annotations

import json as json_module
import sys

from rich.console import Console

from ..dataset.profile import Profile
from ..spark.application import session
from .spark import names

__all__ = ["profile"]

_DATA: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}


def profile(
    path: str, columns: str | None, data: str, where: str | None, json: bool, strict: bool, master: str | None,
    conf: list[str],
) -> int:  # fmt: skip
    """Print the profile of a dataset.

    Returns
    -------
    int
        1 where a file could not be read in full, else 0.
    """
    from ..spark.profiling import profile as profile_of

    with session(master, conf, f"numparq spark profile {path}") as spark:
        found = profile_of(spark, path, names(columns), data=_DATA[data], where=where, strict=strict)
    show(found, as_json=json)
    return int(found.damaged_files > 0)


def show(found: Profile, *, as_json: bool) -> None:
    """Print a profile: as JSON, as a table where this is a terminal, else as lines."""
    if as_json:
        print(json_module.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        Console(highlight=False).print(found)
    else:
        print(found)
