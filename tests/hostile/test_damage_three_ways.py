"""``on_error="skip"``, `salvage` and `verify` agree on damaged files: rows, losses, and what is wrong."""

from __future__ import annotations

import datetime
import io
from itertools import product

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import InvalidFileError
from numparq.format import LogicalType, SchemaNode
from numparq.format.schema import REQUIRED
from numparq.kernels.enums import BYTE_ARRAY
from numparq.tools.salvage.file import salvage
from support.compare import assert_frames_equal
from support.data.variants import nested_file
from support.files.page_damage import (
    StoredPage,
    damage_body,
    damage_header,
    data_pages,
    dictionary_page,
    edit_footer,
    flip_bytes,
    footer_of,
    pages_of,
)

ROWS, GROUP = 90, 30
DAMAGED_GROUP = 1
LEGACY = {"org.apache.spark.version": "2.4.0"}

FILES = [(True, LEGACY), (False, LEGACY), (True, {})]  # page index, key-value metadata
DAYS = [datetime.date(1500 + 7 * (n // 3), 1 + n // 3 % 12, 1 + n // 3 % 28) for n in range(ROWS)]
MOMENTS = [datetime.datetime(1890 + n // 3, 1 + n // 3 % 12, 5, n // 3 % 24) for n in range(ROWS)]
TYPES = {
    "days": (DAYS, pa.date32(), {}),
    "moments": (MOMENTS, pa.timestamp("us", "UTC"), {}),
    "int96": (MOMENTS, pa.timestamp("ns"), {"use_deprecated_int96_timestamps": True}),
    "texts": ([f"text {n // 3}" for n in range(ROWS)], pa.string(), {}),
}
SHAPES = {
    "flat": (lambda values: values, lambda kind: kind, "c"),
    "struct": (lambda values: [{"x": value} for value in values], lambda kind: pa.struct([("x", kind)]), "c.x"),
    "list": (
        lambda values: [[value] * (n % 3) for n, value in enumerate(values)],
        pa.list_,
        "c.list.element",
    ),
}


def arrow_file(kind: str, shape: str, index: bool, calendar: dict) -> tuple[bytes, str]:
    """Return a file of one column of dates or times beside row numbers, and the path of its leaf."""
    values, arrow_type, options = TYPES[kind]
    nest, type_of, leaf = SHAPES[shape]
    table = pa.table({"n": range(ROWS), "c": pa.array(nest(values), type_of(arrow_type))})
    out = io.BytesIO()
    options = {"data_page_size": 60, "write_batch_size": 10, "compression": "none", "store_schema": False, **options}
    with pq.ParquetWriter(
        out, table.schema, write_page_checksum=True, write_page_index=index, use_dictionary=["c", leaf], **options
    ) as writer:
        writer.write_table(table, row_group_size=GROUP)
        writer.add_key_value_metadata(calendar)
    return out.getvalue(), leaf


def variant_file(shape: str, index: bool, calendar: dict) -> tuple[bytes, str]:
    """Return a file of VARIANTs beside row numbers: not shredded, or lists of shredded ones in single pages."""
    if shape == "list":
        return nested_file()[0], "l.list.element.typed_value.a.typed_value"
    parts = [SchemaNode(name, repetition=REQUIRED, physical=BYTE_ARRAY) for name in ("metadata", "value")]
    schema = {"c": SchemaNode("c", logical=LogicalType("VARIANT"), children=tuple(parts))}
    frame = pd.DataFrame({"n": range(ROWS), "c": [{"a": n // 3, "b": f"text {n // 3}"} for n in range(ROWS)]})
    options = {"row_group_size": GROUP, "max_rows_per_page": 10, "compression": "none"}
    data = numparq.to_parquet(frame, schema=schema, write_page_index=index, key_value_metadata=calendar, **options)
    return data, "c.value"


def edit_chunk(leaf: str, **fields):
    """Return an edit of the footer: fields of the damaged chunk's metadata grow."""

    def edit(footer) -> None:
        for chunk in footer.row_groups[DAMAGED_GROUP].columns:
            if b".".join(chunk.meta_data.path_in_schema).decode() == leaf:
                for name, by in fields.items():
                    setattr(chunk.meta_data, name, getattr(chunk.meta_data, name) + by)

    return edit


def damage_index(data: bytes, leaf: str) -> bytes:
    for chunk in footer_of(data).row_groups[DAMAGED_GROUP].columns:
        if b".".join(chunk.meta_data.path_in_schema).decode() == leaf and chunk.offset_index_offset:
            return flip_bytes(data, chunk.offset_index_offset + chunk.offset_index_length // 2, by=0x11)
    return data


def middle_page(data: bytes, leaf: str) -> StoredPage:
    pages = data_pages(data, DAMAGED_GROUP, leaf)
    return pages[len(pages) // 2]


DAMAGES = {
    "body": lambda data, leaf: damage_body(data, middle_page(data, leaf)),
    "last body": lambda data, leaf: damage_body(data, data_pages(data, DAMAGED_GROUP, leaf)[-1]),
    "header": lambda data, leaf: damage_header(data, middle_page(data, leaf)),
    "dictionary": lambda data, leaf: damage_body(data, dictionary_page(data, DAMAGED_GROUP, leaf)),
    "chunk values": lambda data, leaf: edit_footer(data, edit_chunk(leaf, num_values=1)),
    "chunk position": lambda data, leaf: edit_footer(data, edit_chunk(leaf, data_page_offset=1)),
    "chunk codec": lambda data, leaf: edit_footer(data, edit_chunk(leaf, codec=1)),
    "index": damage_index,
}


HARMLESS = ("chunk position", "index")  # a chunk begins with its dictionary page


def check_three_ways(data: bytes, damaged: bytes, tmp_path) -> bool:
    """Check that all agree; return whether rows are lost."""
    path, out = tmp_path / "damaged.parquet", tmp_path / "saved.parquet"
    path.write_bytes(damaged)
    whole = numparq.read_parquet(data)
    skipped = numparq.read_parquet(path, on_error="skip")
    lost = skipped.attrs.pop("numparq.lost")
    errors = [one for one in numparq.verify(path) if one.severity == "error"]
    if skipped.empty:
        with pytest.raises(InvalidFileError):
            salvage(path, out, force=True)
        return True
    report = salvage(path, out, force=True)
    saved = numparq.read_parquet(out)
    assert_frames_equal(saved.reset_index(drop=True), skipped.reset_index(drop=True))
    assert report.num_rows == len(saved)
    assert numparq.verify(out) == [] or not [one for one in numparq.verify(out) if one.severity == "error"]
    assert bool(report.lost) == bool(lost)
    expected = whole[list(skipped.columns)]
    rows = [n for one in lost if one.column.split(".")[0] in skipped.columns for n in range(*one.rows)]
    assert_frames_equal(skipped.reset_index(drop=True), expected.drop(index=set(rows)).reset_index(drop=True))
    if lost:
        assert errors
    elif damaged != data:  # harmless: named as what it is, and no page is called damaged
        assert errors
        assert not [one for one in errors if one.check.startswith(("page-crc", "page-values", "page-levels"))]
    return bool(lost)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", TYPES)
def test_skip_salvage_and_verify_agree(tmp_path, kind, damage):
    outcomes = set()
    for shape, (index, calendar) in product(SHAPES, FILES):
        data, leaf = arrow_file(kind, shape, index, calendar)
        outcomes.add(check_three_ways(data, DAMAGES[damage](data, leaf), tmp_path))
    assert outcomes == {damage not in HARMLESS}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("damage", DAMAGES)
def test_variants(tmp_path, damage):
    outcomes = set()
    for shape, (index, calendar) in product(("flat", "list"), FILES):
        data, leaf = variant_file(shape, index, calendar)
        if damage != "dictionary" or pages_of(data, DAMAGED_GROUP, leaf)[0].is_dictionary:
            outcomes.add(check_three_ways(data, DAMAGES[damage](data, leaf), tmp_path))
    assert outcomes
    assert damage not in ("body", "header", "index") or outcomes == {damage != "index"}
