"""Salvage a file without a footer: last checkpoint, row groups found by their pages, new footer."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from numparq.errors import InvalidFileError, ParquetError, SchemaError
from numparq.format.footer.checkpoints import find_last_footer
from numparq.format.footer.rewrite import split_footer
from numparq.format.footer.tail import MAGIC
from numparq.io.local_source import FileSource
from numparq.io.source import read_bytes
from numparq.kernels.enums import DATA_PAGE, DICTIONARY_PAGE, RLE
from numparq.plan.explain import pluralize
from numparq.tools.verify.page_walk import PageSequence, walk_file_pages
from numparq.util.progress import ProgressBar

from .known_schema import schema_from_file, schema_from_footer
from .output import SALVAGE_CREATED_BY, TAIL_BYTES, Salvaged, write_salvaged
from .row_groups import AmbiguousPagesError, RowGroupFinder, SalvagedChunk, SalvagedRowGroup

__all__ = ["SalvageOptions", "build_row_group"]


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
    with ProgressBar(options.progress, "finding pages", "bytes") as bar:
        bar.add_total(source.size - start)
        walk = walk_file_pages(source, start, bar.advance)
    codecs = dict(known.codec_guesses)
    finder = RowGroupFinder(source, walk, known.leaves, codecs, options.codec, options.row_group_size)
    with ProgressBar(options.progress, "decoding", "pages") as bar:
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
    """Return consecutive complete row groups; record in `saved` what is lost after the last one, and why."""
    groups: list[SalvagedRowGroup] = []
    page, reason = 0, ""
    while page < len(walk.pages):
        try:
            found = finder.find(page)
        except AmbiguousPagesError as error:
            reason = f"{error.message}; use {error.argument}=... to choose"
            break
        except ParquetError as error:
            reason = error.message
            break
        if found is None:
            reason = (
                f"no complete row group begins there: column {finder.failed_column!r} is cut off, or "
                "its pages do not match the schema"
            )
            break
        groups.append(found)
        bar.advance(found.end_page - page)
        page = found.end_page
    left = len(walk.pages) - page
    if left:
        begin = walk.pages[page].offset
        saved.lost.append(f"{pluralize(left, 'intact page')} from byte {begin:,} on: {reason}")
    if walk.end < finder.source.size:
        saved.lost.append(f"{finder.source.size - walk.end:,} bytes from byte {walk.end:,} on: {walk.reason}")
    return groups
