"""The patterns of LIKE: ``%`` is any number of characters, ``_`` is one, an escape character takes that from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .ranges import TOP, Ranges
from .unfit import Unfit

# One character as UTF-8 has it; of bytes that are none, one byte.
_CODE_POINT = rb"(?:[\x00-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3})"
_ANY, _ONE = 0, 1
_PERCENT, _UNDERSCORE = b"%"[0], b"_"[0]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, taken apart.

    Parameters
    ----------
    source : bytes
        The regular expression that values have to match as a whole.
    regex : re.Pattern
        The same, compiled.
    """

    source: bytes
    regex: re.Pattern[bytes] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.source, re.DOTALL))

    def matches(self, value: bytes | memoryview) -> bool:
        """Tell whether a value fits."""
        return self.regex.fullmatch(value) is not None


def after_prefix(prefix: bytes) -> object:
    """Give the least bytes that are above all that begin with some; TOP where there are none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else TOP


def with_prefix(prefix: bytes) -> Ranges:
    """Give the range of all bytes that begin with some."""
    return ((prefix, after_prefix(prefix)),)


def parsed(pattern: bytes, escape: bytes | None, text: bool) -> tuple[Ranges, Pattern | None]:
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
    ranges : Ranges
        Values outside of these do not fit.
    pattern : Pattern or None
        What values within have to match besides; None where all of them fit.

    Raises
    ------
    Unfit
        When the escape character is followed by nothing that it could take its meaning from.
    """
    tokens = _tokens(pattern, escape)
    if all(isinstance(token, bytes) for token in tokens):
        whole = b"".join(tokens)  # type: ignore[arg-type]
        return ((whole, whole + b"\0"),), None
    prefix = tokens[0] if isinstance(tokens[0], bytes) else b""
    rest = tokens[1:] if prefix else tokens
    if all(token == _ANY for token in rest):
        return with_prefix(prefix), None
    return with_prefix(prefix), Pattern(_source(tokens, _CODE_POINT if text else b"."))


def _source(tokens: list[bytes | int], one: bytes) -> bytes:
    """Write a regular expression that never tries a place twice: what lies between two ``%`` is best found early."""
    pieces = [b""]
    for token in tokens:
        if token == _ANY:
            pieces.append(b"")
        else:
            pieces[-1] += re.escape(token) if isinstance(token, bytes) else one
    if len(pieces) == 1:
        return pieces[0]
    return b"".join([pieces[0], *(b"(?>.*?" + piece + b")" for piece in pieces[1:-1]), b".*", pieces[-1]])


def _tokens(pattern: bytes, escape: bytes | None) -> list[bytes | int]:
    """Give runs of literal bytes, and what stands between them; several ``%`` are one."""
    tokens: list[bytes | int] = []
    place, literal = 0, bytearray()
    while place < len(pattern):
        byte = pattern[place]
        if escape and pattern.startswith(escape, place):
            place += len(escape)
            if not pattern.startswith((b"%", b"_", escape), place):
                raise Unfit("the escape character of the pattern stands before something else than %, _ or itself")
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
            tokens.append(_ONE if byte == _UNDERSCORE else _ANY)
    return [*tokens, bytes(literal)] if literal else tokens or [b""]
