"""Decode the levels of one page after those of the page before, whose last row it may continue."""

from __future__ import annotations

import numpy as np

from numparq.column.read.pages import Pages, check_page
from numparq.column.scratch import allocate
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import PageQuirks
from numparq.kernels import nested_decode_kernels
from numparq.kernels.decode.levels import STATE_FIELDS, STATE_LEVELS, STATE_ROWS, STATE_VALUES
from numparq.kernels.enums import BIT_PACKED, DATA_PAGE
from numparq.kernels.tables import (
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)

from .page_values import VALUE_DTYPES, PageValues

__all__ = ["PageLevelDecoder", "page_body"]


class PageLevelDecoder:
    """Decodes the levels of the pages of one column chunk, in order."""

    def __init__(self, leaf: Leaf, quirks: PageQuirks) -> None:
        self._leaf = leaf
        self._quirks = quirks
        self._element_levels = np.array(leaf.element_levels, np.int64)
        self._last = (leaf.max_definition_level, 0)  # levels of the last entry before the page
        self._began = False

    def reverse_bits(self, pages: Pages, decompressed: np.ndarray) -> bool:
        """Reverse the bits of flat levels if this writer packed them the other way; return whether it did."""
        row, leaf = pages.pages[0], self._leaf
        turned = bool(
            self._quirks.bit_packed != BIT_PACKED
            and row[P_TYPE] == DATA_PAGE
            and row[P_DEFINITION_ENCODING] == BIT_PACKED
            and (leaf.max_definition_level, leaf.max_repetition_level) == (1, 0)
        )
        if turned:
            section = page_body(row, pages.raw, decompressed)[: (int(row[P_NUM_VALUES]) + 7) // 8]
            section[:] = np.packbits(np.unpackbits(section, bitorder="little"))
        return turned

    def decode(self, pages: Pages, decompressed: np.ndarray) -> PageValues:
        """Decode the levels of a page, placed after the last entry's levels, as it may continue that row.

        The values of the result are empty.
        """
        leaf, count = self._leaf, int(pages.pages[0, P_NUM_VALUES])
        before = int(self._began)
        definition = allocate(count + 1 + SLACK) if leaf.max_definition_level else np.empty(0, np.uint8)
        repetition = allocate(count + 1 + SLACK) if leaf.max_repetition_level else np.empty(0, np.uint8)
        definition[:1], repetition[:1] = self._last
        state = np.zeros(STATE_FIELDS, np.int64)
        state[STATE_LEVELS] = before
        status = nested_decode_kernels.decode_page_levels(
            pages.pages.reshape(-1),
            0,
            1,
            pages.raw,
            decompressed,
            leaf.max_definition_level,
            leaf.max_repetition_level,
            self._element_levels,
            definition,
            repetition,
            state,
        )
        check_page(status, state)
        pages.pages[0, P_TYPE] = DATA_PAGE
        end = before + count
        if count:
            self._began = True
            self._last = (
                int(definition[end - 1]) if len(definition) else leaf.max_definition_level,
                int(repetition[end - 1]) if len(repetition) else 0,
            )
        return PageValues(
            definition[before:end] if len(definition) else None,
            repetition[before:end] if len(repetition) else None,
            count,
            int(state[STATE_ROWS]),
            int(state[STATE_VALUES]),
            np.empty(0, VALUE_DTYPES.get(leaf.physical, "u1")),
            np.empty(0, np.int64) if leaf.physical == BYTE_ARRAY else None,
            np.empty(0, np.int64) if leaf.physical == BYTE_ARRAY else None,
        )

    def skip_page(self) -> None:
        """Record that a page could not be decoded: the next one may continue any row."""
        self._began = True
        self._last = (self._leaf.max_definition_level, self._leaf.max_repetition_level)


def page_body(row: np.ndarray, raw: np.ndarray, decompressed: np.ndarray) -> np.ndarray:
    """Return a view of the decompressed body of a page."""
    if row[P_IS_COMPRESSED]:
        return decompressed[row[P_SCRATCH] :][: row[P_UNCOMPRESSED]]
    return raw[row[P_BODY] :][: row[P_COMPRESSED]]
