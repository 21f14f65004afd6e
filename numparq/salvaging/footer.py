"""The RowGroup structs of what was found."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .. import __version__
from ..kernels.tables import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, RLE
from ..verifying.walk import Walk
from .groups import FoundChunk, FoundGroup

__all__ = ["CREATED_BY", "row_group"]

# For footers that do not say who wrote them.
CREATED_BY = f"numparq-salvage version {__version__}"


def row_group(found: FoundGroup, walk: Walk, ordinal: int) -> dict[str, Any]:
    """Make the RowGroup struct of a row group.

    Parameters
    ----------
    found : FoundGroup
        The row group.
    walk : Walk
        The pages.
    ordinal : int
        Its number in the file.

    Returns
    -------
    dict
        By the field names of the IDL.
    """
    chunks = [_metadata(chunk, walk) for chunk in found.chunks]
    return {
        "columns": [{"file_offset": 0, "meta_data": chunk} for chunk in chunks],
        "total_byte_size": sum(chunk["total_uncompressed_size"] for chunk in chunks),
        "num_rows": found.num_rows,
        "file_offset": walk.pages[found.chunks[0].first].offset,
        "total_compressed_size": sum(chunk["total_compressed_size"] for chunk in chunks),
        "ordinal": ordinal if ordinal < 1 << 15 else None,
    }


def _metadata(chunk: FoundChunk, walk: Walk) -> dict[str, Any]:
    """Make the ColumnMetaData; it has no statistics, for nobody asked the values."""
    pages = walk.pages[chunk.first : chunk.end.page]
    counts = Counter((page.header["type"], page.about["encoding"]) for page in pages)
    levels = {page.about.get(f"{kind}_level_encoding", RLE) for page in pages if page.header["type"] == DATA_PAGE
              for kind in ("definition", "repetition")}  # fmt: skip
    dictionary = pages[0].offset if pages[0].header["type"] == DICTIONARY_PAGE else None
    data = next(page for page in pages if page.header["type"] in (DATA_PAGE, DATA_PAGE_V2))
    return {
        "type": chunk.leaf.physical,
        "encodings": sorted({encoding for _, encoding in counts} | levels),
        "path_in_schema": list(chunk.leaf.path),
        "codec": chunk.codec,
        "num_values": chunk.end.num_values,
        "total_uncompressed_size": sum(
            page.body - page.offset + page.header["uncompressed_page_size"] for page in pages
        ),
        "total_compressed_size": pages[-1].end - pages[0].offset,
        "data_page_offset": data.offset,
        "dictionary_page_offset": dictionary,
        "encoding_stats": [{"page_type": kind, "encoding": encoding, "count": count}
                           for (kind, encoding), count in sorted(counts.items())],
    }  # fmt: skip
