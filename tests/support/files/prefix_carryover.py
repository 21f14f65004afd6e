"""DELTA_BYTE_ARRAY as parquet-mr before 1.8.0 wrote it: prefixes carry over from page to page (PARQUET-246)."""

from __future__ import annotations

from support.oracles import delta

from .builder import BYTE_ARRAY, FileColumn, build_file, data_page, data_page_v2

DELTA_BYTE_ARRAY = 7
OLD, FIXED, OTHER = "parquet-mr version 1.6.0rc3 (build d4d5a07)", "parquet-mr version 1.8.0", "impala version 2.2.0"


def encode_prefixes(values, before=b""):
    """Encode strings, the first with its common prefix with `before`."""
    prefixes = [delta.common_prefix_length(one, other) for one, other in zip([before, *values], values, strict=False)]
    suffixes = [value[shared:] for shared, value in zip(prefixes, values, strict=True)]
    return delta.encode(prefixes, 32) + delta.encode_length(suffixes)


def pages_of(parts, make=data_page):
    pages, before = [], b""
    for part in parts:
        pages.append(make(len(part), encode_prefixes(part, before), encoding=DELTA_BYTE_ARRAY))
        before = part[-1] if part else before
    return pages


def data_page_v2_of(num_values, body, encoding):
    return data_page_v2(num_values, 0, b"", body, encoding)


def carryover_file(pages, rows, created_by=OLD, physical=BYTE_ARRAY, **more):
    return build_file([rows], [FileColumn("a", physical, [pages], **more)], created_by=created_by).stored()


PARTS = [[b"straw", b"strawberry"], [b"strawberry", b"strange"], [], [b"strangest"], [b"other", b"ot"], [b"otter"]]
WORDS = [word for part in PARTS for word in part]
