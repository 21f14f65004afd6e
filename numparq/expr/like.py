"""Parse LIKE patterns into a key range and literal segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .expression import LiteralError
from .key_ranges import KeyRanges, RangeTuple, prefix_range

ANY_CHARACTER = None  # token of ``_``
_ANY = 0
_PERCENT, _UNDERSCORE = b"%"[0], b"_"[0]


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A parsed LIKE pattern.

    Attributes
    ----------
    segments : tuple of tuple of bytes or None
        Segments between ``%``, in order: the first is anchored at the start, the last at the end, either may be
        empty; a single one is the whole value. A segment has literal bytes and `ANY_CHARACTER`.
    is_text : bool
        Whether a character is a UTF-8 code point, not a byte; invalid bytes then match only literal bytes.
    """

    segments: tuple[tuple[bytes | None, ...], ...]
    is_text: bool


def parse_like(pattern: bytes, escape: bytes | None, text: bool) -> tuple[KeyRanges, LikePattern | None]:
    """Return key ranges outside which no value matches, and the pattern to check within; None if all within match.

    ``_`` stands for a code point if `text`, else for a byte. Raises LiteralError for a misused escape character.
    """
    tokens = _tokens(pattern, escape)
    if all(isinstance(token, bytes) for token in tokens):
        whole = b"".join(tokens)
        return RangeTuple(((whole, whole + b"\0"),)), None
    prefix = tokens[0] if isinstance(tokens[0], bytes) else b""
    rest = tokens[1:] if prefix else tokens
    if all(token == _ANY for token in rest):
        return prefix_range(prefix), None
    return prefix_range(prefix), LikePattern(_pieces(tokens), text)


def _pieces(tokens: list[Any]) -> tuple[tuple[bytes | None, ...], ...]:
    """Split tokens at ``%`` into segments."""
    pieces: list[list[bytes | None]] = [[]]
    for token in tokens:
        if token == _ANY:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return tuple(map(tuple, pieces))


def _tokens(pattern: bytes, escape: bytes | None) -> list[Any]:
    """Return runs of literal bytes and the wildcards between them; adjacent ``%`` are merged."""
    tokens: list[Any] = []
    place, literal = 0, bytearray()
    while place < len(pattern):
        byte = pattern[place]
        if escape and pattern.startswith(escape, place):
            place += len(escape)
            if not pattern.startswith((b"%", b"_", escape), place):
                raise LiteralError("the escape character of the pattern must be followed by %, _ or itself")
            size = len(escape) if pattern.startswith(escape, place) else 1
            literal += pattern[place : place + size]
            place += size
            continue
        place += 1
        if byte not in (_PERCENT, _UNDERSCORE):
            literal.append(byte)
            continue
        if literal:
            tokens.append(bytes(literal))
            literal.clear()
        if byte == _UNDERSCORE or not tokens or tokens[-1] != _ANY:
            tokens.append(ANY_CHARACTER if byte == _UNDERSCORE else _ANY)
    return [*tokens, bytes(literal)] if literal else tokens or [b""]
