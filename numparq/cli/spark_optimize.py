"""``numparq spark optimize``: files rewritten so that queries read little."""

from __future__ import annotations

import sys

from rich.console import Console

from ..spark.application import session
from .spark import names

__all__ = ["optimize", "printed", "size"]

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def optimize(
    path: str, sort_by: str | None, cluster_by: str | None, target_file_bytes: str, out: str | None, where: str | None,
    bloom: str | None, dry_run: bool, force: bool, master: str | None, conf: list[str],
) -> None:  # fmt: skip
    """Optimize a dataset, and print what was done."""
    from ..spark.optimizing import optimize as optimized

    file_bytes = size(target_file_bytes)
    with session(master, conf, f"numparq spark optimize {path}") as spark:
        report = optimized(
            spark, path, sort_by=names(sort_by), cluster_by=names(cluster_by), target_file_bytes=file_bytes, out=out,
            where=where, bloom_filters=names(bloom), dry_run=dry_run, force=force,
        )  # fmt: skip
    printed(report)


def printed(report: object) -> None:
    """Print a report: as a table where this is a terminal, else as lines."""
    if sys.stdout.isatty():
        Console(highlight=False).print(report)
    else:
        print(report)


def size(text: str) -> int:
    """Read a number of bytes.

    Parameters
    ----------
    text : str
        Such as ``134217728``, ``128MB`` or ``1.5 g``; units are powers of 1024.

    Raises
    ------
    ValueError
        When it is none.
    """
    word = text.strip().lower()
    number = word.rstrip("bkmg ")
    unit = _UNITS.get(word[len(number) :].strip())
    try:
        found = int(float(number) * (unit or 0))
    except (ValueError, OverflowError):
        found = 0
    if unit is None or found < 1:
        raise ValueError(f"{text!r} is no number of bytes, such as 128MB")
    return found
