"""Statistics of row groups under the footer of another file: what would be misread there is left out.

A footer says once for all of its row groups how values compare (`column_orders`), and who wrote them (`created_by`),
which is what readers know by that some statistics are wrong.
"""

from __future__ import annotations

import numpy as np

from ...metadata.decode import read_record
from ...metadata.encode import Encoded, encode
from ...metadata.footer import Footer
from ...metadata.layout import layout
from ...metadata.records import record
from ...schema import schema_of
from ...statistics.distrust import COLUMN_INDEX, DEPRECATED_MIN_MAX, MIN_MAX, NULL_COUNT, OFFSET_INDEX, distrusted

__all__ = ["misread_under", "without"]

_COLUMN_INDEX = ("column_index_offset", "column_index_length")
_OFFSET_INDEX = ("offset_index_offset", "offset_index_length")
_MIN_MAX = ("min_value", "max_value", "is_min_value_exact", "is_max_value_exact")

# What would be misread -> the fields of Statistics, and of ColumnChunk, that have it. Bounds and null counts are in
# column indexes as well.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    MIN_MAX: (_MIN_MAX, _COLUMN_INDEX),
    DEPRECATED_MIN_MAX: (("min", "max"), ()),
    NULL_COUNT: (("null_count",), _COLUMN_INDEX),
    COLUMN_INDEX: ((), _COLUMN_INDEX),
    OFFSET_INDEX: ((), (*_OFFSET_INDEX, *_COLUMN_INDEX)),
}


def misread_under(other: Footer, footer: Footer) -> dict[int, frozenset[str]]:
    """Say what of the statistics of a file would be taken for something else under the footer of another one.

    Parameters
    ----------
    other : Footer
        The other file's, whose columns are the same.
    footer : Footer
        The file's own.

    Returns
    -------
    dict of int to frozenset of str
        For those leaves where there is any: names of `numparq.statistics.distrust`.
    """
    found = {}
    for leaf in schema_of(footer):
        wrong = distrusted(footer.created_by, leaf) - distrusted(other.created_by, leaf)
        if _order(footer, leaf.index) != _order(other, leaf.index):
            wrong |= {MIN_MAX}
        if wrong:
            found[leaf.index] = wrong
    return found


def _order(footer: Footer, leaf: int) -> str | None:
    return None if footer.column_orders is None else footer.column_orders[leaf]


def without(row_group: Encoded, misread: dict[int, frozenset[str]]) -> Encoded:
    """Leave some of its statistics out of a RowGroup struct.

    Parameters
    ----------
    row_group : Encoded
        The struct.
    misread : dict of int to frozenset of str
        As `misread_under` gives it; where it is empty, the struct stays as it is.
    """
    if not misread:
        return row_group
    data, wanted = np.frombuffer(row_group, np.uint8), layout("RowGroup")
    group = record(wanted, read_record(data, len(data), wanted), data).to_dict()
    for leaf, names in misread.items():
        chunk = group["columns"][leaf]
        statistics = chunk.get("meta_data", {}).get("statistics", {})
        for name in names:
            for struct, fields in zip((statistics, chunk), _FIELDS[name], strict=True):
                for field in fields:
                    struct.pop(field, None)
    return Encoded(encode("RowGroup", group))
