"""Decode the levels of one page after those of the page before, whose last row it may continue."""

from __future__ import annotations

import numpy as np

from numparq.column.read.pages import Pages, check_page
from numparq.column.scratch import allocate
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import PageQuirks
from numparq.kernels.decode.levels import STATE_FIELDS, STATE_LEVELS, STATE_QUIRKS, STATE_ROWS, STATE_VALUES
from numparq.kernels.enums import BIT_PACKED, DATA_PAGE, DATA_PAGE_V2, RLE
from numparq.kernels.kernel_groups import nested_decode_kernels
from numparq.kernels.tables import (
    ARRAY_FILLERS,
    P_BODY,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_REPETITION_ENCODING,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)
from numparq.util.pluralize import agree_verb, pluralize

from .level_runs import LevelRuns, RemovedEntries, shorten_runs
from .page_values import VALUE_DTYPES, PageValues

_MANY = 1 << 20  # levels: a page with more is searched for long runs
_MAX_SECTION_BYTES = 16 << 10  # of a section whose runs are parsed in Python
_SIZES, _ENCODINGS = (P_REPETITION_BYTES, P_DEFINITION_BYTES), (P_REPETITION_ENCODING, P_DEFINITION_ENCODING)


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
        leaf, row = self._leaf, pages.pages[0]
        removed = self._shorten(pages, decompressed) if row[P_NUM_VALUES] > _MANY else []
        count = int(row[P_NUM_VALUES])
        before = int(self._began)
        definition = allocate(count + 1 + SLACK) if leaf.max_definition_level else np.empty(0, np.uint8)
        repetition = allocate(count + 1 + SLACK) if leaf.max_repetition_level else np.empty(0, np.uint8)
        definition[:1], repetition[:1] = self._last
        state = np.zeros(STATE_FIELDS, np.int64)
        state[STATE_LEVELS], state[STATE_QUIRKS] = before, self._quirks.page_flags
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
        row[P_TYPE] = DATA_PAGE
        end = int(state[STATE_LEVELS])
        fillers = before + count - end + sum(run.number for run in removed if self._is_filler(run))
        removed = [run for run in removed if not self._is_filler(run)]
        if end > before:
            self._began = True
            self._last = (
                int(definition[end - 1]) if len(definition) else leaf.max_definition_level,
                int(repetition[end - 1]) if len(repetition) else 0,
            )
        found = PageValues(
            definition[before:end] if len(definition) else None,
            repetition[before:end] if len(repetition) else None,
            end - before + sum(run.number for run in removed),
            int(state[STATE_ROWS]) + sum(run.number for run in removed if not run.repetition),
            int(state[STATE_VALUES]),
            np.empty(0, VALUE_DTYPES.get(leaf.physical, "u1")),
            np.empty(0, np.int64) if leaf.physical == BYTE_ARRAY else None,
            np.empty(0, np.int64) if leaf.physical == BYTE_ARRAY else None,
            removed=removed,
        )
        if fillers:
            found.deviations.append(
                ("writer-array", f"{pluralize(fillers, 'entry')} {agree_verb(fillers, 'continue')} null lists")
            )
        return found

    def excess_in_runs(self, pages: Pages, decompressed: np.ndarray) -> int:
        """Return by how many levels runs of a page, which has not been decoded, are longer than the page."""
        row = pages.pages[0]
        count, is_v2 = int(row[P_NUM_VALUES]), bool(row[P_TYPE] == DATA_PAGE_V2)
        data, place = (pages.raw, P_BODY) if is_v2 or not row[P_IS_COMPRESSED] else (decompressed, P_SCRATCH)
        position, excess = int(row[place]), 0
        most = self._leaf.max_repetition_level, self._leaf.max_definition_level
        for level, size_field, encoding in zip(most, _SIZES, _ENCODINGS, strict=True):
            size = int(row[size_field])
            if not is_v2 and level:
                size = int.from_bytes(data[position : position + 4].tobytes(), "little")
                position += 4
            if not is_v2 and row[encoding] != RLE:
                return excess
            if level:
                excess += excess_of_section(data[position : position + size], count, level.bit_length())
            position += size
        return excess

    def _is_filler(self, run: RemovedEntries) -> bool:
        """Whether removed entries continue null lists, as this writer stores them."""
        is_known = bool(self._quirks.page_flags & ARRAY_FILLERS and run.repetition)
        return is_known and run.definition < int(self._element_levels[run.repetition])

    def _shorten(self, pages: Pages, decompressed: np.ndarray) -> list[RemovedEntries]:
        """Remove long runs of equal levels from a page: they would take a byte for each level."""
        row, count = pages.pages[0], int(pages.pages[0, P_NUM_VALUES])
        is_v2 = row[P_TYPE] == DATA_PAGE_V2
        is_in_raw = is_v2 or not row[P_IS_COMPRESSED]
        if is_in_raw:  # the caller's
            pages.raw = pages.raw.copy()
        data, place = (pages.raw, P_BODY) if is_in_raw else (decompressed, P_SCRATCH)
        start = position = int(row[place])
        end = start + int(row[P_COMPRESSED] if is_in_raw else row[P_UNCOMPRESSED])
        most = self._leaf.max_repetition_level, self._leaf.max_definition_level
        sections = []
        for level, size_field, encoding in zip(most, _SIZES, _ENCODINGS, strict=True):
            size = int(row[size_field])
            if not is_v2 and level:
                size = int.from_bytes(data[position : position + 4].tobytes(), "little")
                position += 4
            if position + size > end or (size and not level) or (level and not is_v2 and row[encoding] != RLE):
                return []
            section = data[position : position + size].tobytes()
            sections.append(LevelRuns.parse(section, count, level.bit_length()))
            position += size
        removed = shorten_runs(sections[1], sections[0], most[1])
        encoded = [section.encoded() for section in sections]
        if is_v2:
            row[list(_SIZES)] = [len(section) for section in encoded]
        else:
            parts = zip(encoded, most, strict=True)
            encoded = [len(section).to_bytes(4, "little") + section if level else b"" for section, level in parts]
        levels = np.frombuffer(b"".join(encoded), np.uint8)
        saved = position - start - len(levels)
        data[start + saved : position] = levels
        row[place] += saved
        row[[P_COMPRESSED, P_UNCOMPRESSED] if is_in_raw else [P_UNCOMPRESSED]] -= saved
        row[P_NUM_VALUES] -= sum(run.number for run in removed)
        return removed

    def skip_page(self) -> None:
        """Record that a page could not be decoded: the next one may continue any row."""
        self._began = True
        self._last = (self._leaf.max_definition_level, self._leaf.max_repetition_level)


def excess_of_section(section: np.ndarray, count: int, width: int) -> int:
    """Return by how many values the last run of a section is longer than `count`; 0 for a section not searched."""
    if len(section) > _MAX_SECTION_BYTES or not width:
        return 0
    return LevelRuns.parse(section.tobytes(), count, width).num_excess(count)


def page_body(row: np.ndarray, raw: np.ndarray, decompressed: np.ndarray) -> np.ndarray:
    """Return a view of the decompressed body of a page."""
    if row[P_IS_COMPRESSED]:
        return decompressed[row[P_SCRATCH] :][: row[P_UNCOMPRESSED]]
    return raw[row[P_BODY] :][: row[P_COMPRESSED]]
