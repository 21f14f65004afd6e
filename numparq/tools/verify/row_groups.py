"""Check row groups: sizes, ordinals, overlapping byte ranges, sort order of rows (RowGroup)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numparq.column.scratch import Scratch
from numparq.errors import ParquetError
from numparq.format.column_order import ColumnOrder
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.io.sibling_files import SiblingFiles
from numparq.io.source import Source
from numparq.util.pluralize import agree_noun, pluralize

from .column_chunks import MAX_DECODED_PER_BYTE, ColumnChunkChecker, FileRegion
from .deviations import Findings, Location
from .encrypted_columns import EncryptedColumns
from .footer import DecodedFooter
from .page_values import PageValues
from .pages import DecodeBudget

_INTEGERS = {
    ("signed", 4): "i4",
    ("signed", 8): "i8",
    ("unsigned", 4): "u4",
    ("unsigned", 8): "u8",
    ("boolean", 1): "u1",
}
_FLOATS = {2: "f2", 4: "f4", 8: "f8"}

_MAX_ORDINAL = (1 << 15) - 1
_MIN_BUDGET = 1 << 32  # decoded bytes and values allowed for any file


class SortKeyCollector:
    """Collects the sort keys of one sorting column (not repeated), page by page."""

    def __init__(self, leaf: Leaf, order: ColumnOrder) -> None:
        self._leaf = leaf
        self._order = order
        self._present: list[np.ndarray] = []
        self._keys: list[np.ndarray] = []
        self.has_removed = False  # whether rows of long runs of nulls are missing

    def __call__(self, page: PageValues) -> None:
        """Add the values of a page."""
        keys = self._sort_keys(page)
        if page.codes is not None:
            keys = keys[page.codes]
        self.has_removed |= bool(page.removed)
        most = self._leaf.max_definition_level
        present = np.ones(page.num_entries, bool) if page.definition_levels is None else page.definition_levels == most
        self._present.append(present)
        self._keys.append(keys)

    def _sort_keys(self, page: PageValues) -> np.ndarray:
        kind, width = self._order.kind, self._order.width
        if (kind, width) in _INTEGERS:
            return page.values.view(_INTEGERS[kind, width])
        if kind == "float":
            return page.values.view(_FLOATS[width])
        if self._leaf.physical == BYTE_ARRAY and page.starts is not None and page.ends is not None:
            places = zip(page.starts.tolist(), page.ends.tolist(), strict=True)
            items = [page.values[start:end].tobytes() for start, end in places]
        else:
            data = page.values.tobytes()
            items = [data[place : place + width] for place in range(0, len(data), width)] if width else []
        keys = np.empty(len(items), object)
        keys[:] = [self._order.sort_key(item) for item in items]
        return keys

    def ranks(self, descending: bool, nulls_first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return two sort keys for each row: null placement (0 or 1), and the rank of the value."""
        present = np.concatenate(self._present) if self._present else np.empty(0, bool)
        values = np.concatenate(self._keys) if self._keys else np.empty(0, np.int64)
        _, places = np.unique(values, return_inverse=True)  # NaNs are equal and the largest
        rank = np.zeros(len(present), np.int64)
        rank[present] = -places if descending else places
        return np.where(present, int(nulls_first), int(not nulls_first)), rank


def sort_key_collectors(
    group: dict[str, Any], leaves: list[Leaf | None], orders: list[ColumnOrder], findings: Findings, location: Location
) -> dict[int, SortKeyCollector]:
    """Return the collectors of a row group's sorting columns, by leaf index.

    Ends before the first sorting column that cannot be checked: later columns only break its ties.
    """
    found: dict[int, SortKeyCollector] = {}
    for column in group.get("sorting_columns") or ():
        number = column.get("column_idx", -1)
        if not 0 <= number < len(leaves):
            findings.add(
                "sorting-column",
                f"sorting_columns names column {number}, but the schema has {len(leaves)} "
                f"{agree_noun(len(leaves), 'leaf column')}",
                location,
            )
            return {}
        leaf = leaves[number]
        if leaf is None or leaf.max_repetition_level or orders[number].kind in ("none", "int96"):
            return found  # later columns only break ties
        found[number] = SortKeyCollector(leaf, orders[number])
    return found


def check_sorting(
    group: dict[str, Any], keys: dict[int, SortKeyCollector], findings: Findings, location: Location
) -> None:
    """Check the declared sort order of the rows after all pages were collected."""
    columns = [column for column in group.get("sorting_columns") or () if column.get("column_idx") in keys]
    if len(columns) > 1 and any(keys[column["column_idx"]].has_removed for column in columns):
        findings.add(
            "not-checked",
            "the order of rows in several columns is not checked where one has long runs of nulls",
            location,
        )
        return
    parts: list[np.ndarray] = []
    try:
        for column in columns:
            parts += keys[column["column_idx"]].ranks(column.get("descending", False), column.get("nulls_first", False))
    except (MemoryError, ParquetError):
        findings.add("not-checked", "not enough memory to check the order of the rows", location)
        return
    if not parts or len({len(part) for part in parts}) > 1 or len(parts[0]) < 2:
        return  # not all pages of a column could be decoded
    less, equal = np.zeros(len(parts[0]) - 1, bool), np.ones(len(parts[0]) - 1, bool)
    for part in parts:
        less |= equal & (part[1:] < part[:-1])
        equal &= part[1:] == part[:-1]
    if less.any():
        row = int(np.argmax(less)) + 1
        findings.add(
            "sorting-rows",
            f"sorting_columns declares a sort order, but row {row:,} sorts before the previous row "
            f"({pluralize(int(less.sum()), 'such row')})",
            location,
        )


def check_row_groups(
    source: Source,
    tail: DecodedFooter,
    encrypted: EncryptedColumns,
    leaves: list[Leaf | None],
    orders: list[ColumnOrder],
    findings: Findings,
    progress: Callable[[int], None],
    files: SiblingFiles | None = None,
) -> None:
    """Check all row groups, and that no byte ranges of the file overlap.

    `progress` is called with the rows of each checked column chunk; `files` None: external chunks are not checked.
    """
    regions: dict[str, list[FileRegion]] = {}
    scratch, budget = Scratch(), DecodeBudget(_MIN_BUDGET + MAX_DECODED_PER_BYTE * source.size)
    faults = page_quirks(tail.metadata.get("created_by"))
    for number, group in enumerate(tail.metadata.get("row_groups", [])):
        place = Location(row_group=number)
        _check_row_group_fields(group, number, place, findings)
        chunks = group.get("columns", [])
        if len(chunks) != len(leaves):
            findings.add(
                "group-columns",
                f"the row group has {len(chunks)} {agree_noun(len(chunks), 'column chunk')}, but the schema "
                f"has {len(leaves)} {agree_noun(len(leaves), 'leaf column')}",
                place,
            )
            continue
        keys = sort_key_collectors(group, leaves, orders, findings, place)
        for leaf, order, chunk in zip(leaves, orders, chunks, strict=True):
            if leaf is not None and (number, leaf.index) in encrypted.locked:
                findings.add(*encrypted.locked[number, leaf.index], place._replace(column=leaf.name))
            elif leaf is not None and budget.remaining >= 0:
                ColumnChunkChecker(
                    source,
                    tail.start,
                    leaf,
                    order,
                    group.get("num_rows", 0),
                    chunk,
                    faults,
                    place._replace(column=leaf.name),
                    findings,
                    scratch,
                    budget,
                    regions,
                    [keys[leaf.index]] if leaf.index in keys else [],
                    files,
                    encrypted.sealed.get((number, leaf.index)),
                ).run()
                findings.checked_counts["column chunks"] += 1
                progress(max(group.get("num_rows", 0), 0))
        check_sorting(group, keys, findings, place)
        findings.checked_counts["row groups"] += 1
    for parts in regions.values():
        _check_overlaps(parts, findings)


def _check_row_group_fields(group: dict[str, Any], number: int, location: Location, findings: Findings) -> None:
    rows = group.get("num_rows", 0)
    if rows < 0:
        findings.add("group-rows", f"num_rows is {rows:,}, a negative number", location)
    ordinal = group.get("ordinal")
    if ordinal is not None and ordinal != number and number <= _MAX_ORDINAL:
        findings.add("group-ordinal", f"ordinal is {ordinal}, but the row group is number {number}", location)
    chunks = [chunk["meta_data"] for chunk in group.get("columns", []) if "meta_data" in chunk]
    if len(chunks) != len(group.get("columns", [])):
        return
    for name, part, check in (
        ("total_byte_size", "total_uncompressed_size", "group-size"),
        ("total_compressed_size", "total_compressed_size", "group-compressed-size"),
    ):
        total = sum(chunk.get(part, 0) for chunk in chunks)
        if group.get(name, total) != total:
            findings.add(
                check, f"{name} is {group[name]:,}, but the column chunks have {pluralize(total, 'byte')}", location
            )
    starts = [
        min(filter(None, (chunk.get("dictionary_page_offset"), chunk.get("data_page_offset"))), default=0)
        for chunk in chunks
    ]
    if group.get("file_offset") and starts and group["file_offset"] not in (starts[0], min(starts)):
        findings.add(
            "group-offset", f"file_offset is {group['file_offset']:,}, but the first page is at {starts[0]:,}", location
        )


def _check_overlaps(regions: list[FileRegion], findings: Findings) -> None:
    """Check that no byte ranges overlap."""
    furthest: FileRegion | None = None
    for region in sorted(regions, key=lambda item: item[:2]):
        if furthest is not None and region[0] < furthest[1]:
            one, other = (
                f"{each[2]} of column {each[3].column!r} in row group {each[3].row_group}"
                for each in (furthest, region)
            )
            findings.add(
                "overlap",
                f"byte ranges overlap: {one} (to {furthest[1]:,}) and {other} (from {region[0]:,})",
                region[3],
            )
        if furthest is None or region[1] > furthest[1]:
            furthest = region
