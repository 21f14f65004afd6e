"""Files with values that are invalid for their types, through `collect`: Spark's result, or an error with location."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from support.files.builder import to_bytes
from support.files.page_damage import footer_of, footer_start

pytestmark = [pytest.mark.spark, pytest.mark.slow]

UTF8, ENUM, DECIMAL, DATE, TIME_MS, TIME_US, MOMENT_MS, INT8, INT16, JSON = 0, 4, 5, 6, 7, 8, 9, 15, 16, 19
PAIRS = pa.struct([("x", pa.int64()), ("y", pa.int64())])
MAP = pa.map_(pa.string(), pa.int64())


def file_of(column, name="c"):
    """Write two columns uncompressed and PLAIN, so that page bytes can be exchanged."""
    buffer = io.BytesIO()
    table = pa.table({"id": list(range(len(column))), name: column})
    pq.write_table(table, buffer, compression="none", use_dictionary=False, store_schema=False, write_statistics=False)
    return buffer.getvalue()


def with_element(data, name, **fields):
    """Return the file with changed fields of one schema element in the footer."""
    footer = footer_of(data)
    (element,) = [each for each in footer.schema if each.name in (name, name.encode())]
    element.logicalType = None
    for key, value in fields.items():
        setattr(element, key, value)
    raw = to_bytes(footer)
    return data[: footer_start(data)] + raw + struct.pack("<I", len(raw)) + b"PAR1"


def with_pages_of(data, other, path):
    """Return the file with one column's pages taken from another file."""
    starts, sizes = [], []
    for each in (data, other):
        chunks = footer_of(each).row_groups[0].columns
        meta_data = next(c.meta_data for c in chunks if c.meta_data.path_in_schema == path.encode().split(b"."))
        starts.append(meta_data.data_page_offset)
        sizes.append(meta_data.total_compressed_size)
    assert sizes[0] == sizes[1]
    pages = other[starts[1] : starts[1] + sizes[1]]
    return data[: starts[0]] + pages + data[starts[0] + sizes[0] :]


def decimals(values, kind, precision, name="c"):
    return with_element(file_of(pa.array(values, kind)), name, converted_type=DECIMAL, precision=precision, scale=1)


def wide(number, size):
    return number.to_bytes(size, "big", signed=True)


def annotated(values, kind, converted, name="c"):
    return with_element(file_of(pa.array(values, kind)), name, converted_type=converted)


def listed(*lengths):
    rows, number = [], 0
    for length in lengths:
        rows.append([{"x": each, "y": each} for each in range(number, number + length)])
        number += length
    return file_of(pa.array(rows, pa.list_(PAIRS)))


def structs(*rows):
    return file_of(pa.array([None if row is None else {"x": row, "y": row} for row in rows], PAIRS))


def maps(*rows):
    return file_of(pa.array(rows, MAP))


DISAGREE, BAD_DECIMAL = "the columns of a group do not agree", "does not fit in precision of"
HOSTILE = {
    "null keys of a map": (
        with_element(maps([("a", 1)], None, []), "key", repetition_type=1),
        "a map has a null key",
    ),
    "levels of a struct": (with_pages_of(structs(1, None, 3, 4), structs(1, 2, None, 4), "c.y"), DISAGREE),
    "levels of a list": (with_pages_of(listed(2, 1), listed(1, 2), "c.list.element.y"), DISAGREE),
    "levels of a map": (
        with_pages_of(
            maps([("a", 1), ("b", 2)], [("c", 3)]), maps([("a", 1)], [("b", 2), ("c", 3)]), "c.key_value.value"
        ),
        DISAGREE,
    ),
    "no UTF-8": (annotated([b"a", b"\xff\xfe"], pa.binary(), UTF8), "a string is not valid UTF-8"),
    "no UTF-8 in a list": (
        annotated([[b"a", b"\xff"], None], pa.list_(pa.binary()), UTF8, "element"),
        "not valid UTF-8",
    ),
    "no UTF-8 as a key": (
        annotated([[(b"\xff", 1)], None], pa.map_(pa.binary(), pa.int64()), UTF8, "key"),
        "not valid UTF-8",
    ),
    "no UTF-8 in JSON": (annotated([b"a", b"\xff"], pa.binary(), JSON), "not valid UTF-8"),
    "no UTF-8 in ENUM": (
        annotated([b"a", b"\xff"], pa.binary(), ENUM),
        "cannot be cast to string for Spark: Invalid UTF8",
    ),
    "DECIMAL of INT32": (decimals([12, 1234567], pa.int32(), 4), BAD_DECIMAL),
    "DECIMAL of INT64": (decimals([12, 10**17], pa.int64(), 11), BAD_DECIMAL),
    "DECIMAL of fixed bytes": (decimals([wide(1, 16), wide(10**38, 16)], pa.binary(16), 20), BAD_DECIMAL),
    "DECIMAL of bytes": (decimals([b"\1", wide(10**30, 20)], pa.binary(), 20), BAD_DECIMAL),
    "DECIMAL of too many bytes": (decimals([b"\1", b"\x7f" * 40], pa.binary(), 38), "does not fit DECIMAL"),
    "DECIMAL in a list": (decimals([[12, 1234567], None], pa.list_(pa.int32()), 4, "element"), BAD_DECIMAL),
    "TIME of a day to come": (annotated([12, 86_400_000], pa.int32(), TIME_MS), "86400000000000 ns is not a time"),
    "TIME before its day": (annotated([12, -1], pa.int64(), TIME_US), "-1000 ns is not a time of day"),
    "TIMESTAMP out of bounds": (annotated([12, 1 << 62], pa.int64(), MOMENT_MS), "out of bounds timestamp"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_invalid_values_raise_with_file_and_column(spark, tmp_path, name):
    """A valid file is read in the same split."""
    data, message = HOSTILE[name]
    (tmp_path / "bad.parquet").write_bytes(data)
    place = r"file '[^']*bad\.parquet', (row group 0, )?column 'c"
    with pytest.raises(Exception, match=rf"(InvalidFileError|CorruptPageError): .*{message}(?s:.*){place}"):
        numparq.spark.read(spark, str(tmp_path)).collect()


@pytest.mark.driver_reads
@pytest.mark.parametrize("name", ["DECIMAL of INT32", "no UTF-8", "levels of a struct"])
def test_invalid_values_in_driver_reads(spark, tmp_path, name):
    data, message = HOSTILE[name]
    (tmp_path / "bad.parquet").write_bytes(data)
    found = numparq.spark.read(spark, str(tmp_path), filters="id >= 0")
    with pytest.raises(Exception, match=rf"{message}.*bad\.parquet"):
        found.collect()


def test_error_names_one_of_several_files(spark, tmp_path):
    """Columns of the split's files are built together; the error still names the right file."""
    for number in range(4):
        data = decimals([12, 1234567 if number == 2 else 13], pa.int32(), 4)
        (tmp_path / f"{number}.parquet").write_bytes(data)
    found = numparq.spark.read(spark, str(tmp_path), min_splits=1)
    assert found.rdd.getNumPartitions() == 1
    with pytest.raises(Exception, match=rf"{BAD_DECIMAL}.*file '[^']*2\.parquet', column 'c'"):
        found.collect()


SAME = {
    "small integers": annotated([12, 300], pa.int32(), INT8),
    "short integers": annotated([12, 70_000], pa.int32(), INT16),
    "keys twice": maps([("a", 1), ("a", 2)], []),
    "keys that would be null, of none": with_element(maps([], None), "key", repetition_type=1),
    "ENUM": annotated([b"a", None], pa.binary(), ENUM),
    "JSON": annotated([b"{}", None], pa.binary(), JSON),
    "dates": annotated([-(1 << 20), 1 << 20], pa.int32(), DATE),
}


@pytest.mark.parametrize("name", SAME)
def test_odd_values_match_spark(spark, tmp_path, name):
    (tmp_path / "a.parquet").write_bytes(SAME[name])
    expected = spark.read.parquet(str(tmp_path)).selectExpr("id", "cast(c as string) as c")
    found = numparq.spark.read(spark, str(tmp_path)).selectExpr("id", "cast(c as string) as c")
    assert sorted(map(tuple, found.collect()), key=str) == sorted(map(tuple, expected.collect()), key=str)
    assert numparq.spark.read(spark, str(tmp_path)).schema == spark.read.parquet(str(tmp_path)).schema
