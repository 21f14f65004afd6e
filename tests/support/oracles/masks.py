"""References of predicates on values and row masks, one row at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

_CODE_POINT = rb"(?:[\x00-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3})"


def combine_mask(before: int, found: bool, valid: bool, how: tuple[int, int]) -> int:
    """Return a row's byte after combining with a predicate; `how` is `opens` and `keeps`."""
    satisfied = int(found and valid)
    return {(1, 0): satisfied, (0, 0): before & satisfied, (1, 1): before | satisfied}[how]


def in_ranges(key: Any, ranges: Sequence[tuple[Any, Any]]) -> bool:
    """Whether a key is in any range."""
    return any(low <= key < high for low, high in ranges)


def like_matches(value: bytes, pieces: Sequence[Sequence[bytes | None]], is_text: bool) -> bool:
    """Whether bytes match a pattern, by a regular expression; None in a piece is any character."""
    one = _CODE_POINT if is_text else b"."
    sources = [b"".join(one if token is None else re.escape(token) for token in piece) for piece in pieces]
    return re.fullmatch(b".*".join(sources), value, re.DOTALL) is not None


def mask_to_ranges(mask: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the row ranges of a mask."""
    found, row = [], 0
    for value, run in groupby(mask):
        size = len(list(run))
        if value:
            found.append((row, row + size))
        row += size
    return found
