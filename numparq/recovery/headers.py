"""Page headers held against the footer: no checksum covers them, and a wrong encoding may decode to wrong values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..column.pages import PageFailure, Pages
from ..errors import CorruptPageError, ParquetError
from ..kernels.tables import (
    C_MAX_DEFINITION,
    DATA_PAGE,
    DICTIONARY_PAGE,
    P_CHUNK,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_REPETITION_ENCODING,
    P_TYPE,
    PLAIN_DICTIONARY,
    RLE,
    RLE_DICTIONARY,
)
from ..metadata.footer import Footer
from ..metadata.records import Record
from ..schema import Leaf

__all__ = ["HeaderCheck"]

_ANY = -1
_HIGHEST = 62
_DICTIONARY = 1 << PLAIN_DICTIONARY | 1 << RLE_DICTIONARY


class HeaderCheck:
    """Holds the encodings of pages against those that the footer names for their column chunk.

    Parameters
    ----------
    footer : Footer
        The file's.
    leaves : sequence of Leaf
        The columns read.
    """

    def __init__(self, footer: Footer, leaves: Sequence[Leaf]) -> None:
        self._footer = footer
        self._leaves = leaves
        self._known: dict[tuple[int, int], int] = {}

    @cached_property
    def _row_groups(self) -> Sequence[Record] | None:
        try:
            return self._footer.full.row_groups
        except ParquetError:
            return None

    def _allowed(self, row_group: int, column: int) -> int:
        """Give the encodings of a chunk as bits; all of them, where the footer cannot be asked."""
        found = self._known.get((row_group, column))
        if found is None:
            found = self._known[row_group, column] = self._named(row_group, self._leaves[column].index)
        return found

    def _named(self, row_group: int, leaf: int) -> int:
        if self._row_groups is None:
            return _ANY
        chunk = self._row_groups[row_group].columns[leaf].meta_data
        encodings = [int(encoding) for encoding in chunk.encodings or ()] if chunk is not None else []
        if not encodings or not all(0 <= encoding <= _HIGHEST for encoding in encodings):
            return _ANY
        bits = sum(1 << encoding for encoding in set(encodings))
        return bits | _DICTIONARY if bits & _DICTIONARY else bits

    def check(self, row_group: int, columns: Sequence[int], pages: Pages) -> None:
        """Refuse pages whose values or levels are in an encoding that their chunk does not have.

        Parameters
        ----------
        row_group : int
            The ordinal of the row group.
        columns : sequence of int
            For each row of the chunk table, which of the columns read it is.
        pages : Pages
            The pages.

        Raises
        ------
        PageFailure
        """
        table = pages.pages
        allowed = np.array([self._allowed(row_group, column) for column in columns], np.int64)[table[:, P_CHUNK]]
        repeated = np.array([self._leaves[column].max_repetition_level > 0 for column in columns])[table[:, P_CHUNK]]
        optional = pages.chunks[table[:, P_CHUNK], C_MAX_DEFINITION] > 0
        first_version = table[:, P_TYPE] == DATA_PAGE
        wrong = _is_other(table[:, P_ENCODING], allowed) & (table[:, P_TYPE] != DICTIONARY_PAGE)
        wrong |= first_version & optional & _is_strange(table[:, P_DEFINITION_ENCODING], allowed)
        wrong |= first_version & repeated & _is_strange(table[:, P_REPETITION_ENCODING], allowed)
        if wrong.any():
            message = "the page header names an encoding that the footer does not name for the column chunk"
            raise PageFailure(int(np.argmax(wrong)), error=CorruptPageError(message))


def _is_other(encodings: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Tell which encodings are not among those allowed."""
    known = (allowed >> encodings.clip(0, _HIGHEST)) & 1 == 1
    return ~known | ((encodings < 0) | (encodings > _HIGHEST)) & (allowed != _ANY)


def _is_strange(encodings: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Tell which encodings of levels are neither RLE, as nearly everywhere, nor allowed."""
    return (encodings != RLE) & _is_other(encodings, allowed)
