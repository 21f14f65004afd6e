"""Files with forged hints: every text and annotation that may suggest a type other than the stored one.

``python -m support.hostile.forged_hints SEED COUNT MOST`` reads these cases in all ways, in a process of its own, and
prints at most so many problems. Values must equal those of the file without the hint, or the read must end in a
ParquetError.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import faulthandler
import io
import json
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.data.arrow_types import FLAT, random_type
from support.files.edited_footers import THRIFT, write_with_footer

from .key_value_damage import VALUES
from .plain_values import plain_column, plain_series

Rng = np.random.Generator
Edit = Callable[[Any], None]

_D = decimal.Decimal
TABLES: dict[str, Any] = {
    "numbers": pa.table(
        {
            "a": pa.array([1, None, 3], pa.int64()),
            "b": pa.array([1.5, None, -2.25]),
            "c": pa.array([1, 2, -3], pa.int32()),
            "d": pa.array([True, None, False]),
            "e": pa.array([0.5, 2, None], pa.float32()),
        }
    ),
    "texts": pa.table(
        {
            "a": pa.array(["x", None, "1"]),
            "b": pa.array([b"\xff", None, b"2020"]),
            "c": pa.array([b"abc", b"abd", None], pa.binary(3)),
            "d": pa.array([b"0123456789abcdef", None, bytes(16)], pa.binary(16)),
            "e": pa.array(["{}", "", "null"]),
        }
    ),
    "moments": pa.table(
        {
            "a": pa.array([0, None, 10**15], pa.timestamp("us")),
            "b": pa.array([0, None, 10**12], pa.timestamp("ms", "UTC")),
            "c": pa.array([datetime.date(2020, 1, 2), None, datetime.date(1960, 3, 4)]),
            "d": pa.array([0, None, 86_399_999], pa.time32("ms")),
            "e": pa.array([_D("1.25"), None, _D("-3.50")], pa.decimal128(9, 2)),
        }
    ),
    "nested": pa.table(
        {
            "a": pa.array([[1, None], None, []], pa.list_(pa.int64())),
            "b": pa.array([{"left": 1.5, "right": 2.5}, None, {"left": None, "right": 7.0}]),
            "c": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "d": pa.array([[[b"x"], None], [], None], pa.list_(pa.list_(pa.binary()))),
            "e": pa.array([{"real": [{"x": "t"}]}, None, {"real": []}]),
        }
    ),
}
COLUMNS = "abcde"
_CREATORS = (None, "numparq version 1.0", "parquet-cpp-arrow version 26.0.0")

# --- hints ------------------------------------------------------------------------------------------------------------


def _pick(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


_EXTENSIONS = (
    "pandas.period",
    "pandas.interval",
    "arrow.uuid",
    "arrow.json",
    "arrow.bool8",
    "arrow.opaque",
    "arrow.fixed_shape_tensor",
    "arrow.parquet.variant",
    "geoarrow.wkb",
    "nobody.knows",
    "",
    "\x00",
)
_PARAMETERS = (
    "",
    "{",
    "null",
    "[]",
    "[" * 50_000,
    '{"freq": "M"}',
    '{"freq": {}}',
    '{"freq": "' + "9" * 5000 + 'D"}',
    '{"freq": "\\ud800"}',
    '{"subtype": "int64", "closed": "left"}',
    '{"subtype": "double", "closed": "right"}',
    '{"subtype": [], "closed": []}',
    '{"subtype": "double", "closed": "x"}',
    '{"shape": [2]}',
    '{"shape": [' + "9" * 30 + "]}",
    '{"type_name": "a", "vendor_name": "b"}',
    '{"type_name": 5}',
)
_DTYPES = (
    *(value for value in VALUES if isinstance(value, str) and len(value) < 100),
    *("Float64", "UInt8", "string[python]", "period[D]", "interval[float64, left]", "Sparse[float64, nan]"),
    *("bool[pyarrow]", "double[pyarrow]", "binary[pyarrow]", "duration[s][pyarrow]", "date32[day][pyarrow]"),
    *("timestamp[ns, tz=UTC][pyarrow]", "large_string[pyarrow]", "uint8[pyarrow]", "time64[us][pyarrow]"),
    *("list<item: int64>[pyarrow]", "datetime64[ns, Asia/Tokyo]", "datetime64[D]", "complex64", "U5", "S3", "i1"),
    *("datetime64[" + "9" * 400 + "ns]", "object[", "Int64[pyarrow]", "decimal256(70, 60)[pyarrow]"),
)
_ZONES = ("UTC", "Asia/Tokyo", "+05:30", "-01:00", None, 5, [], {}, "")
_NOTES: tuple[Any, ...] = (
    *VALUES,
    *_DTYPES,
    {"categories": "int64", "ordered": True},
    {"categories": {"categories": "str"}},
    {"categories": "bool", "values": [True, "x"]},
    {"categories": "bool", "values": 5},
    {"categories": {"timestamp": "s", "zone": "UTC"}, "ascending": 1},
    {"categories": "period[D]"},
    {"categories": "interval[int64]"},
    {"categories": {"sparse": "int64", "fill_value": 0}},
    {"categories": "complex128"},
    {"categories": "object", "values": [1, 2]},
    {"arrow": "int8"},
    {"arrow": {}},
    {"string": "str", "storage": "pyarrow"},
    {"string": {}, "storage": []},
    {"sparse": "int64", "fill_value": 1},
    {"sparse": "float64", "fill_value": ["float", "nan"]},
    {"sparse": "object", "fill_value": None},
    {"sparse": "datetime64[s]", "fill_value": ["NaT"]},
    {"sparse": "int8", "fill_value": 10**30},
    {"timestamp": "s", "zone": "UTC"},
    {"timestamp": "ns", "zone": "+25:99"},
    {"timestamp": "x", "zone": "dateutil/tzutc"},
    {"range": [0, 10**18, 1]},
    {"range": "abc"},
    {"dtype": "int64"},
    {"dtype": {"categories": "int64", "ordered": 1}, "categories": [1, {}]},
    ["tuple", 1, ["list"]],
    ["dict", [["list"], 1]],
    ["numpy", "int8", 10**20],
    ["numpy", "U999999999", "x"],
    ["Timestamp", 10**30, "ns", None],
    ["Period", 10**30, "D"],
    ["Period", 1, "\ud800"],
    ["Decimal", "1e999999999"],
    ["complex", "x", "y"],
    ["bytes", "\udc80"],
    [[], []],
    [{}],
)


def _arrow_of_another_schema(rng: Rng) -> str:
    """Describe columns of random types, with extension names on any storage."""
    fields = []
    for name in COLUMNS[: int(rng.choice([5, 5, 5, 5, 4]))]:
        kind = random_type(rng, 3) if rng.random() < 0.4 else _pick(rng, FLAT)[0]
        if rng.random() < 0.3:
            kind = _pick(rng, _SHAPES)
        metadata = None
        if rng.random() < 0.6 and not isinstance(kind, pa.BaseExtensionType):
            metadata = {"ARROW:extension:name": _pick(rng, _EXTENSIONS)}
            if rng.random() < 0.9:
                metadata["ARROW:extension:metadata"] = _pick(rng, _PARAMETERS)
        fields.append(pa.field(name, kind, metadata=metadata))
    return base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode()


def _marked(kind: Any) -> Any:
    return [
        pa.field("x", kind, metadata={"ARROW:extension:name": name, "ARROW:extension:metadata": parameters})
        for name in _EXTENSIONS
        for parameters in _PARAMETERS[5:12]
    ]


_PERIOD = _marked(pa.float64())
_SHAPES = [
    pa.list_(pa.float64(), 2),
    pa.list_(pa.dictionary(pa.int8(), pa.float64())),
    pa.list_(pa.dictionary(pa.int8(), pa.int64())),
    pa.list_(pa.duration("s")),
    pa.list_(pa.list_(pa.binary(), 1), 2),
    pa.large_list(pa.large_list(pa.large_binary())),
    pa.list_view(pa.list_view(pa.binary_view())),
    pa.map_(pa.large_string(), pa.int32()),
    pa.map_(pa.dictionary(pa.int8(), pa.string()), pa.duration("ns")),
    pa.struct({"left": pa.float64(), "right": pa.float64()}),
    pa.struct({"real": pa.list_(pa.struct({"x": pa.dictionary(pa.int32(), pa.string())}), 1)}),
    *(pa.list_(field) for field in _PERIOD[::7]),
    pa.timestamp("ns", "Asia/Tokyo"),
    pa.decimal256(9, 2),
    pa.decimal32(9, 2),
    pa.month_day_nano_interval(),
    pa.run_end_encoded(pa.int32(), pa.int64()),
    pa.dense_union([pa.field("a", pa.int64())]),
]


def _damaged_arrow(rng: Rng, table: Any) -> Any:
    """Damage the base64 of a schema: its own or another's, cut or with flipped bits."""
    raw = bytearray(table.schema.serialize().to_pybytes())
    for _ in range(int(rng.integers(0, 4))):
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    text = base64.b64encode(bytes(raw)).decode()
    kind = rng.random()
    if kind < 0.2:
        return text[: int(rng.integers(len(text)))]
    return text[:-5] + "\ud800" if kind < 0.25 else text


def _entry(rng: Rng, name: str) -> Any:
    if rng.random() < 0.05:
        return _pick(rng, VALUES)
    entry = {
        "name": name if rng.random() < 0.8 else _pick(rng, VALUES),
        "field_name": name if rng.random() < 0.95 else _pick(rng, VALUES),
        "pandas_type": _pick(rng, (*_DTYPES, "list[int64]", "unicode", "datetimetz", "categorical", 5, None)),
        "numpy_type": _pick(rng, _DTYPES) if rng.random() < 0.9 else _pick(rng, VALUES),
        "metadata": None if rng.random() < 0.5 else _pick(rng, VALUES),
    }
    if rng.random() < 0.4:
        entry["metadata"] = {
            key: _pick(rng, values)
            for key, values in (("numparq", _NOTES), ("numparq_label", _NOTES), ("timezone", _ZONES))
            if rng.random() < 0.6
        }
    if rng.random() < 0.05:
        del entry[_pick(rng, list(entry))]
    return entry


def _pandas(rng: Rng) -> str:
    """Write pandas metadata with entries for the columns, and anything in their members."""
    levels = [_pick(rng, (*COLUMNS, *VALUES)) for _ in range(int(rng.integers(0, 4)))]
    document = {
        "index_columns": levels if rng.random() < 0.6 else [],
        "column_indexes": [_entry(rng, _pick(rng, ("x", None))) for _ in range(int(rng.choice([0, 1, 1, 2])))],
        "columns": [_entry(rng, name) for name in COLUMNS],
        "attributes": _pick(rng, VALUES),
        "numparq_attrs": _pick(rng, _NOTES),
    }
    for key in list(document):
        if rng.random() < 0.05:
            document[key] = _pick(rng, VALUES)
    return json.dumps(document)


_RAW = (
    "",
    "{",
    "[" * 100_000,
    '{"columns": ' + "[" * 100_000,
    '{"index_columns": ' + '{"a":' * 50_000,
    '{"index_columns": ' + "9" * 5000 + "}",
    '{"columns": [{"field_name": "a", "numpy_type": ' + "9" * 5000 + "}]}",
    '{"attributes": {"x": ' + "1" * 5000 + "}}",
    '{"attributes": NaN}',
    "\ud800",
    b"\xff\xfe{",
    b"{}\x00",
    "null",
    "5",
    '"x"',
)
_GEO = (
    *_RAW,
    '{"columns": {"b": {"encoding": "WKB", "crs": 5, "bbox": [1, "x"], "edges": []}}}',
    '{"columns": {"b": {"encoding": "WKB", "crs": {"a": ' + "[" * 500 + "]" * 500 + '}}}, "primary_column": {}}',
    '{"columns": {"a": {"encoding": "WKB"}, "b": {"encoding": "point"}, "\ud800": {"encoding": "WKB"}}}',
    '{"columns": {"b": {"encoding": "WKB", "bbox": [1e400, 2, 3, 4], "geometry_types": 5, "epoch": "x"}}}',
)
_OTHER_KEYS = (
    "PANDAS_ATTRS",
    "org.apache.spark.sql.parquet.row.metadata",
    "org.apache.spark.version",
    "org.apache.spark.timeZone",
    "parquet.avro.schema",
)


def _key_values(rng: Rng, table: Any) -> dict[str, Any]:
    """Draw the file's keys."""
    keys: dict[str, Any] = {}
    kind = rng.random()
    if kind < 0.6:
        keys["ARROW:schema"] = _arrow_of_another_schema(rng) if rng.random() < 0.8 else _damaged_arrow(rng, table)
    if kind > 0.4:
        keys["pandas"] = _pandas(rng) if rng.random() < 0.9 else _pick(rng, _RAW)
    if rng.random() < 0.2:
        keys["geo"] = _pick(rng, _GEO)
    if rng.random() < 0.2:
        keys[_pick(rng, _OTHER_KEYS)] = _pick(rng, (*_RAW, *_GEO, json.dumps(_pick(rng, _NOTES))))
    return keys


def forged_case(rng: Rng) -> tuple[str, bytes, bytes]:
    """Draw a table's name, a file of it with forged hints, and the file without."""
    name = _pick(rng, list(TABLES))
    keys, creator = _key_values(rng, TABLES[name]), _pick(rng, _CREATORS)

    def edit(footer: Any) -> None:
        footer.key_value_metadata = [
            THRIFT.KeyValue(
                key=key, value=value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
            )
            for key, value in keys.items()
        ]
        footer.created_by = creator

    return f"{name}, {creator}, {keys}"[:1500], write_with_footer(TABLES[name], edit), _plain_file(name)


@cache
def _plain_file(name: str) -> bytes:
    return write_with_footer(TABLES[name], lambda footer: setattr(footer, "key_value_metadata", None))


# --- reads ------------------------------------------------------------------------------------------------------------


def _frame(**options: Any) -> Callable[[bytes, Path], set[str]]:
    def read(data: bytes, folder: Path) -> set[str]:
        import numparq

        return frame_values(numparq.read_parquet(data, threads=1, **options))

    return read


_RANGES = ("[]", "[0, 1, 2]", "[3, 2, 1]")  # index levels that no column stores


def frame_values(frame: Any) -> set[str]:
    """Return the columns and index levels of a frame, whatever their labels and order."""
    levels = [frame.index.get_level_values(place) for place in range(frame.index.nlevels)]
    stored = [level for level in levels if repr(level.tolist()) not in _RANGES]
    repr(frame.columns), repr(frame.index), repr(frame.attrs)
    return {plain_series(values) for values in [*(frame.iloc[:, place] for place in range(frame.shape[1])), *stored]}


def _stream(data: bytes, folder: Path) -> set[str]:
    import numparq

    table = pa.table(numparq.ParquetFile(data))
    return {plain_column(column) for column in table.columns}


def _batches(data: bytes, folder: Path) -> set[str]:
    import pandas as pd

    import numparq

    frames = list(numparq.ParquetFile(data).iter_batches(batch_rows=2))
    return frame_values(pd.concat(frames))


def _dataset(data: bytes, folder: Path) -> set[str]:
    import numparq

    for name in ("x.parquet", "y.parquet"):
        (folder / name).write_bytes(data)
    dataset = numparq.Dataset(folder)
    str(dataset.schema)
    return frame_values(dataset.read(filters=None).iloc[:3])


def _dataset_stream(data: bytes, folder: Path) -> set[str]:
    import numparq

    (folder / "x.parquet").write_bytes(data)
    (folder / "y.parquet").unlink(missing_ok=True)
    table = pa.table(numparq.Dataset(folder))
    return {plain_column(column) for column in table.columns}


def _look(data: bytes, folder: Path) -> None:
    import numparq

    with numparq.ParquetFile(data) as file:
        repr(file)
        str(file.schema)
        repr(file.metadata)
        file.metadata.to_dict()
        repr(file.geospatial)
        str(file.plan())


READS: dict[str, Callable[[bytes, Path], set[str] | None]] = {
    "numpy": _frame(),
    "numpy_nullable": _frame(dtype_backend="numpy_nullable"),
    "pyarrow": _frame(dtype_backend="pyarrow"),
    "categories": _frame(categories=list(COLUMNS)),
    "geometries": _frame(geometries="geopandas"),
    "stream": _stream,
    "batches": _batches,
    "dataset": _dataset,
    "dataset stream": _dataset_stream,
    "metadata": _look,
}


def check_case(data: bytes, plain: bytes | None, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (way, problem) of each way to read a file that differs from its plain one, or raises another error."""
    from numparq import ParquetError

    expected = plain and {plain_column(column) for column in pq.read_table(io.BytesIO(plain)).columns}
    for way, read in READS.items():
        try:
            got = read(data, folder)
        except (ParquetError, ImportError):
            continue
        except Exception as error:
            if isinstance(error, pa.ArrowException) and "numparq.errors." in str(error):
                continue  # raised while pyarrow consumed the stream
            yield way, traceback.format_exc(limit=-6)
            continue
        if got is not None and expected is not None and got != expected:
            yield way, f"{sorted(got - expected)} instead of {sorted(expected - got)}"


def check_files(cases: Iterable[tuple[str, bytes, bytes | None]], most: int = 1) -> list[str]:
    """Check forged files, given (what, file, plain file); return at most so many problems, one of each kind."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, data, plain in cases:
            for way, problem in check_case(data, plain, Path(folder)):
                found.setdefault(problem[-90:], f"{way}: {problem}\n{what}")
                if len(found) >= most:
                    return list(found.values())
    return list(found.values())


def forged_cases(seed: int, count: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield cases of a seed."""
    for number in range(count):
        what, data, plain = forged_case(np.random.default_rng([seed, number]))
        yield f"seed {seed}, case {number}: {what}", data, plain


if __name__ == "__main__":
    faulthandler.enable()
    seed, count, most = map(int, sys.argv[1:])
    sys.exit("\n\n".join(check_files(forged_cases(seed, count), most)) or None)
