"""Counts in texts for people."""

from __future__ import annotations


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 row`` and ``2,000 rows``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"
