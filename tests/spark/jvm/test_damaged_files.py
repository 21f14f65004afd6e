"""Files whose values break their types, through `collect`: what Spark's reader gives, or an error with its place."""

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


def written(column, name="c"):
    """Write two columns as plainly as can be: bytes of pages may be changed for others of as many."""
    buffer = io.BytesIO()
    table = pa.table({"id": list(range(len(column))), name: column})
    pq.write_table(table, buffer, compression="none", use_dictionary=False, store_schema=False, write_statistics=False)
    return buffer.getvalue()


def told(data, name, **said):
    """Have the footer say something else of an element of the schema."""
    footer = footer_of(data)
    (element,) = [each for each in footer.schema if each.name in (name, name.encode())]
    element.logicalType = None
    for key, value in said.items():
        setattr(element, key, value)
    raw = to_bytes(footer)
    return data[: footer_start(data)] + raw + struct.pack("<I", len(raw)) + b"PAR1"


def spliced(data, other, path):
    """Give a file with the pages of a column of another one."""
    starts, sizes = [], []
    for each in (data, other):
        chunks = footer_of(each).row_groups[0].columns
        facts = next(c.meta_data for c in chunks if c.meta_data.path_in_schema == path.encode().split(b"."))
        starts.append(facts.data_page_offset)
        sizes.append(facts.total_compressed_size)
    assert sizes[0] == sizes[1]
    pages = other[starts[1] : starts[1] + sizes[1]]
    return data[: starts[0]] + pages + data[starts[0] + sizes[0] :]


def decimals(values, kind, precision, name="c"):
    return told(written(pa.array(values, kind)), name, converted_type=DECIMAL, precision=precision, scale=1)


def wide(number, size):
    return number.to_bytes(size, "big", signed=True)


def of(values, kind, converted, name="c"):
    return told(written(pa.array(values, kind)), name, converted_type=converted)


def listed(*lengths):
    rows, number = [], 0
    for length in lengths:
        rows.append([{"x": each, "y": each} for each in range(number, number + length)])
        number += length
    return written(pa.array(rows, pa.list_(PAIRS)))


def structs(*rows):
    return written(pa.array([None if row is None else {"x": row, "y": row} for row in rows], PAIRS))


def maps(*rows):
    return written(pa.array(rows, MAP))


DISAGREE, NO_DECIMAL = "the columns of a group do not agree", "does not fit in precision of"
HOSTILE = {
    "null keys of a map": (told(maps([("a", 1)], None, []), "key", repetition_type=1), "a key of a map is null"),
    "levels of a struct": (spliced(structs(1, None, 3, 4), structs(1, 2, None, 4), "c.y"), DISAGREE),
    "levels of a list": (spliced(listed(2, 1), listed(1, 2), "c.list.element.y"), DISAGREE),
    "levels of a map": (
        spliced(maps([("a", 1), ("b", 2)], [("c", 3)]), maps([("a", 1)], [("b", 2), ("c", 3)]), "c.key_value.value"),
        DISAGREE,
    ),
    "no UTF-8": (of([b"a", b"\xff\xfe"], pa.binary(), UTF8), "a string is not valid UTF-8"),
    "no UTF-8 in a list": (of([[b"a", b"\xff"], None], pa.list_(pa.binary()), UTF8, "element"), "not valid UTF-8"),
    "no UTF-8 as a key": (of([[(b"\xff", 1)], None], pa.map_(pa.binary(), pa.int64()), UTF8, "key"), "not valid UTF-8"),
    "no UTF-8 in JSON": (of([b"a", b"\xff"], pa.binary(), JSON), "not valid UTF-8"),
    "no UTF-8 in ENUM": (of([b"a", b"\xff"], pa.binary(), ENUM), "cannot be cast to string for Spark: Invalid UTF8"),
    "DECIMAL of INT32": (decimals([12, 1234567], pa.int32(), 4), NO_DECIMAL),
    "DECIMAL of INT64": (decimals([12, 10**17], pa.int64(), 11), NO_DECIMAL),
    "DECIMAL of fixed bytes": (decimals([wide(1, 16), wide(10**38, 16)], pa.binary(16), 20), NO_DECIMAL),
    "DECIMAL of bytes": (decimals([b"\1", wide(10**30, 20)], pa.binary(), 20), NO_DECIMAL),
    "DECIMAL of too many bytes": (decimals([b"\1", b"\x7f" * 40], pa.binary(), 38), "does not fit DECIMAL"),
    "DECIMAL of no bytes": (decimals([b"\1", b""], pa.binary(), 20), "a DECIMAL value has no bytes"),
    "DECIMAL in a list": (decimals([[12, 1234567], None], pa.list_(pa.int32()), 4, "element"), NO_DECIMAL),
    "TIME of a day to come": (of([12, 86_400_000], pa.int32(), TIME_MS), "86400000000000 ns is not a time"),
    "TIME before its day": (of([12, -1], pa.int64(), TIME_US), "-1000 ns is not a time of day"),
    "TIMESTAMP out of bounds": (of([12, 1 << 62], pa.int64(), MOMENT_MS), "out of bounds timestamp"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_error_with_its_place(spark, tmp_path, name):
    """Beside a sound file, in the same split."""
    data, said = HOSTILE[name]
    (tmp_path / "bad.parquet").write_bytes(data)
    place = r"file '[^']*bad\.parquet', (row group 0, )?column 'c"
    with pytest.raises(Exception, match=rf"(InvalidFileError|CorruptPageError): .*{said}(?s:.*){place}"):
        numparq.spark.read(spark, str(tmp_path)).collect()


@pytest.mark.driver_reads
@pytest.mark.parametrize("name", ["DECIMAL of INT32", "no UTF-8", "levels of a struct"])
def test_the_driver_leaves_it_to_tasks(spark, tmp_path, name):
    data, said = HOSTILE[name]
    (tmp_path / "bad.parquet").write_bytes(data)
    found = numparq.spark.read(spark, str(tmp_path), filters="id >= 0")
    with pytest.raises(Exception, match=rf"{said}.*bad\.parquet"):
        found.collect()


def test_one_of_several_files_of_a_split(spark, tmp_path):
    """Which have their columns made together: it is the one that is named."""
    for number in range(4):
        data = decimals([12, 1234567 if number == 2 else 13], pa.int32(), 4)
        (tmp_path / f"{number}.parquet").write_bytes(data)
    found = numparq.spark.read(spark, str(tmp_path), min_splits=1)
    assert found.rdd.getNumPartitions() == 1
    with pytest.raises(Exception, match=rf"{NO_DECIMAL}.*file '[^']*2\.parquet', column 'c'"):
        found.collect()


SAME = {
    "small integers": of([12, 300], pa.int32(), INT8),
    "short integers": of([12, 70_000], pa.int32(), INT16),
    "keys twice": maps([("a", 1), ("a", 2)], []),
    "keys that would be null, of none": told(maps([], None), "key", repetition_type=1),
    "ENUM": of([b"a", None], pa.binary(), ENUM),
    "JSON": of([b"{}", None], pa.binary(), JSON),
    "dates": of([-(1 << 20), 1 << 20], pa.int32(), DATE),
}


@pytest.mark.parametrize("name", SAME)
def test_as_spark_has_it(spark, tmp_path, name):
    (tmp_path / "a.parquet").write_bytes(SAME[name])
    wanted = spark.read.parquet(str(tmp_path)).selectExpr("id", "cast(c as string) as c")
    found = numparq.spark.read(spark, str(tmp_path)).selectExpr("id", "cast(c as string) as c")
    assert sorted(map(tuple, found.collect()), key=str) == sorted(map(tuple, wanted.collect()), key=str)
    assert numparq.spark.read(spark, str(tmp_path)).schema == spark.read.parquet(str(tmp_path)).schema
