"""Write `_metadata` and `_common_metadata`: the row groups of all files, their schema alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numparq.dataset.listing.patterns import COMMON_METADATA_FILE, METADATA_FILE
from numparq.errors import SchemaError, UnsupportedError, error_context
from numparq.file.append_schema import conform_to_file
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.rewrite import row_groups_with_file_path, split_footer
from numparq.format.footer.tail import MAGIC
from numparq.format.schema import footer_schema
from numparq.format.schema_node import SchemaNode
from numparq.format.thrift.decode import read_record, root_record
from numparq.format.thrift.encode import EncodedThrift, encode_struct
from numparq.format.thrift.layout import thrift_layout
from numparq.format.writer_quirks import (
    COLUMN_INDEX,
    DEPRECATED_MIN_MAX,
    MIN_MAX,
    NULL_COUNT,
    OFFSET_INDEX,
    PageQuirks,
    page_quirks,
    untrusted_statistics,
)
from numparq.util.version import CREATED_BY, __version__

_COLUMN_INDEX = ("column_index_offset", "column_index_length")
_OFFSET_INDEX = ("offset_index_offset", "offset_index_length")
_MIN_MAX = ("min_value", "max_value", "is_min_value_exact", "is_max_value_exact")

# Misread statistic -> fields of Statistics and of ColumnChunk that hold it. Column indexes hold bounds and null counts
# too.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    MIN_MAX: (_MIN_MAX, _COLUMN_INDEX),
    DEPRECATED_MIN_MAX: (("min", "max"), ()),
    NULL_COUNT: (("null_count",), _COLUMN_INDEX),
    COLUMN_INDEX: ((), _COLUMN_INDEX),
    OFFSET_INDEX: ((), (*_OFFSET_INDEX, *_COLUMN_INDEX)),
}


def misread_statistics(other: Footer, footer: Footer) -> dict[int, frozenset[str]]:
    """Return, by leaf ordinal, which statistics of a file would be misread under another file's footer.

    Both footers have the same columns. The names are those of `numparq.format.writer_quirks`.
    """
    found = {}
    for leaf in footer_schema(footer):
        wrong = untrusted_statistics(footer.created_by, leaf) - untrusted_statistics(other.created_by, leaf)
        if _order(footer, leaf.index) != _order(other, leaf.index):
            wrong |= {MIN_MAX}
        if wrong:
            found[leaf.index] = wrong
    return found


def _order(footer: Footer, leaf: int) -> str | None:
    return None if footer.column_orders is None else footer.column_orders[leaf]


def drop_statistics(row_group: EncodedThrift, misread: dict[int, frozenset[str]]) -> EncodedThrift:
    """Remove the statistics that `misread_statistics` found from an encoded RowGroup."""
    if not misread:
        return row_group
    data, wanted = np.frombuffer(row_group, np.uint8), thrift_layout("RowGroup")
    group = root_record(wanted, read_record(data, len(data), wanted), data).to_dict()
    for leaf, names in misread.items():
        chunk = group["columns"][leaf]
        statistics = chunk.get("meta_data", {}).get("statistics", {})
        for name in names:
            for struct, fields in zip((statistics, chunk), _FIELDS[name], strict=True):
                for field in fields:
                    struct.pop(field, None)
    return EncodedThrift(encode_struct("RowGroup", group))


def parse_footer(data: bytes) -> Footer:
    """Parse an encoded FileMetaData."""
    return Footer(np.frombuffer(data, np.uint8), len(data))


def encode_metadata_files(
    files: Sequence[tuple[str, Footer]], columns: Sequence[SchemaNode], template: Footer
) -> dict[str, bytes]:
    """Encode ``_metadata`` and ``_common_metadata``, by name, for files given as (relative path, footer) in row order.

    Raises SchemaError if a file has other columns, UnsupportedError if it is encrypted or needs page quirks.
    """
    first = split_footer(template)
    groups: list[EncodedThrift] = []
    num_rows = 0
    for name, footer in files:
        with error_context(file=name):
            _check_columns(footer, template, columns)
            _check_pages(footer)
            misread = misread_statistics(template, footer)
            groups += [drop_statistics(group, misread) for group in row_groups_with_file_path(footer, name)]
        num_rows += int(footer.row_group_num_rows.sum())
    created_by = CREATED_BY.format(version=__version__)
    contents = {METADATA_FILE: (groups, num_rows), COMMON_METADATA_FILE: ([], 0)}
    return {name: _file(first.encode(rows, count, {}, created_by)) for name, (rows, count) in contents.items()}


def _check_columns(footer: Footer, template: Footer, columns: Sequence[SchemaNode]) -> None:
    """Raise SchemaError if the column chunks of a file cannot be read by the template's schema."""
    if footer.schema_elements is template.schema_elements:
        return
    if conform_to_file(footer, columns) != list(columns):
        raise SchemaError(
            "an existing file names nested fields differently, or has columns without nulls; one _metadata file "
            "cannot describe both; use write_metadata_file=False"
        )


def _check_pages(footer: Footer) -> None:
    """Raise UnsupportedError if pages need a writer quirk, or values a calendar: ``_metadata`` does not record them."""
    for leaf in footer_schema(footer):
        if leaf.rebase is not None:
            raise UnsupportedError(
                "an existing file is in Spark's legacy calendar, which a _metadata file cannot record; "
                "use write_metadata_file=False",
                column=leaf.name,
            )
    if page_quirks(footer.created_by) != PageQuirks():
        writer = f"by {footer.created_by!r}" if footer.created_by else "by an unknown writer"
        raise UnsupportedError(
            f"an existing file, {writer}, has pages with a known quirk, which a _metadata file "
            "cannot record; use write_metadata_file=False"
        )


def _file(footer: bytes) -> bytes:
    return MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC
