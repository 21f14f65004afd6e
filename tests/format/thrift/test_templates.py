"""Structs encoded from records of words: byte for byte as `encode_struct`, of random values, in one call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.format.thrift.encode import encode_field, encode_struct
from numparq.format.thrift.templates import RecordStrings, StructTemplate
from numparq.kernels.thrift.encode import ABSENT

I32 = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-70, 70)
I64 = st.integers(ABSENT + 1, (1 << 63) - 1) | st.integers(-70, 70)
TEXT = st.binary(max_size=200)
ENCODED = "columns"
# Struct -> fields of the template and their values.
FIELDS: dict[str, dict[str, st.SearchStrategy]] = {
    "ColumnIndex": {
        "null_pages": st.lists(st.booleans(), max_size=20),
        "min_values": st.lists(TEXT, max_size=20),
        "max_values": st.lists(TEXT, max_size=3),
        "boundary_order": st.integers(0, 2),
        "null_counts": st.lists(I64, max_size=20),
    },
    "OffsetIndex": {
        "page_locations": st.lists(
            st.fixed_dictionaries({"offset": I64, "compressed_page_size": I32, "first_row_index": I64}), max_size=20
        ),
        "unencoded_byte_array_data_bytes": st.none() | st.lists(I64, max_size=3),
    },
    "PageHeader": {
        "type": st.integers(0, 3),
        "uncompressed_page_size": I32,
        "compressed_page_size": I32,
        "crc": st.none() | I32,
        "data_page_header_v2.num_values": I32,
        "data_page_header_v2.num_nulls": I32,
        "data_page_header_v2.num_rows": I32,
        "data_page_header_v2.encoding": I32,
        "data_page_header_v2.definition_levels_byte_length": I32,
        "data_page_header_v2.repetition_levels_byte_length": I32,
        "data_page_header_v2.is_compressed": st.none() | st.booleans(),
        "data_page_header_v2.statistics.max": st.none() | TEXT,
        "data_page_header_v2.statistics.nan_count": st.none() | I64,
    },
    "RowGroup": {
        ENCODED: st.just([]),
        "total_byte_size": I64,
        "num_rows": I64,
        "ordinal": st.none() | st.integers(-(1 << 15), (1 << 15) - 1),
    },
}


def to_words(struct: str, value: dict[str, Any], items: list[int], strings: RecordStrings) -> list[int]:
    """Return the words of a record, given its values by path."""
    words: list[int] = []
    for path in FIELDS[struct]:
        field = value[path]
        is_long = path.endswith(("values", "counts", "pages", "locations", "bytes", "max"))
        if path == ENCODED:
            words += strings.add(encode_field(struct, path, field))
        elif path.endswith("num_values"):
            words.append(field)
        elif field is None:
            words += [ABSENT, 0] if is_long else [ABSENT]
        elif isinstance(field, bytes):
            words += strings.add(field)
        elif isinstance(field, list):
            elements: list[int] = []
            for item in field:
                elements += (
                    strings.add(item)
                    if isinstance(item, bytes)
                    else [item[name] for name in ("offset", "compressed_page_size", "first_row_index")]
                    if isinstance(item, dict)
                    else [item]
                )
            words += [len(items), len(field)]
            items += elements
        else:
            words.append(field)
    return words


def nested(value: dict[str, Any]) -> dict[str, Any]:
    """Return values by path as the dict of `encode_struct`, without structs that have no value."""
    found: dict[str, Any] = {}
    for path, field in value.items():
        if field is not None:
            *outer, name = path.split(".")
            inner = found
            for group in outer:
                inner = inner.setdefault(group, {})
            inner[name] = field
    return found


@given(data=st.data(), struct=st.sampled_from(sorted(FIELDS)))
def test_equal_to_encode_struct(data, struct):
    values = data.draw(st.lists(st.fixed_dictionaries(FIELDS[struct]), max_size=5))
    items: list[int] = []
    strings = RecordStrings()
    words = [word for value in values for word in to_words(struct, value, items, strings)]
    encoded, ends = StructTemplate(struct, list(FIELDS[struct]), [ENCODED]).encode(words, items, strings)
    starts = [0, *ends[:-1]]
    found = [bytes(encoded[start:end]) for start, end in zip(starts, ends, strict=False)]
    assert found == [encode_struct(struct, nested(value)) for value in values]


def test_numbers_must_fit_their_field():
    template = StructTemplate("PageLocation", ["offset", "compressed_page_size", "first_row_index"])
    with pytest.raises(ValueError, match="does not fit its field of PageLocation"):
        template.encode([4, 1 << 31, 0], [], RecordStrings())


def test_structs_without_values_are_absent():
    template = StructTemplate("ColumnChunk", ["file_offset", "meta_data.statistics.null_count"])
    encoded, _ = template.encode([0, ABSENT], [], RecordStrings())
    assert bytes(encoded) == encode_struct("ColumnChunk", {"file_offset": 0})
