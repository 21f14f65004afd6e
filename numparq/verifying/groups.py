"""Row groups: their chunks, sizes and order, and what of the file lies where (RowGroup in parquet.thrift)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..column.scratch import Scratch
from ..column.writers import faults_of
from ..io.beside import Beside
from ..io.source import Source
from ..schema import Leaf
from ..statistics import NO_ORDER, Order, order_of
from .chunks import MOST_PER_BYTE, ChunkCheck, Region
from .deviations import Findings, Place
from .footer import Tail
from .pages import Budget
from .sorting import check_sorting, sort_keys

__all__ = ["check_row_groups", "orders_of"]

_ORDERS = {None: "type", "TYPE_ORDER": "type", "IEEE_754_TOTAL_ORDER": "ieee754", "INT96_TIMESTAMP_ORDER": "int96"}
_LAST_ORDINAL = (1 << 15) - 1
_MOST_ANYWAY = 1 << 32  # bytes and values that are decoded of a file, however small


def orders_of(leaves: list[Leaf | None], names: list[str | None]) -> list[Order]:
    """Give the order of each leaf: by its type where the file says none; none where this version does not know it."""
    found = []
    for leaf, name in zip(leaves, names, strict=True):
        order = _ORDERS.get(name)
        found.append(NO_ORDER if leaf is None or order is None else order_of(leaf, order))
    return found


def check_row_groups(
    source: Source, tail: Tail, leaves: list[Leaf | None], orders: list[Order], findings: Findings,
    progress: Callable[[int], None], files: Beside | None = None,
) -> None:  # fmt: skip
    """Check all row groups, and that no two parts of the file lie over each other.

    Parameters
    ----------
    source : Source
        The file.
    tail : Tail
        Its footer.
    leaves, orders
        The columns.
    findings : Findings
        What is wrong goes there.
    progress : callable
        Called with the rows of each column chunk that is done.
    files : Beside or None
        As in `ChunkCheck`.
    """
    regions: dict[str, list[Region]] = {}
    scratch, budget = Scratch(), Budget(_MOST_ANYWAY + MOST_PER_BYTE * source.size)
    faults = faults_of(tail.metadata.get("created_by"))
    for number, group in enumerate(tail.metadata.get("row_groups", [])):
        place = Place(row_group=number)
        _check_facts(group, number, place, findings)
        chunks = group.get("columns", [])
        if len(chunks) != len(leaves):
            findings.add("group-columns", f"the row group has {len(chunks)} column chunks, the schema {len(leaves)} "
                                          "leaf columns", place)  # fmt: skip
            continue
        keys = sort_keys(group, leaves, orders, findings, place)
        for leaf, order, chunk in zip(leaves, orders, chunks, strict=True):
            if leaf is not None and budget.left >= 0:
                ChunkCheck(source, tail.start, leaf, order, group.get("num_rows", 0), chunk, faults,
                           place._replace(column=leaf.name), findings, scratch, budget, regions,
                           [keys[leaf.index]] if leaf.index in keys else [], files).run()  # fmt: skip
                findings.looked_at["column chunks"] += 1
                progress(max(group.get("num_rows", 0), 0))
        check_sorting(group, keys, findings, place)
        findings.looked_at["row groups"] += 1
    for parts in regions.values():
        _check_overlaps(parts, findings)


def _check_facts(group: dict[str, Any], number: int, place: Place, findings: Findings) -> None:
    rows = group.get("num_rows", 0)
    if rows < 0:
        findings.add("group-rows", f"the row group claims {rows:,} rows", place)
    ordinal = group.get("ordinal")
    if ordinal is not None and ordinal != number and number <= _LAST_ORDINAL:
        findings.add("group-ordinal", f"the row group says that it is number {ordinal}", place)
    chunks = [chunk["meta_data"] for chunk in group.get("columns", []) if "meta_data" in chunk]
    if len(chunks) != len(group.get("columns", [])):
        return
    for name, part, check in (("total_byte_size", "total_uncompressed_size", "group-size"),
                              ("total_compressed_size", "total_compressed_size", "group-compressed-size")):  # fmt: skip
        total = sum(chunk.get(part, 0) for chunk in chunks)
        if group.get(name, total) != total:
            findings.add(check, f"{name} is {group[name]:,}, and the column chunks have {total:,} together", place)
    starts = [min(filter(None, (chunk.get("dictionary_page_offset"), chunk.get("data_page_offset"))), default=0)
              for chunk in chunks]  # fmt: skip
    if group.get("file_offset") and starts and group["file_offset"] not in (starts[0], min(starts)):
        findings.add("group-offset", f"file_offset is {group['file_offset']:,}, and the first page is at {starts[0]:,}",
                     place)  # fmt: skip


def _check_overlaps(regions: list[Region], findings: Findings) -> None:
    """Check that nothing lies over anything else."""
    furthest: Region | None = None
    for region in sorted(regions, key=lambda item: item[:2]):
        if furthest is not None and region[0] < furthest[1]:
            one, other = (f"{each[2]} of column {each[3].column!r} in row group {each[3].row_group}"
                          for each in (furthest, region))  # fmt: skip
            findings.add("overlap", f"{other} begin at {region[0]:,}, where {one} have not ended (at {furthest[1]:,})",
                         region[3])  # fmt: skip
        if furthest is None or region[1] > furthest[1]:
            furthest = region
