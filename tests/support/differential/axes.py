"""Axes of the differential matrix: encodings of values, layout of files, where they lie, how they are read."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa


class Values(NamedTuple):
    """Values of the column under test: Arrow type, encoding, and the value of a number."""

    arrow: pa.DataType
    encoding: str
    make: Callable[[int], Any]


def _decimal(number: int) -> decimal.Decimal:
    return decimal.Decimal(number * 7 - 50).scaleb(-2)


def _text(number: int) -> str:
    return f"{'grün' * (number % 3)} {number}"


def _bytes(number: int) -> bytes:
    return b"%d" % number * (number % 4)


def _moment(number: int) -> datetime.datetime:
    return datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=number)


def _date(number: int) -> datetime.date:
    return datetime.date.fromordinal(730_000 + number)


DELTA, SPLIT = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
VALUES = {
    "plain bool": Values(pa.bool_(), "PLAIN", lambda n: n % 3 == 0),
    "rle bool": Values(pa.bool_(), "RLE", lambda n: n % 40 < 30),
    "plain int32": Values(pa.int16(), "PLAIN", lambda n: n - 100),
    "plain int64": Values(pa.int64(), "PLAIN", lambda n: n * 1_000_003 - 5000),
    "plain int96": Values(pa.timestamp("ns"), "PLAIN", _moment),
    "plain float": Values(pa.float32(), "PLAIN", lambda n: n / 4),
    "plain double": Values(pa.float64(), "PLAIN", lambda n: n / 7),
    "plain string": Values(pa.string(), "PLAIN", _text),
    "plain binary": Values(pa.binary(), "PLAIN", _bytes),
    "plain fixed": Values(pa.binary(5), "PLAIN", lambda n: b"%5d" % n),
    "dictionary int32": Values(pa.date32(), "RLE_DICTIONARY", lambda n: _date(n % 20)),
    "dictionary int64": Values(pa.int64(), "RLE_DICTIONARY", lambda n: n % 8 - 3),
    "dictionary int96": Values(pa.timestamp("ns"), "RLE_DICTIONARY", lambda n: _moment(n % 9)),
    "dictionary float": Values(pa.float32(), "RLE_DICTIONARY", lambda n: n % 11 / 4),
    "dictionary double": Values(pa.float64(), "RLE_DICTIONARY", lambda n: n % 5 / 4),
    "dictionary string": Values(pa.string(), "RLE_DICTIONARY", lambda n: _text(n % 25)),
    "dictionary binary": Values(pa.binary(), "RLE_DICTIONARY", lambda n: _bytes(n % 25)),
    "dictionary fixed": Values(pa.decimal128(25, 2), "RLE_DICTIONARY", lambda n: _decimal(n % 8)),
    "fallback int64": Values(pa.int64(), "fallback", lambda n: n % 5 if n < 60 else n),
    "fallback string": Values(pa.string(), "fallback", lambda n: _text(n % 5 if n < 60 else n)),
    "fallback fixed": Values(pa.decimal128(20, 2), "fallback", lambda n: _decimal(n % 5 if n < 60 else n)),
    "delta int32": Values(pa.uint8(), DELTA, lambda n: n % 250),
    "delta int64": Values(pa.timestamp("us"), DELTA, _moment),
    "delta length string": Values(pa.string(), "DELTA_LENGTH_BYTE_ARRAY", _text),
    "delta binary": Values(pa.binary(), "DELTA_BYTE_ARRAY", _bytes),
    "delta string": Values(pa.string(), "DELTA_BYTE_ARRAY", _text),
    "delta fixed": Values(pa.decimal128(38, 2), "DELTA_BYTE_ARRAY", _decimal),
    "split int32": Values(pa.time32("ms"), SPLIT, lambda n: datetime.time(n % 24, n % 60)),
    "split int64": Values(pa.int64(), SPLIT, lambda n: n * 77),
    "split float": Values(pa.float32(), SPLIT, lambda n: n / 8),
    "split double": Values(pa.float64(), SPLIT, lambda n: n / 9),
    "split fixed": Values(pa.decimal128(12, 2), SPLIT, _decimal),
    "alp float": Values(pa.float32(), "ALP", lambda n: n / 4),
    "alp double": Values(pa.float64(), "ALP", lambda n: n / 100),
}

AXES = {
    "values": tuple(VALUES),
    "writer": ("pyarrow", "numparq"),
    "codec": ("none", "snappy", "zstd", "gzip"),
    "version": ("1.0", "2.0"),
    "nulls": ("none", "some", "pages", "all"),
    "nesting": ("flat", "struct", "list", "list of struct", "map"),
    "index": ("index", "headers", "neither"),
    "output": ("numpy", "nullable", "pyarrow", "category"),
    "files": ("one", "three", "eight"),
    "source": ("local", "bytes", "store"),
    "groups": ("1", "3", "20"),
    "damage": ("whole", "page", "dictionary", "header"),
    "threads": ("1", "2"),
    "cache": ("cold", "warm", "replaced"),
    "sizes": ("default", "tiny"),
}
ALL_CODECS = {**AXES, "codec": (*AXES["codec"], "brotli", "lz4", "lz4_hadoop")}


def is_valid(case: dict[str, str]) -> bool:
    """Whether a writer can write the file, and whether the parts of the case make sense together."""
    encoding = VALUES[case["values"]].encoding
    only_pyarrow = encoding == "fallback" or "int96" in case["values"]
    only_numparq = encoding == "ALP" or case["codec"] == "lz4_hadoop"
    # Of so few values numparq makes no dictionary.
    few_values = case["writer"] == "numparq" and (case["files"], case["groups"]) != ("one", "1")
    return not (
        (only_pyarrow and case["writer"] == "numparq")
        or (only_numparq and case["writer"] == "pyarrow")
        or (case["output"] == "category" and case["nesting"] != "flat")
        or (case["files"] != "one" and case["source"] == "bytes")
        or (case["files"] == "eight" and case["groups"] != "1")
        or (case["damage"] == "dictionary" and (few_values or encoding not in ("RLE_DICTIONARY", "fallback")))
        or (case["damage"] != "whole" and case["nulls"] == "all")
        or (case["values"] == "plain fixed" and case["nesting"] != "flat" and case["output"] != "pyarrow")
    )
