"""Row groups whose leaf columns of nothing but nulls get a type: encoded RowGroup structs, rewritten."""

from __future__ import annotations

from collections.abc import Mapping

from numparq.format.thrift.encode import EncodedThrift, encode_field
from numparq.format.thrift.walk import (
    field_starts,
    join_fields,
    read_list_header,
    read_number,
    skip_value,
    split_fields,
    split_list,
)
from numparq.kernels.thrift import wire

# Field ids in RowGroup, ColumnChunk, ColumnMetaData and SortingColumn.
_COLUMNS, _BYTES, _NUM_ROWS, _SORTING, _FILE_OFFSET, _COMPRESSED_BYTES = 1, 2, 3, 4, 5, 6
_META_DATA = 3
_TYPE, _CHUNK_BYTES, _CHUNK_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 1, 6, 7, 9, 11
_COLUMN = 1

_TOTALS = {_BYTES: ("total_byte_size", _CHUNK_BYTES), _COMPRESSED_BYTES: ("total_compressed_size", _CHUNK_COMPRESSED)}


def retype_chunks(row_group: EncodedThrift, types: Mapping[int, int]) -> EncodedThrift:
    """Return a RowGroup with other physical types of column chunks, by column: a byte of each changes.

    The chunks must have only nulls: PLAIN pages without values are the same for all types.
    """
    out = bytearray(row_group)
    count, _, position = read_list_header(row_group, field_starts(row_group, 0)[_COLUMNS])
    for column in range(count):
        physical = types.get(column)
        if physical is not None:
            meta_data = field_starts(row_group, position)[_META_DATA]
            out[field_starts(row_group, meta_data)[_TYPE]] = physical << 1  # zigzag
        position = skip_value(row_group, position, wire.STRUCT)
    return EncodedThrift(bytes(out))


def row_group_rows(row_group: EncodedThrift) -> int:
    """Return the number of rows of a RowGroup."""
    return read_number(row_group, field_starts(row_group, 0)[_NUM_ROWS])


def replace_chunks(row_group: EncodedThrift, counts: Mapping[int, int], replacement: EncodedThrift) -> EncodedThrift:
    """Return a RowGroup in which column chunks, by column, give way to so many of the next ones of another RowGroup.

    Totals follow. The sort order no longer names columns that were replaced, which are equal in all rows.
    """
    fields = split_fields(row_group)
    others = iter(split_list(split_fields(replacement)[_COLUMNS][1]))
    before, after = split_list(fields[_COLUMNS][1]), []
    columns: dict[int, int] = {}  # column before -> column after, of those that stay
    for number, chunk in enumerate(before):
        if number in counts:
            after += [next(others) for _ in range(counts[number])]
        else:
            columns[number] = len(after)
            after.append(chunk)
    fields[_COLUMNS] = wire.LIST, encode_field("RowGroup", "columns", list(map(EncodedThrift, after)))
    for field, (name, part) in _TOTALS.items():
        if field in fields:
            total = read_number(fields[field][1], 0)
            total += sum(_chunk_number(chunk, part) for chunk in after)
            total -= sum(_chunk_number(chunk, part) for chunk in before)
            fields[field] = wire.I64, encode_field("RowGroup", name, total)
    if _FILE_OFFSET in fields:
        first = min(
            offset
            for chunk in after
            for part in (_DATA_PAGE, _DICTIONARY_PAGE)
            if (offset := _chunk_number(chunk, part))
        )
        fields[_FILE_OFFSET] = wire.I64, encode_field("RowGroup", "file_offset", first)
    if _SORTING in fields:
        fields[_SORTING] = wire.LIST, _moved_sorting(fields[_SORTING][1], columns)
    return EncodedThrift(join_fields(fields))


def _chunk_number(chunk: bytes, field: int) -> int:
    """Return a number of a chunk's ColumnMetaData; 0 if it is absent."""
    start = field_starts(chunk, field_starts(chunk, 0)[_META_DATA]).get(field)
    return 0 if start is None else read_number(chunk, start)


def _moved_sorting(sorting: bytes, columns: Mapping[int, int]) -> bytes:
    """Return SortingColumns with the new numbers of their columns, without columns that have none."""
    moved = []
    for struct in split_list(sorting):
        fields = split_fields(struct)
        column = columns.get(read_number(fields[_COLUMN][1], 0))
        if column is not None:
            fields[_COLUMN] = wire.I32, encode_field("SortingColumn", "column_idx", column)
            moved.append(EncodedThrift(join_fields(fields)))
    return encode_field("RowGroup", "sorting_columns", moved)
