"""Numbers of bytes and shares in texts for people."""

from __future__ import annotations

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def format_decimal_bytes(number: float) -> str:
    """Return a number of bytes with a decimal unit (1 KB is 1,000 bytes)."""
    unit = 0
    while number >= 999.5 and unit + 1 < len(_UNITS):
        number, unit = number / 1000, unit + 1
    return f"{number:,.0f} {_UNITS[unit]}" if unit == 0 or number >= 99.5 else f"{number:.1f} {_UNITS[unit]}"


def format_percent(share: float | None) -> str:
    """Return a share as a percentage, with more digits if it is small."""
    if share is None:
        return ""
    number = 100 * share
    if number == 0 or number >= 9.95:
        return f"{number:.0f} %"
    return f"{number:.1f} %" if number >= 0.1 else f"{number:.1g} %" if number >= 0.001 else "< 0.001 %"
