"""One column of one file: what the footer and the page indexes say of it, and where they do not, what its data does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ParquetError
from ...opened import OpenedFile
from ...predicate.domain import domain_of
from ...pruning.chunk_facts import chunk_runs
from ...pruning.places import COLUMN_INDEX, OFFSET_INDEX
from ...schema import BYTE_ARRAY, Leaf
from ...statistics.distrust import MIN_MAX, NULL_COUNT, bugs_of
from ...statistics.order import order_of
from .bounds import bounds_of
from .decoding import read_chunk, read_dictionary
from .file_runs import file_runs
from .footers import ChunkFacts, codec_names, dictionary_pages, encoding_names, has_only_dictionary
from .hashing import hash_keys
from .kinds import Kind, kind_of, type_words
from .pages import PageFacts
from .part import ColumnPart, Values
from .sketch import DistinctSketch
from .values import ChunkValues

__all__ = ["ColumnReader", "Reading"]

UNKNOWN = -1


class Reading(NamedTuple):
    """How files are looked at.

    Attributes
    ----------
    data : bool or "auto"
        Whether column chunks are decoded: all, none, or those of which footers and dictionaries leave something open.
    verify_crc : bool
        Whether pages with a CRC are held against it.
    threads : int
        How many decode a chunk.
    """

    data: bool | str = "auto"
    verify_crc: bool = True
    threads: int = 1


class ColumnReader:
    """Finds out about one column of a file.

    Parameters
    ----------
    file : OpenedFile
        The file.
    ordinal : int
        Which of the dataset's it is.
    leaf : Leaf
        The column.
    facts : ChunkFacts
        What the footer says of all chunks.
    pages : PageFacts
        The page indexes.
    how : Reading
        What is read.

    Attributes
    ----------
    part : ColumnPart
        What has been found.
    troubles : list of str
        What could not be read.
    """

    def __init__(
        self, file: OpenedFile, ordinal: int, leaf: Leaf, facts: ChunkFacts, pages: PageFacts, how: Reading
    ) -> None:  # fmt: skip
        self._file, self._ordinal, self._leaf, self._facts, self._pages, self._how = (
            file, ordinal, leaf, facts, pages, how
        )  # fmt: skip
        self.part = ColumnPart((ordinal, leaf.index), is_nested=leaf.is_nested)
        self.troubles: list[str] = []
        self._groups = range(file.num_row_groups)
        self._num_values = np.maximum(facts["num_values"][:, leaf.index], 0)
        self._note_storage()
        try:
            self._kind: Kind = kind_of(leaf)
        except ParquetError as error:
            self.troubles.append(str(error))
            return
        self._take_statistics()
        self._read_data()
        self._add_up()

    # --- how it is stored -------------------------------------------------------------------------------------------

    def _note_storage(self) -> None:
        part, facts, at = self.part, self._facts, self._leaf.index
        part.types[type_words(self._leaf)] += len(self._groups)
        part.codecs += codec_names(facts["codec"][facts.is_whole[:, at], at])
        part.encodings += facts.encodings(at)
        part.chunks = len(self._groups)
        part.num_values = int(self._num_values.sum())
        part.compressed = int(np.maximum(facts["compressed"][:, at], 0).sum())
        part.uncompressed = int(np.maximum(facts["uncompressed"][:, at], 0).sum())
        part.with_statistics = int(facts.has_statistics[:, at].sum())
        part.with_column_index = self._pages.count(COLUMN_INDEX, self._leaf)
        part.with_offset_index = self._pages.count(OFFSET_INDEX, self._leaf)
        blooms = facts["bloom_offset"][:, at] > 0
        part.with_bloom, part.bloom_bytes = int(blooms.sum()), int(facts["bloom_length"][blooms, at].clip(0).sum())
        self._page_counts = facts.pages(at)
        told = [pages for pages in self._page_counts if pages]
        part.paged, part.pages = len(told), sum(sum(pages.values()) for pages in told)
        part.dictionary_pages = sum(map(dictionary_pages, told))
        part.page_encodings = encoding_names(sum(told, Counter()))
        part.with_dictionary = int(self._has_dictionary().sum())
        part.only_dictionary = sum(map(has_only_dictionary, self._page_counts))

    def _has_dictionary(self) -> np.ndarray:
        at = self._leaf.index
        dictionary, data = self._facts["dictionary_page"][:, at], self._facts["data_page"][:, at]
        return (dictionary > 0) & (dictionary < data)

    # --- what the footer says of its values -------------------------------------------------------------------------

    def _take_statistics(self) -> None:
        leaf, facts, at = self._leaf, self._facts, self._leaf.index
        runs = chunk_runs(self._file, leaf, self._groups)
        self._bounds = bounds_of(runs, leaf, self._kind, domain_of(leaf))
        self._nulls = self._null_counts(runs.null_counts).copy()
        self._nans = runs.nan_counts.copy() if self._kind.keys == "float64" else np.zeros_like(self._num_values)
        flags = facts["low_exact"][:, at], facts["high_exact"][:, at]
        # Only bounds of a fixed size are values if nobody says so: what has any length may have been cut.
        self._low_exact, self._high_exact = (flag == 1 if leaf.physical == BYTE_ARRAY else flag != 0 for flag in flags)
        for bug in bugs_of(self._file.footer.created_by, leaf):
            if bug.name and {MIN_MAX, NULL_COUNT} & set(bug.what) and self.part.with_statistics:
                what = "bounds" if MIN_MAX in bug.what else "null counts"
                self.part.distrusted[f"{what}: {bug.why}"] += self.part.with_statistics

    def _null_counts(self, said: np.ndarray) -> np.ndarray:
        """Give the nulls of each chunk, `UNKNOWN` where it is not certain.

        Of leaves in groups and lists writers do not agree what a null is; level histograms leave no doubt.
        """
        leaf = self._leaf
        if not leaf.max_definition_level:
            return np.zeros_like(self._num_values)
        if not leaf.is_nested:
            return said
        present = self._facts.present(leaf.index)
        counted = np.where(present >= 0, self._num_values - present, UNKNOWN)
        return np.where((counted < 0) & self._file.is_own, said, counted)

    # --- what only the data says ------------------------------------------------------------------------------------

    def _read_data(self) -> None:
        self._read: dict[int, ChunkValues] = {}
        self._sketches: dict[int, tuple[DistinctSketch, bool]] = {}
        lengths = self._facts["text_bytes"][:, self._leaf.index].tolist()
        self._text: list[int | None] = [length if length >= 0 else None for length in lengths]
        for group in self._groups:
            try:
                self._read_group(group)
            except (ParquetError, OSError) as error:
                self.troubles.append(str(error))

    def _read_group(self, group: int) -> None:
        if self._how.data is not True or not self._num_values[group]:
            self._take_constant(group)
        if self._how.data == "auto" and group not in self._sketches and has_only_dictionary(self._page_counts[group]):
            first = int(self._facts["data_page"][group, self._leaf.index])
            found = read_dictionary(self._file, self._leaf, self._kind, group, first)
            if found is not None:
                self._take_dictionary(group, found)
        if not self._num_values[group]:
            return
        if self._how.data is True or (self._how.data == "auto" and self._lacks_anything(group)):
            found = read_chunk(self._file, self._leaf, self._kind, group, self._how.verify_crc, self._how.threads)
            self._take_values(group, found)

    def _is_empty(self, group: int) -> bool:
        return not self._num_values[group] or bool(self._nulls[group] == self._num_values[group])

    def _lacks_anything(self, group: int) -> bool:
        if self._is_empty(group):
            return False
        has_order = order_of(self._leaf).kind != "none"
        lacks_bounds = has_order and not self._bounds.known[group] and not self._is_all_nan(group)
        return bool(self._nulls[group] < 0 or self._nans[group] < 0 or lacks_bounds or group not in self._sketches)

    def _is_all_nan(self, group: int) -> bool:
        return bool(self._nans[group] > 0 and self._nans[group] == self._num_values[group] - self._nulls[group])

    def _take_constant(self, group: int) -> None:
        """Count what needs no reading: nothing at all, or one value that is both bounds; of booleans, either."""
        if self._is_empty(group):
            self._sketches[group] = DistinctSketch(), True
            return
        bounds, has_values = self._bounds, self._nulls[group] >= 0
        if not (bounds.known[group] and has_values and self._low_exact[group] and self._high_exact[group]):
            return
        low, high = bounds.lows[group], bounds.highs[group]
        if self._kind.keys == "float64" or self._kind.name.startswith("bytes("):
            return  # a bound of zero stands for two values, and there may be NaNs besides
        if low == high or self._kind.name == "bool":
            self._sketches[group] = DistinctSketch.of(hash_keys(self._kind, [low, high])), True

    def _take_dictionary(self, group: int, found: ChunkValues) -> None:
        self._sketches[group] = found.sketch, False
        self.part.shortest = _outer(min, self.part.shortest, found.shortest)
        self.part.longest = _outer(max, self.part.longest, found.longest)
        if not found.nans:
            self._nans[group] = 0
        if not self._bounds.known[group] and found.low is not None:
            self._set_bounds(group, found, exact=False)

    def _take_values(self, group: int, found: ChunkValues) -> None:
        nulls = int(self._num_values[group]) - found.present
        if self._nulls[group] >= 0 and nulls != self._nulls[group]:
            self._contradict(group, f"{self._nulls[group]:,} nulls are claimed, and there are {nulls:,}")
        bounds = self._bounds
        if bounds.known[group] and found.low is not None and (
            found.low < bounds.lows[group] or found.high > bounds.highs[group]
        ):  # fmt: skip
            self._contradict(group, "there are values outside of the bounds")
        self._read[group] = found
        self._nulls[group], self._nans[group] = nulls, found.nans
        self._sketches[group] = found.sketch, True
        self._text[group] = found.text_bytes
        self._set_bounds(group, found, exact=True)

    def _contradict(self, group: int, message: str) -> None:
        name = self._file.source.name
        error = ParquetError(f"the statistics are wrong: {message}", file=name, row_group=group, column=self._leaf.name)
        self.troubles.append(str(error))

    def _set_bounds(self, group: int, found: ChunkValues, exact: bool) -> None:
        bounds = self._bounds
        bounds.known[group] = found.low is not None
        if found.low is not None:
            bounds.lows[group], bounds.highs[group] = found.low, found.high
            self._low_exact[group] = self._high_exact[group] = exact

    # --- together ---------------------------------------------------------------------------------------------------

    def _add_up(self) -> None:
        part, nulls = self.part, self._nulls
        known = nulls >= 0
        part.nulls, part.nulls_unknown = int(nulls[known].sum()), int(self._num_values[~known].sum())
        told = self._nans >= 0
        part.nans, part.nans_unknown = int(self._nans[told].sum()), int(self._present()[~told].sum())
        self._add_lengths()
        orders = [found.in_order for found in self._read.values() if found.in_order is not None]
        part.read, part.in_order, part.out_of_order = len(self._read), sum(orders), len(orders) - sum(orders)
        part.kinds = {self._kind.name: self._kind}
        part.values = {self._kind.name: self._values()}
        num_rows = self._file.footer.row_group_num_rows.tolist()
        chunks = [self._pages.of(group, self._leaf, rows) for group, rows in zip(self._groups, num_rows, strict=True)]
        orders_of_pages = [chunk.order for chunk in chunks if chunk.order is not None]
        part.pages_in_order = sum(order != 0 for order in orders_of_pages)
        part.pages_out_of_order = len(orders_of_pages) - part.pages_in_order
        if self._groups:
            part.runs = {self._ordinal: file_runs(self._kind, self._bounds, self._present(), chunks, self._facts,
                                                  self._leaf)}  # fmt: skip

    def _present(self) -> np.ndarray:
        """Give the values of each chunk that are no nulls, as far as that is known; all, where it is not."""
        return self._num_values - np.maximum(self._nulls, 0)

    def _add_lengths(self) -> None:
        part = self.part
        if self._leaf.physical != BYTE_ARRAY:
            return
        for group, length in enumerate(self._text):
            if length is not None and self._nulls[group] >= 0:
                part.text_bytes += length
                part.text_values += int(self._present()[group])
        read = self._read.values()
        part.shortest = _outer(min, part.shortest, *(found.shortest for found in read))
        part.longest = _outer(max, part.longest, *(found.longest for found in read))

    def _values(self) -> Values:
        """Put the bounds and the sketches of all chunks together."""
        found = Values()
        values = self._present() - np.maximum(self._nans, 0)
        for group, count in enumerate(values.tolist()):
            sketch = self._sketches.get(group)
            is_known = bool(self._bounds.known[group]) and count > 0
            found = found + Values(
                self._bounds.lows[group] if is_known else None, self._bounds.highs[group] if is_known else None,
                bool(self._low_exact[group]) and is_known, bool(self._high_exact[group]) and is_known,
                count if is_known else 0, 0 if is_known else count,
                DistinctSketch() if sketch is None else sketch[0],
                0 if sketch is None else count, count if sketch is None else 0, sketch is None or sketch[1],
            )  # fmt: skip
        return found


def _outer(choose: Any, *items: int | None) -> int | None:
    return choose((item for item in items if item is not None), default=None)


def leaves_by_path(leaves: Sequence[Leaf]) -> dict[tuple[str, ...], Leaf]:
    """Give leaves by their paths; of those with the same, the first."""
    return {leaf.path: leaf for leaf in reversed(leaves)}
