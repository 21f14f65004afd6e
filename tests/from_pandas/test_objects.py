"""Shredding of Python objects, Categoricals, intervals, time zones, complex and sparse columns, as pyarrow does."""

from __future__ import annotations

import datetime
import decimal
import uuid
import zoneinfo

import dateutil.tz
import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
import pandas.core.arrays.arrow.extension_types  # noqa: E402  (registers pandas' extension types)

from numparq.errors import SchemaError  # noqa: E402
from numparq.from_pandas.column_values import NestedValuesError  # noqa: E402
from numparq.from_pandas.columns import array_values  # noqa: E402
from numparq.from_pandas.frame import shred_frame  # noqa: E402
from support.shredded import assert_shredded_like_pyarrow, rows_of  # noqa: E402

D = decimal.Decimal
TOKYO = zoneinfo.ZoneInfo("Asia/Tokyo")
MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 891011)


class Text(str):
    pass


OBJECTS = {
    "str": ["a", "", None, "größer 中 \U0001f600", np.nan, pd.NA, pd.NaT, "\x00"],
    "str-subclass": ["a", Text("é"), np.str_("中"), None],
    "bytes": [b"a", b"", None, b"\xff\x00"],
    "bytearray": [bytearray(b"ab"), None, b"c"],
    "bool": [True, None, False, np.True_],
    "int": [1, None, -(2**62), 0],
    "int-nan": [1, np.nan, 2**63 - 1],
    "int8": [np.int8(1), None, np.int8(-3)],
    "int-sizes": [np.int8(1), None, np.int16(-300)],
    "int8-int": [np.int8(1), 2],
    "float-sizes": [np.float16(1), np.float32(0.1)],
    "float": [1.5, None, -0.0, float("inf")],
    "float32": [np.float32(1.5), None],
    "float16": [np.float16(1.5), None, np.float16(2)],
    "int-float": [1, 2.5, None],
    "decimal": [D("1.50"), None, D("-0.001"), D("12345.6")],
    "decimal-exponent": [D("1E+3"), D("0E-7")],
    "decimal-zero": [D("0.00"), D(0)],
    "decimal-small": [D("0.05"), D("0.07")],
    "decimal-18": [D("999999999999999999"), D("-999999999999999999")],
    "decimal-38": [D("9" * 38), D("-1")],
    "decimal-40": [D("9" * 40), D("-1")],
    "date": [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)],
    "time": [datetime.time(23, 59, 59, 999999), None, datetime.time(0)],
    "uuid": [uuid.UUID(int=5), None, uuid.UUID(int=2**127 + 1)],
    "timedelta": [datetime.timedelta(-3, 5, 7), None],
    "datetime": [MOMENT, None, datetime.datetime(1, 1, 1)],
    "datetime-utc": [MOMENT.replace(tzinfo=datetime.UTC), None],
    "datetime-zones": [MOMENT.replace(tzinfo=TOKYO), MOMENT.replace(tzinfo=datetime.UTC)],
    "nulls": [None, np.nan, pd.NA, pd.NaT],
    "none": [],
}


def objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return pd.Series(array, dtype=object)


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_match_pyarrow(name):
    assert_shredded_like_pyarrow(pd.DataFrame({"a": objects(OBJECTS[name])}))


@pytest.mark.parametrize(
    "values",
    [
        ["a", 1],
        [True, 2],
        [b"a", "b"],
        [datetime.date(2020, 1, 1), MOMENT],
        [D(1), 1.5],
        [MOMENT, MOMENT.replace(tzinfo=TOKYO)],
        [uuid.UUID(int=1), "x"],
    ],
)
def test_mixed_types_are_refused(values):
    with pytest.raises(SchemaError, match=r"column 'odd'") as caught:
        shred_frame(pd.DataFrame({"odd": objects([None, *values])}))
    assert "datetimes" in str(caught.value) or all(type(value).__name__ in str(caught.value) for value in values)


@pytest.mark.parametrize(
    "values",
    [
        [object()],
        [2**64],
        [-1, 2**63],
        [D("Infinity")],
        [D("1e80")],
        [datetime.time(1, tzinfo=datetime.UTC)],
        [1.5, 2**53 + 1],
        [datetime.datetime(1, 1, 1), pd.Timestamp(5)],
    ],
)
def test_values_without_parquet_type_are_refused(values):
    with pytest.raises(SchemaError, match="'odd'"):
        shred_frame(pd.DataFrame({"odd": objects(values)})).columns[0].read_leaves(0, len(values))


def test_string_with_surrogate_names_its_row():
    shredded = shred_frame(pd.DataFrame({"odd": objects(["a", "b", "\ud800"])}))
    with pytest.raises(SchemaError, match=r"row 2: .*surrogates.*column 'odd'"):
        shredded.columns[0].read_leaves(1, 3)


def test_integers_beyond_int64_become_uint64():
    shredded = shred_frame(pd.DataFrame({"a": objects([2**63, None, 1])}))
    assert rows_of(shredded, 0, 3) == [[-(2**63), None, 1]]
    assert str(shredded.columns[0].node.logical) == "INTEGER(64, unsigned)"


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (pd.Timedelta(5), "ns", 5),
        (pd.Timedelta(5000), "us", 5),
        (np.timedelta64(5, "s"), "s", 5),
        (pd.Timestamp(5), "ns", 5),
        (pd.Timestamp(5000), "us", 5),
        (np.datetime64(5, "s"), "s", 5000),
        (np.datetime64(5, "D"), "s", 5 * 86_400_000),
    ],
)
def test_finest_unit_of_object_times(value, unit, expected):
    shredded = shred_frame(pd.DataFrame({"a": objects([None, value])}))
    assert shredded.columns[0].field.type.unit == unit
    assert rows_of(shredded, 0, 2) == [[None, expected]]


@pytest.mark.parametrize("values", [[[1]], [(1,)], [{"a": 1}], [np.zeros(2)], [None, {1}]])
def test_flat_inference_refuses_nested_objects(values):
    with pytest.raises(NestedValuesError):
        array_values(objects(values).to_numpy())


CATEGORICALS = {
    "strings": pd.Categorical(["b", None, "a", "b"], categories=["b", "unused", "a"]),
    "ordered": pd.Categorical(["b", "a"], categories=["a", "b"], ordered=True),
    "objects": pd.Categorical(["b", "a"], categories=pd.Index(["a", "b"], dtype=object)),
    "bytes": pd.Categorical([b"b", None], categories=pd.Index([b"a", b"b"], dtype=object)),
    "ints": pd.Categorical([3, None, 1], categories=[1, 2, 3], ordered=True),
    "floats": pd.Categorical([0.5, None, -0.5]),
    "bools": pd.Categorical([True, None, False]),
    "dates": pd.Categorical([datetime.date(2020, 1, 1), None]),
    "moments": pd.Categorical(pd.date_range("2020", periods=3)),
    "zoned": pd.Categorical(pd.date_range("2020", periods=3, tz="Europe/Paris")),
    "decimals": pd.Categorical([D("1.5"), D("2")]),
    "nothing": pd.Categorical([None, None], categories=pd.Index([], dtype=object)),
    "no-strings": pd.Categorical([], categories=["a"]),
    "many": pd.Categorical(range(200)),
}


@pytest.mark.parametrize("name", CATEGORICALS)
def test_categoricals_match_pyarrow(name):
    array = CATEGORICALS[name]
    rows = 6 if name == "many" else len(array)
    shredded = assert_shredded_like_pyarrow(pd.DataFrame({"a": array[:rows]}))
    (leaf,) = shredded.columns[0].read_leaves(0, rows)
    assert name == "bools" or leaf.codes.tolist() == array.codes[:rows].tolist()


@pytest.mark.parametrize(
    "array",
    [
        pd.arrays.IntervalArray.from_breaks([0, 1, 2]),
        pd.arrays.IntervalArray.from_tuples([(0.5, 1.0), None, (1.0, 2.0)], closed="both"),
        pd.arrays.IntervalArray.from_breaks(pd.date_range("2020", periods=3)),
        pd.arrays.IntervalArray.from_breaks(pd.date_range("2020", periods=3, tz="Asia/Tokyo")),
        pd.arrays.IntervalArray.from_tuples([(pd.Timestamp(0), pd.Timestamp(1)), None], closed="left"),
        pd.arrays.IntervalArray.from_breaks(pd.timedelta_range(0, periods=3)),
    ],
)
def test_intervals_match_pyarrow(array):
    assert_shredded_like_pyarrow(pd.DataFrame({"a": array}))


def test_interval_and_period_objects_and_categories():
    intervals = pd.arrays.IntervalArray.from_breaks([0, 1, 2])
    shredded = shred_frame(pd.DataFrame({"a": objects(list(intervals)), "b": pd.Categorical(intervals)}))
    assert rows_of(shredded, 0, 2) == [[0, 1], [1, 2]] * 2
    assert all(leaf.codes.tolist() == [0, 1] for leaf in shredded.columns[1].read_leaves(0, 2))
    some = pd.Categorical.from_codes([1, -1, 0], intervals)
    assert rows_of(shred_frame(pd.DataFrame({"b": some})), 0, 3) == [[1, None, 0], [2, None, 1]]
    shredded = shred_frame(pd.DataFrame({"a": objects([pd.Period("2020"), None])}))
    assert rows_of(shredded, 0, 2) == [[50, None]]
    assert shredded.columns[0].field.type.extension == "pandas.period"
    with pytest.raises(SchemaError, match="different dtypes"):
        shred_frame(pd.DataFrame({"a": objects([pd.Period("2020"), pd.Period("2020-01-01")])}))


@pytest.mark.parametrize(
    "zone",
    [
        "UTC",
        "Europe/Paris",
        TOKYO,
        datetime.UTC,
        dateutil.tz.gettz("Europe/Paris"),
        dateutil.tz.tzutc(),
        datetime.timezone(datetime.timedelta(hours=5, minutes=30)),
        datetime.timezone(-datetime.timedelta(hours=5, minutes=30)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_time_zones_match_pyarrow(zone, unit):
    moments = pd.DatetimeIndex(["2020-03-04 05:06:07", None, "1900-01-01"]).as_unit(unit).tz_localize(zone)
    assert_shredded_like_pyarrow(pd.DataFrame({"a": moments}))


def test_fixed_offset_time_zones():
    hour = pd.DatetimeIndex(["2020-01-01"])
    shredded = shred_frame(pd.DataFrame({"a": hour.tz_localize(dateutil.tz.tzoffset("x", 3600))}))
    assert shredded.columns[0].field.type.timezone == "+01:00"
    shredded = shred_frame(pd.DataFrame({"a": hour.tz_localize(datetime.timezone(datetime.timedelta(seconds=30)))}))
    assert shredded.columns[0].field.type.timezone == "UTC"  # Arrow has no offsets in seconds


def test_seconds_out_of_millisecond_range():
    shredded = shred_frame(pd.DataFrame({"a": np.array([2**62], "M8[s]")}))
    with pytest.raises(SchemaError, match="range of milliseconds"):
        shredded.columns[0].read_leaves(0, 1)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_arrays_become_structs(dtype):
    values = np.array([1 + 2j, complex("nan"), -0.0 - 1j, 5], dtype)
    shredded = shred_frame(pd.DataFrame({"a": values}))
    real, imag = rows_of(shredded, 0, 4)
    assert real == [value.tobytes() for value in values.real]
    assert imag == [value.tobytes() for value in values.imag]
    assert [child.name for child in shredded.columns[0].node.children] == ["real", "imag"]
    assert f'"numpy_type": "{dtype}"' in shredded.key_value_metadata["pandas"]
    assert rows_of(shredded, 1, 2) == [real[1:2], imag[1:2]]


def test_complex_objects_become_structs():
    shredded = shred_frame(pd.DataFrame({"a": objects([1 + 2j, None, np.complex64(3j)])}))
    expected = [[None if v is None else np.float64(v).tobytes() for v in side] for side in ((1, None, 0), (2, None, 3))]
    assert rows_of(shredded, 0, 3) == expected
    assert rows_of(shredded, 1, 2) == [[None], [None]]


@pytest.mark.parametrize(
    ("dense", "fill"),
    [
        ([0, 0, 1, 0, 5], 0),
        ([np.nan, 1.5, np.nan], np.nan),
        ([0.0, np.nan, 2.0], 0.0),
        ([True, False], False),
        (np.array([3, 1, 3], "u1"), 3),
        (np.array(["2020", "NaT", "1970"], "M8[s]"), np.datetime64("NaT", "s")),
        ([], 0),
        (np.array([1j, 0, 0]), 0),
    ],
)
def test_sparse_arrays_match_dense(dense, fill):
    array = pd.arrays.SparseArray(dense, fill_value=fill)
    shredded, plain = shred_frame(pd.DataFrame({"a": array})), shred_frame(pd.DataFrame({"a": np.array(dense)}))
    assert rows_of(shredded, 0, len(dense)) == rows_of(plain, 0, len(dense))
    for start in range(len(dense)):
        assert rows_of(shredded, start, len(dense) - 1) == rows_of(plain, start, len(dense) - 1)
    blocks = shred_frame(pd.DataFrame({"a": pd.arrays.SparseArray(dense, fill_value=fill, kind="block")}))
    assert rows_of(blocks, 0, len(dense)) == rows_of(plain, 0, len(dense))
    assert [column.node for column in shredded.columns] == [column.node for column in plain.columns]


def test_longdouble_column_is_refused():
    with pytest.raises(SchemaError, match=r"longdouble|float128"):
        shred_frame(pd.DataFrame({"a": np.zeros(2, np.longdouble)}))
