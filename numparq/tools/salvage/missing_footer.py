"""Salvage a file without a footer: last checkpoint, row groups found by their pages, new footer."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numparq.errors import InvalidFileError, SchemaError, error_context
from numparq.format.footer.checkpoints import find_last_footer
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.rewrite import split_footer
from numparq.format.footer.tail import MAGIC
from numparq.format.schema import Leaf
from numparq.io.local_source import FileSource
from numparq.io.open import open_source
from numparq.io.source import read_bytes
from numparq.kernels.enums import DATA_PAGE, DICTIONARY_PAGE, RLE
from numparq.tools.verify.deviations import Findings
from numparq.tools.verify.file_walk import PageSequence, walk_file_pages
from numparq.tools.verify.footer import check_footer
from numparq.tools.verify.schema import read_schema_tree, schema_leaves
from numparq.tools.verify.thrift import read_struct
from numparq.util.pluralize import pluralize
from numparq.util.progress import ProgressBar

from .alignment import find_certain_row_groups, find_undecodable_page
from .output import SALVAGE_CREATED_BY, TAIL_BYTES, Salvaged, write_salvaged
from .row_groups import AmbiguousPagesError, RowGroupFinder, SalvagedChunk, SalvagedRowGroup


def build_row_group(found: SalvagedRowGroup, walk: PageSequence, ordinal: int) -> dict[str, Any]:
    """Build the RowGroup struct of a salvaged row group, by the field names of the Thrift definition."""
    chunks = [_build_column_metadata(chunk, walk) for chunk in found.chunks]
    return {
        "columns": [{"file_offset": 0, "meta_data": chunk} for chunk in chunks],
        "total_byte_size": sum(chunk["total_uncompressed_size"] for chunk in chunks),
        "num_rows": found.num_rows,
        "file_offset": walk.pages[found.chunks[0].first_page].offset,
        "total_compressed_size": sum(chunk["total_compressed_size"] for chunk in chunks),
        "ordinal": ordinal if ordinal < 1 << 15 else None,
    }


def _build_column_metadata(chunk: SalvagedChunk, walk: PageSequence) -> dict[str, Any]:
    """Build the ColumnMetaData struct of a column chunk from its page headers, without statistics."""
    first, last = walk.pages[chunk.first_page], walk.pages[chunk.end.end_page - 1]
    has_dictionary = first.header["type"] == DICTIONARY_PAGE
    counts: Counter[tuple[int, int]] = Counter()
    levels: set[int] = set()
    uncompressed = 0
    for number in range(chunk.first_page, chunk.end.end_page):
        page = walk.pages[number]
        counts[page.header["type"], page.type_header["encoding"]] += 1
        uncompressed += page.body_offset - page.offset + page.header["uncompressed_page_size"]
        if page.header["type"] == DATA_PAGE:
            levels |= {page.type_header.get(f"{kind}_level_encoding", RLE) for kind in ("definition", "repetition")}
    return {
        "type": chunk.leaf.physical,
        "encodings": sorted({encoding for _, encoding in counts} | levels),
        "path_in_schema": list(chunk.leaf.path),
        "codec": chunk.codec,
        "num_values": chunk.end.num_values,
        "total_uncompressed_size": uncompressed,
        "total_compressed_size": last.end - first.offset,
        "data_page_offset": walk.pages[chunk.first_page + has_dictionary].offset,
        "dictionary_page_offset": first.offset if has_dictionary else None,
        "encoding_stats": [
            {"page_type": kind, "encoding": encoding, "count": count}
            for (kind, encoding), count in sorted(counts.items())
        ],
    }


@dataclass(frozen=True)
class SalvageOptions:
    """Options of `salvage`, checked."""

    schema: Any
    codec: int | None
    row_group_size: int | None
    progress: bool


def salvage_missing_footer(source: FileSource, out: Any, options: SalvageOptions) -> Salvaged:
    """Keep the file up to its last checkpoint and the row groups found after it; write a new footer.

    Raise SchemaError if no schema is known, InvalidFileError if nothing can be saved.
    """
    saved = Salvaged()
    start, known = len(MAGIC), None if options.schema is None else schema_from_file(options.schema)
    before: list[Any] = []
    with contextlib.suppress(InvalidFileError):
        checkpoint = find_last_footer(source.name)
        start = checkpoint.end
        length = int.from_bytes(read_bytes(source, start - TAIL_BYTES, 4), "little")
        known = schema_from_footer(read_bytes(source, start - TAIL_BYTES - length, length))
        before += split_footer(known.footer).row_groups
        saved.num_rows, saved.num_row_groups = checkpoint.num_rows, checkpoint.num_row_groups
        saved.kept.append(
            f"{pluralize(checkpoint.num_rows, 'row')} in {pluralize(checkpoint.num_row_groups, 'row group')}, "
            f"by the checkpoint's footer that ends at byte {start:,}"
        )
    if known is None:
        raise SchemaError(
            "the file has no footer, not even of a checkpoint, and its columns are unknown; "
            "pass a file with the same columns as `schema`"
        )
    with ProgressBar(options.progress, "finding pages", "byte") as bar:
        bar.add_total(source.size - start)
        walk = walk_file_pages(source, start, bar.advance)
    codecs = dict(known.codec_guesses)
    finder = RowGroupFinder(source, walk, known.leaves, codecs, options.codec, options.row_group_size)
    with ProgressBar(options.progress, "decoding", "page") as bar:
        bar.add_total(len(walk.pages))
        groups = _find_row_groups(finder, walk, saved, bar)
    if not groups and start == len(MAGIC):
        raise InvalidFileError(saved.lost[0] if saved.lost else "the file has no intact page: nothing can be saved")
    made = [build_row_group(group, walk, saved.num_row_groups + number) for number, group in enumerate(groups)]
    rows = sum(group.num_rows for group in groups)
    if not groups:
        write_salvaged(source, out, start, b"")
        return saved
    end = walk.pages[groups[-1].end_page - 1].end
    saved.num_rows, saved.num_row_groups = saved.num_rows + rows, saved.num_row_groups + len(groups)
    saved.kept.append(
        f"{pluralize(rows, 'row')} in {pluralize(len(groups), 'row group')}, by their pages up to byte {end:,}"
    )
    encoded = split_footer(known.footer).encode([*before, *made], saved.num_rows, {}, SALVAGE_CREATED_BY)
    write_salvaged(source, out, end, encoded)
    return saved


def _find_row_groups(
    finder: RowGroupFinder, walk: PageSequence, saved: Salvaged, bar: ProgressBar
) -> list[SalvagedRowGroup]:
    """Return the complete row groups; record in `saved` what is lost, and why."""
    groups: list[SalvagedRowGroup] = []
    page, is_aligned = 0, True  # whether a row group begins with the page
    while page < len(walk.pages):
        if page in walk.gaps:
            is_aligned = False
        try:
            found, end, reason = _find_next(finder, page, is_aligned)
        except AmbiguousPagesError as error:
            found, end = [], walk.next_gap(page)
            reason = f"{error.message}; use {error.argument}=... to choose"
        _record_losses(saved, walk, range(page, end), found, reason)
        groups += [group for group in found if group.is_intact]
        is_aligned = is_aligned and bool(found)
        bar.advance(end - page)
        page = end
    if walk.end < finder.source.size:
        saved.lost.append(
            f"{pluralize(finder.source.size - walk.end, 'byte')} from byte {walk.end:,} on: {walk.reason}"
        )
    return groups


_UNALIGNED = "bytes before them are lost, and their columns or row groups are not certain"


def _find_next(finder: RowGroupFinder, page: int, is_aligned: bool) -> tuple[list[SalvagedRowGroup], int, str]:
    """Return the next row groups, the page to go on with, and why the pages between them are lost.

    Raise AmbiguousPagesError if the pages can be divided in several ways.
    """
    if is_aligned or len(finder.leaves) == 1:
        found = finder.find(page)
        if found is not None:
            return [found], found.end_page, _describe_damage(finder.walk, found)
        if len(finder.leaves) == 1:
            return [], page + 1, finder.walk.damaged.get(page, "it cannot be decoded")
        reason = (
            f"no complete row group begins there: column {finder.failed_column!r} is cut off, or "
            "its pages do not match the schema"
        )
        limit = finder.walk.next_gap(page)
        bad = find_undecodable_page(finder, limit)
        return [], limit if bad < 0 else max(bad, page + 1), reason
    groups, end = find_certain_row_groups(finder, page, finder.walk.next_gap(page))
    for group in groups:
        finder.check_codecs(group)
    return groups, end, _UNALIGNED


def _describe_damage(walk: PageSequence, group: SalvagedRowGroup) -> str:
    """Return what is wrong with the first damaged page of a row group; empty if it has none."""
    bad = min((page for page in walk.damaged if group.first_page <= page < group.end_page), default=None)
    return "" if bad is None else f"the page at byte {walk.pages[bad].offset:,} is damaged: {walk.damaged[bad]}"


def _record_losses(
    saved: Salvaged, walk: PageSequence, pages: range, found: Sequence[SalvagedRowGroup], reason: str
) -> None:
    """Record the pages that are in no intact row group, and the gap before them."""
    page = pages.start
    if page in walk.gaps:
        gap = walk.gaps[page]
        saved.lost.append(f"{pluralize(gap.end - gap.start, 'byte')} from byte {gap.start:,} on: {gap.reason}")
    for group in found:
        _record_pages(saved, walk, page, group.first_page, reason)
        if not group.is_intact:
            begin = walk.pages[group.first_page].offset
            damage = _describe_damage(walk, group)
            saved.lost.append(f"{pluralize(group.num_rows, 'row')} in a row group from byte {begin:,} on: {damage}")
        page = group.end_page
    _record_pages(saved, walk, page, pages.stop, reason)


def _record_pages(saved: Salvaged, walk: PageSequence, page: int, end: int, reason: str) -> None:
    num_intact = end - page - sum(page <= bad < end for bad in walk.damaged)
    if page < end:
        begin = walk.pages[page].offset
        what = pluralize(num_intact, "intact page") if num_intact else pluralize(end - page, "damaged page")
        saved.lost.append(f"{what} from byte {begin:,} on: {reason}")


@dataclass(frozen=True)
class SalvageSchema:
    """Leaf columns of a file and the footer that describes them.

    Attributes
    ----------
    footer : Footer
        Source of the new footer's fields, except its row groups.
    codec_guesses : dict of int to int
        Likely codec of each leaf column, by its index.
    """

    leaves: list[Leaf]
    footer: Footer
    codec_guesses: dict[int, int] = field(default_factory=dict)


def schema_from_footer(data: bytes) -> SalvageSchema:
    """Read the schema from the bytes of a FileMetaData.

    Raise SchemaError if the schema is damaged or has columns that cannot be read.
    """
    footer = Footer(np.frombuffer(data, np.uint8), len(data))
    findings = Findings()
    metadata, _ = read_struct("FileMetaData", data, findings.add)
    root = read_schema_tree(metadata, findings)
    errors = [
        deviation
        for deviation in findings.deviations
        if deviation.check.startswith("schema") and deviation.severity == "error"
    ]
    if root is None or errors:
        raise SchemaError(f"the schema is damaged: {errors[0].message if errors else 'its elements form no tree'}")
    leaves = schema_leaves(root)
    known = [leaf for leaf in leaves if leaf is not None]
    if len(known) != len(leaves) or not known:
        raise SchemaError("the schema has no columns, or columns that cannot be read")
    groups = metadata.get("row_groups") or [{}]
    chunks = [chunk.get("meta_data", {}) for chunk in groups[-1].get("columns", [])]
    codecs = {number: chunk["codec"] for number, chunk in enumerate(chunks) if "codec" in chunk}
    return SalvageSchema(known, footer, codecs)


def schema_from_file(schema: Any) -> SalvageSchema:
    """Read the schema from the footer of a Parquet file, or from the file that pyarrow writes for a pyarrow schema.

    Raise InvalidFileError if that file has no footer, SchemaError as `schema_from_footer`.
    """
    if type(schema).__module__.partition(".")[0] == "pyarrow":
        schema = _write_empty_file(schema)
    source = open_source(schema)
    try:
        with error_context(file=source.name):
            tail = check_footer(source, Findings())
            if tail is None:
                raise InvalidFileError("the file passed as schema has no footer; use a complete file")
            return schema_from_footer(read_bytes(source, tail.start, source.size - TAIL_BYTES - tail.start))
    finally:
        source.close()


def _write_empty_file(schema: Any) -> bytes:
    """Write a file with a pyarrow schema and no rows; return its bytes."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer)
    return buffer.getvalue()
