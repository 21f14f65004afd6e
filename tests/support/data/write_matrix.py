"""The write matrix: dtype, nulls, encoding and nesting of columns; codec, page version and sizes of files."""

from __future__ import annotations

import datetime
import decimal
import itertools
import random
import warnings
import zlib
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

NULLS = ("none", "some", "all", "runs")
CODECS = (None, "snappy", "gzip", "brotli", "zstd", "lz4", "lz4_hadoop")
VERSIONS = ("1.0", "2.0")
SIZES = {
    "empty": (0, {}),
    "one": (1, {}),
    "some": (60, {}),
    "rows": (230, {"max_rows_per_page": 17, "row_group_size": 120}),
    "bytes": (230, {"data_page_size": 100, "row_group_size": 150}),
}
NESTINGS = ("flat", "list", "struct", "map", "list of list", "list of struct", "struct of list", "map of list")

_EPOCH = datetime.datetime(1970, 1, 1)
_TEXTS = ["", "a", "grün", "中文字", "x" * 70, "中" * 40, "\U0010ffff", "row", "row group", "prefix-1", "prefix-2"]
_SPECIAL = [float("nan"), 0.0, -0.0, float("inf"), float("-inf")]

BOOLEAN = ("PLAIN", "RLE")
INTEGER = ("PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
FLOATING = ("PLAIN", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT")
BINARY = ("PLAIN", "RLE_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
FIXED = ("PLAIN", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY")


class MatrixType(NamedTuple):
    """An Arrow type with its encodings, a generator of values, and a pandas dtype."""

    arrow: pa.DataType
    encodings: tuple[str, ...]
    value: object
    pandas: str | None = None


def _integers(bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda draw: draw.choice([low, high, draw.randint(low, high), draw.randint(0, 5), draw.randint(0, 5)])


def _floats(draw):
    return draw.choice([*_SPECIAL, draw.randint(-4, 4) / 4, draw.randint(-4, 4) / 4, draw.gauss(0, 100)])


def _halves(draw):
    return np.float16(_floats(draw))


def _text(draw):
    return draw.choice(_TEXTS) + str(draw.randint(0, 30)) * draw.randint(0, 2)


def _bytes(draw):
    return draw.choice([b"", b"\xff" * 70, b"\x00", bytes([draw.randint(0, 255)]) * draw.randint(0, 80)])


def _five_bytes(draw):
    return bytes([draw.randint(0, 3)]) * 3 + bytes([255, draw.randint(0, 255)])


def _moment(step):
    """Return a generator of timestamps in whole steps (in microseconds), near 1970 and far from it."""
    return lambda draw: (
        _EPOCH
        + datetime.timedelta(
            microseconds=step
            * (draw.randint(-(10**15), 4 * 10**15) // step if draw.random() < 0.5 else draw.randint(-9, 9))
        )
    )


def _decimals(precision, scale):
    def value(draw):
        most = 10**precision - 1
        unscaled = draw.choice([most, -most, 0, draw.randint(-most, most), draw.randint(-9, 9)])
        return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=80))

    return value


def _day(draw):
    return datetime.date(1970, 1, 1) + datetime.timedelta(
        days=draw.choice([draw.randint(-5, 5), draw.randint(-50000, 90000)])
    )


def _clock(step):
    return lambda draw: (
        datetime.datetime.min + datetime.timedelta(microseconds=draw.randrange(86400 * 10**6 // step) * step)
    ).time()


def _duration(draw):
    return datetime.timedelta(milliseconds=draw.choice([draw.randint(-9, 9), draw.randint(-(10**12), 10**12)]))


KINDS: dict[str, MatrixType] = {
    "bool": MatrixType(pa.bool_(), BOOLEAN, lambda draw: draw.random() < 0.5),
    "boolean": MatrixType(pa.bool_(), BOOLEAN, lambda draw: draw.random() < 0.9, "boolean"),
    **{
        f"{'' if signed else 'u'}int{bits}": MatrixType(
            pa.type_for_alias(f"{'' if signed else 'u'}int{bits}"),
            INTEGER,
            _integers(bits, signed),
            f"{'' if signed else 'U'}Int{bits}",
        )
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    },
    "float16": MatrixType(pa.float16(), FIXED, _halves),
    "float32": MatrixType(pa.float32(), FLOATING, _floats),
    "float64": MatrixType(pa.float64(), FLOATING, _floats),
    "numpy float64": MatrixType(pa.float64(), FLOATING, lambda draw: draw.randint(0, 9) / 8, "float64"),
    "text": MatrixType(pa.large_string(), BINARY, _text, "str"),
    "string": MatrixType(pa.string(), BINARY, _text),
    "binary": MatrixType(pa.binary(), BINARY, _bytes),
    "fixed": MatrixType(pa.binary(5), FIXED, _five_bytes),
    "date": MatrixType(pa.date32(), INTEGER, _day),
    "time-ms": MatrixType(pa.time32("ms"), INTEGER, _clock(1000)),
    "time-us": MatrixType(pa.time64("us"), INTEGER, _clock(1)),
    "time-ns": MatrixType(pa.time64("ns"), INTEGER, _clock(1)),
    "timestamp-ms": MatrixType(pa.timestamp("ms"), INTEGER, _moment(1000)),
    "timestamp-us": MatrixType(pa.timestamp("us"), INTEGER, _moment(1)),
    "timestamp-ns": MatrixType(pa.timestamp("ns"), INTEGER, _moment(1), "datetime64[ns]"),
    "timestamp-us-zone": MatrixType(pa.timestamp("us", "Europe/Paris"), INTEGER, _moment(1)),
    "duration": MatrixType(pa.duration("ms"), INTEGER, _duration),
    "decimal-7-2": MatrixType(pa.decimal128(7, 2), FIXED, _decimals(7, 2)),
    "decimal-18-0": MatrixType(pa.decimal128(18, 0), FIXED, _decimals(18, 0)),
    "decimal-38-10": MatrixType(pa.decimal128(38, 10), FIXED, _decimals(38, 10)),
    "decimal-60-5": MatrixType(pa.decimal256(60, 5), FIXED, _decimals(60, 5)),
    "category": MatrixType(
        pa.dictionary(pa.int8(), pa.string()), BINARY[:2], lambda draw: draw.choice("abcde"), "category"
    ),
}


class MatrixCase(NamedTuple):
    """One column of one file."""

    kind: str
    nulls: str
    encoding: str | None
    nesting: str
    codec: str | None
    version: str
    size: str

    @property
    def file(self):
        """Return the parameters shared by all columns of a file."""
        return self.codec, self.version, self.size

    @property
    def column(self):
        """Return the column's name."""
        return f"{self.kind}|{self.nulls}|{self.encoding}|{self.nesting}"

    @property
    def path(self):
        """Return the path of the leaf under test."""
        inside = {"list": "list.element", "struct": "a", "map": "key_value.value"}
        return ".".join([self.column, *(inside[part] for part in self.nesting.split(" of ") if part != "flat")])


def all_cases():
    """Return all cases; nested cases cover only a few types."""
    columns = [
        (kind, nulls, encoding, nesting)
        for nesting in NESTINGS
        for kind in (KINDS if nesting == "flat" else ("bool", "int32", "float64", "string", "decimal-38-10"))
        for nulls in NULLS
        for encoding in (None, *KINDS[kind].encodings)
    ]
    return [MatrixCase(*column, *file) for file in itertools.product(CODECS, VERSIONS, SIZES) for column in columns]


def covering_subset(cases, strength, seed=0):
    """Choose cases that cover every combination of values of any `strength` parameters."""
    cases = list(cases)
    random.Random(seed).shuffle(cases)
    seen, chosen = set(), []
    for case in cases:
        together = set(itertools.combinations(enumerate(case), strength))
        if not together <= seen:
            seen |= together
            chosen.append(case)
    return chosen


def full_columns_only(cases):
    """Choose files whose columns share one kind of nulls; covering subsets may be all empty or all null."""
    return [case for case in cases if case.nulls == "some" and (case.codec, case.size) == ("zstd", "rows")]


def group_by_file(cases):
    """Group cases by file."""
    files: dict[tuple, list[MatrixCase]] = {}
    for case in cases:
        files.setdefault(case.file, []).append(case)
    return files


# --- values ---------------------------------------------------------------------------------------------------------


def _present(nulls, count, draw):
    if nulls == "runs":
        found, flag = [], True
        while len(found) < count:
            found += [flag] * draw.randint(1, 60)
            flag = not flag
        return found[:count]
    return [nulls == "none" or (nulls == "some" and draw.random() < 0.7) for _ in range(count)]


def _nested(nesting, draw, value):
    """Return a row of a nested column; `value` draws the innermost value."""
    several = lambda make: [make() for _ in range(draw.choice([0, 1, 2, 2, 5]))]  # noqa: E731
    if nesting == "list":
        return several(value)
    if nesting == "struct":
        return {"a": value(), "b": draw.randint(0, 3)}
    if nesting == "map":
        return list({str(draw.randint(0, 9)): value() for _ in range(draw.randint(0, 4))}.items())
    if nesting == "list of list":
        return several(lambda: None if draw.random() < 0.1 else several(value))
    if nesting == "list of struct":
        return several(lambda: None if draw.random() < 0.1 else {"a": value(), "b": draw.randint(0, 3)})
    if nesting == "struct of list":
        return {"a": None if draw.random() < 0.1 else several(value)}
    return [(key, several(value)) for key in "kl"[: draw.randint(0, 2)]]


def nested_type(nesting, inner):
    struct = pa.struct([("a", inner), ("b", pa.int32())])
    return {
        "flat": inner,
        "list": pa.list_(inner),
        "struct": struct,
        "map": pa.map_(pa.string(), inner),
        "list of list": pa.list_(pa.list_(inner)),
        "list of struct": pa.list_(struct),
        "struct of list": pa.struct([("a", pa.list_(inner))]),
        "map of list": pa.map_(pa.string(), pa.list_(inner)),
    }[nesting]


@cache
def arrow_values(kind, nulls, nesting, count):
    """Return the values of a column, always the same."""
    draw = random.Random(zlib.crc32(f"{kind}|{nulls}|{nesting}".encode()))
    make = KINDS[kind].value
    present = _present(nulls, count, draw)

    def leaf():
        if nulls == "all" or (nulls == "some" and draw.random() < 0.3):
            return None
        return make(draw)

    if nesting == "flat":
        values = [make(draw) if flag else None for flag in present]
    else:
        # Where all values are null, some of the lists around them are not.
        values = [_nested(nesting, draw, leaf) if flag or draw.random() < 0.2 else None for flag in present]
    return pa.array(values, nested_type(nesting, KINDS[kind].arrow))


def series(case, values):
    """Return a column of a frame with the case's dtype."""
    dtype = KINDS[case.kind].pandas
    if case.nesting != "flat" or dtype is None:
        return pd.Series(pd.arrays.ArrowExtensionArray(values))
    return pd.Series(values.to_pylist(), dtype=pd.CategoricalDtype(list("abcde")) if dtype == "category" else dtype)


def frame_of(cases):
    """Return the frame of a file, and the table that readers must return."""
    columns = {case.column: arrow_values(case.kind, case.nulls, case.nesting, SIZES[case.size][0]) for case in cases}
    frame = pd.DataFrame({case.column: series(case, columns[case.column]) for case in cases})
    return frame, pa.table(columns)


def write(cases, path=None, **options):
    """Write a file with numparq."""
    import numparq

    codec, version, size = cases[0].file
    frame, table = frame_of(cases)
    encodings = {case.path: case.encoding for case in cases if case.encoding is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if codec == "lz4_hadoop" else "error", DeprecationWarning)
        data = numparq.to_parquet(
            frame,
            path,
            codec,
            index=False,
            data_page_version=version,
            column_encoding=encodings,
            **SIZES[size][1],
            **options,
        )
    return data, frame, table


# --- comparing ------------------------------------------------------------------------------------------------------


def difference(got, wanted):
    """Return how an array differs from the expected one, or None. Floats compare by their bits."""
    got, wanted = (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in (got, wanted))
    if len(got) != len(wanted):
        return f"{len(got)} items instead of {len(wanted)}"
    if not got.is_null().equals(wanted.is_null()):
        return "nulls elsewhere"
    return _difference_of_values(got.drop_null(), wanted.drop_null())


def _difference_of_values(got, wanted):
    kind = wanted.type
    if pa.types.is_dictionary(kind):
        wanted, kind = wanted.dictionary_decode(), kind.value_type
    if pa.types.is_dictionary(got.type):
        got = got.dictionary_decode()
    if pa.types.is_map(kind):
        return difference(as_list(got), as_list(wanted))
    if pa.types.is_list(kind):
        return difference(pa.array(got.value_lengths()), pa.array(wanted.value_lengths())) or difference(
            got.flatten(), wanted.flatten()
        )
    if pa.types.is_struct(kind):
        fields = zip(got.flatten(), wanted.flatten(), strict=True)
        return next((found for pair in fields if (found := difference(*pair))), None)
    if pa.types.is_floating(kind):
        bits = pa.type_for_alias(f"uint{kind.bit_width}")
        got, wanted = (array.cast(kind).view(bits) for array in (got, wanted))
        same_nan = float_nans(got, kind) & float_nans(wanted, kind)
        unequal = (got.to_numpy() != wanted.to_numpy()) & ~same_nan
        return f"values differ: {got} instead of {wanted}" if unequal.any() else None
    got = got if got.type == kind else got.cast(kind)
    return None if got.equals(wanted) else f"values differ: {got.to_pylist()[:9]} instead of {wanted.to_pylist()[:9]}"


def float_nans(bits, kind):
    return np.isnan(bits.to_numpy().view(kind.to_pandas_dtype()))


def as_list(array):
    """Return a map, in any reader's form, as a list of structs."""
    if not pa.types.is_map(array.type):
        return array
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return pa.ListArray.from_arrays(array.offsets, entries)


def differences(got, table):
    """Return the differences by column."""
    found = {}
    for name in table.column_names:
        wrong = difference(got[name], table[name])
        if wrong:
            found[name] = wrong[:500]
    return found
