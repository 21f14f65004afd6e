"""Numbers of bytes and shares as texts."""

from __future__ import annotations

import pytest

from numparq.util.format_numbers import format_decimal_bytes, format_percent


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 KB"),
        (99_499, "99.5 KB"),
        (99_500, "100 KB"),
        (123_456, "123 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (5e15, "5.0 PB"),
        (5e18, "5,000 PB"),
    ],
)
def test_format_decimal_bytes(number: float, words: str) -> None:
    assert format_decimal_bytes(number) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50 %"), (0.0333, "3.3 %"), (0.0004, "0.04 %"), (1e-9, "< 0.001 %"), (None, "")],
)
def test_format_percent(share: float | None, words: str) -> None:
    assert format_percent(share) == words
