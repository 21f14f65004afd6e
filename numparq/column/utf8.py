"""Strings held against UTF-8, and the page found that one stands in which is none."""

from __future__ import annotations

from ..errors import BAD_UTF8, CorruptPageError, check
from ..kernels import kernels
from ..kernels.tables import C_MASK, C_ROW_START, DICTIONARY_PAGE, P_CHUNK, P_ROW, P_TYPE
from .buffer import BinaryPiece
from .pages import Pages


def is_utf8(piece: BinaryPiece) -> bool:
    """Tell whether all strings are UTF-8."""
    return kernels.check_utf8(piece.offsets, len(piece), piece.data) >= 0


def check_utf8(piece: BinaryPiece) -> None:
    """Refuse strings that are not UTF-8; CorruptPageError."""
    status = kernels.check_utf8(piece.offsets, len(piece), piece.data)
    if status == BAD_UTF8:
        raise CorruptPageError(
            "a string is not valid UTF-8: the page is damaged, or its writer put other bytes than text in"
        )
    check(status)


def page_of_bad_utf8(piece: BinaryPiece, pages: Pages) -> int:
    """Find the page that the first string that is not UTF-8 is in; a dictionary stands in the first page."""
    if pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
        return 0
    chunks = pages.chunks[pages.pages[:, P_CHUNK]]
    places = chunks[:, C_MASK] + (pages.pages[:, P_ROW] - chunks[:, C_ROW_START]).clip(0)
    firsts = places.clip(0, len(piece)).tolist()
    for number, (first, last) in enumerate(zip(firsts, [*firsts[1:], len(piece)], strict=True)):
        if kernels.check_utf8(piece.offsets[first : last + 1], last - first, piece.data) < 0:
            return number
    return len(firsts) - 1
