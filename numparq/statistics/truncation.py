"""Bounds that are shorter than the value they bound."""

from __future__ import annotations

from collections.abc import Callable

from .order import Order

DEFAULT_LENGTH = 64
WHOLE_LENGTH = 1024  # what cannot be cut is left out above this
_SURROGATES, _AFTER_SURROGATES, _LAST_CODE_POINT = 0xD800, 0xE000, 0x10FFFF


def truncate_min(value: bytes, length: int, order: Order) -> tuple[bytes | None, bool]:
    """Shorten a smallest value.

    Parameters
    ----------
    value : bytes
        PLAIN, without a length in front.
    length : int
        Bytes that it may have, at least 1; longer ones are cut where bytes compare unsigned. Text is cut between
        code points. What must stay whole is left out above 1024 bytes (above `length`, if that is more).
    order : Order
        That of the column.

    Returns
    -------
    bound : bytes or None
        Not larger than `value`; None where there is none to be written.
    exact : bool
        Whether it is the value itself.
    """
    return _truncated(value, length, order, {"bytes": _head, "text": _text_head})


def truncate_max(value: bytes, length: int, order: Order) -> tuple[bytes | None, bool]:
    """Shorten a largest value: what is cut is followed up by the next larger bytes, or text.

    Parameters
    ----------
    value, length, order
        As in `truncate_min`; the code point that follows may be one byte longer.

    Returns
    -------
    bound : bytes or None
        Not smaller than `value`; None where nothing of that length is larger.
    exact : bool
        Whether it is the value itself.
    """
    return _truncated(value, length, order, {"bytes": _after_bytes, "text": _after_text})


def _truncated(
    value: bytes, length: int, order: Order, cuts: dict[str, Callable[[bytes, int], bytes | None]]
) -> tuple[bytes | None, bool]:
    if length < 1:
        raise ValueError(f"bounds need at least one byte, not {length}")
    if order.cut == "whole":
        length = max(length, WHOLE_LENGTH)
    if len(value) <= length:
        return value, True
    return (cuts[order.cut](value, length) if order.cut in cuts else None), False


def _head(value: bytes, length: int) -> bytes:
    return value[:length]


def _text_head(value: bytes, length: int) -> bytes | None:
    """Give the whole code points among the first bytes; None where they are not UTF-8."""
    while length and value[length] & 0xC0 == 0x80:  # the byte behind continues a code point
        length -= 1
    try:
        value[:length].decode()
    except UnicodeDecodeError:
        return None
    return value[:length]


def _after_bytes(value: bytes, length: int) -> bytes | None:
    head = value[:length].rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


def _after_text(value: bytes, length: int) -> bytes | None:
    head = (_text_head(value, length) or b"").decode().rstrip(chr(_LAST_CODE_POINT))
    if not head:
        return None
    following = ord(head[-1]) + 1
    if following == _SURROGATES:
        following = _AFTER_SURROGATES
    return (head[:-1] + chr(following)).encode()
