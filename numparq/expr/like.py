"""Parse LIKE patterns into a key range and literal segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .expression import LiteralError
from .key_ranges import KeyRanges, prefix_range

ANY_CHARACTER = None  # of the tokens that are no bytes: any one character
_ANY = 0
_PERCENT, _UNDERSCORE = b"%"[0], b"_"[0]


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern, taken apart.

    Parameters
    ----------
    pieces : tuple of tuple of bytes or None
        What has to stand in a value in this order, with anything between one piece and the next: the first piece at
        the beginning, the last one at the end, of which either may be empty. A piece is bytes, and `ANY_CHARACTER` for
        a
        character that may be any. A single piece is the whole value.
    is_text : bool
        Whether a character is a code point of UTF-8 (bytes that are none fit nothing but bytes), not a byte.
    """

    pieces: tuple[tuple[bytes | None, ...], ...]
    is_text: bool


def parse_like(pattern: bytes, escape: bytes | None, text: bool) -> tuple[KeyRanges, LikePattern | None]:
    """Take a pattern apart.

    Parameters
    ----------
    pattern : bytes
        In UTF-8, if it is text.
    escape : bytes or None
        The escape character.
    text : bool
        Whether ``_`` stands for a code point, not for a byte.

    Returns
    -------
    ranges : KeyRanges
        Values outside of these do not fit.
    pattern : LikePattern or None
        What values within have to match besides; None where all of them fit.

    Raises
    ------
    LiteralError
        When the escape character is followed by nothing that it could take its meaning from.
    """
    tokens = _tokens(pattern, escape)
    if all(isinstance(token, bytes) for token in tokens):
        whole = b"".join(tokens)
        return ((whole, whole + b"\0"),), None
    prefix = tokens[0] if isinstance(tokens[0], bytes) else b""
    rest = tokens[1:] if prefix else tokens
    if all(token == _ANY for token in rest):
        return prefix_range(prefix), None
    return prefix_range(prefix), LikePattern(_pieces(tokens), text)


def _pieces(tokens: list[Any]) -> tuple[tuple[bytes | None, ...], ...]:
    """Cut where anything may stand."""
    pieces: list[list[bytes | None]] = [[]]
    for token in tokens:
        if token == _ANY:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return tuple(map(tuple, pieces))


def _tokens(pattern: bytes, escape: bytes | None) -> list[Any]:
    """Give runs of literal bytes, and what stands between them; several ``%`` are one."""
    tokens: list[Any] = []
    place, literal = 0, bytearray()
    while place < len(pattern):
        byte = pattern[place]
        if escape and pattern.startswith(escape, place):
            place += len(escape)
            if not pattern.startswith((b"%", b"_", escape), place):
                raise LiteralError(
                    "the escape character of the pattern stands before something else than %, _ or itself"
                )
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
