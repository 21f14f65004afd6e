"""Numbers in words."""

from __future__ import annotations

from ...plan.words import counted

__all__ = ["bytes_words", "counted", "percent", "printable"]

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def bytes_words(number: float) -> str:
    """Give a number of bytes with a unit, of 1,000 bytes and so on."""
    place = 0
    while number >= 999.5 and place + 1 < len(_UNITS):
        number, place = number / 1000, place + 1
    return f"{number:,.0f} {_UNITS[place]}" if place == 0 or number >= 99.5 else f"{number:.1f} {_UNITS[place]}"


def printable(text: str) -> str:
    """Give a text of a file, which need not be UTF-8, such that it can be encoded: its lone surrogates as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def percent(share: float | None) -> str:
    """Give a share as a percentage, with more digits where it is small."""
    if share is None:
        return ""
    number = 100 * share
    if number == 0 or number >= 9.95:
        return f"{number:.0f} %"
    return f"{number:.1f} %" if number >= 0.1 else f"{number:.1g} %" if number >= 0.001 else "< 0.001 %"
