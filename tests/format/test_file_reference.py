"""FILE references: their resolution, and their checksums."""

from __future__ import annotations

import hashlib
import itertools
import math
import zlib

import numpy as np
import pytest

from numparq import InvalidFileError
from numparq.format.file_reference import REFERENCE_FIELDS, FileRange, FileReferenceReader, resolve_reference
from numparq.io.local_source import BytesSource

SET = {"inline": b"bytes", "uri": "x", "offset": 3, "size": 2}
# The table of section FILE, "Resolution": fields set -> result.
TABLE = {
    ("inline",): b"bytes",
    ("uri",): FileRange("x", 0, None),
    ("uri", "offset"): None,
    ("uri", "size"): FileRange("x", 0, 2),
    ("uri", "offset", "size"): FileRange("x", 3, 2),
    ("offset",): None,
    ("size",): None,
    ("offset", "size"): FileRange(None, 3, 2),
    (): None,
}


@pytest.mark.parametrize("fields", [names for n in range(5) for names in itertools.combinations(SET, n)], ids=str)
@pytest.mark.parametrize("absent", ["left out", "null", "empty"])
def test_resolution_table_of_the_specification(fields, absent):
    reference = {name: SET[name] for name in fields}
    if absent != "left out":
        reference = dict.fromkeys(REFERENCE_FIELDS) | reference
    if absent == "empty":
        reference = {"uri": "", "content_type": "", "checksum": ""} | {
            name: value for name, value in reference.items() if value is not None
        }
    expected = SET["inline"] if "inline" in fields else TABLE[fields]
    if expected is None:
        with pytest.raises(InvalidFileError, match="FILE reference"):
            resolve_reference(reference)
    else:
        assert resolve_reference(reference) == expected


def test_empty_inline_bytes_are_set():
    assert resolve_reference({"inline": b""}) == b""


@pytest.mark.parametrize("field", ["offset", "size"])
def test_negative_offset_and_size_are_refused(field):
    with pytest.raises(InvalidFileError, match=f"negative {field}"):
        resolve_reference({"offset": 0, "size": 0, field: -1})


def test_numpy_integers_floats_and_nan():
    """Frames hold NumPy's integers, and NaN for nulls."""
    assert resolve_reference({"offset": np.int64(5), "size": np.int64(0), "uri": math.nan}) == FileRange(None, 5, 0)
    assert resolve_reference({"offset": 5.0, "size": np.float64(0)}) == FileRange(None, 5, 0)


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "x",
        [1],
        {"uri": b"x"},
        {"inline": "x"},
        {"offset": 1.5, "size": 1},
        {"offset": 2.0**60, "size": 1},
        {"uri": "x", "size": True},
    ],
)
def test_invalid_references_are_refused(reference):
    with pytest.raises(TypeError, match="FILE reference"):
        resolve_reference(reference)


DATA = b"The bytes."
SUMS = {
    "MD5": hashlib.md5(DATA).hexdigest(),
    "SHA-256": hashlib.sha256(DATA).hexdigest(),
    "CRC32": f"{zlib.crc32(DATA):08x}",
    "CRC32C": "f3a6e9f7",
}


def read_reference(**fields):
    return FileReferenceReader(BytesSource(b""), None).read_reference(fields)


def bitwise_crc32c(data):
    remainder = 0xFFFFFFFF
    for bit in (byte >> place & 1 for byte in data for place in range(8)):
        remainder = remainder >> 1 ^ (0x82F63B78 if (remainder ^ bit) & 1 else 0)
    return remainder ^ 0xFFFFFFFF


SUMS["CRC32C"] = f"{bitwise_crc32c(DATA):08x}"


@pytest.mark.parametrize("algorithm", SUMS)
def test_checksums(algorithm):
    digest = SUMS[algorithm]
    for text in (digest, digest.upper()):
        assert read_reference(inline=DATA, checksum=f"{algorithm}:{text}") == DATA
    with pytest.raises(InvalidFileError, match=f"have the {algorithm}"):
        read_reference(inline=DATA + b"x", checksum=f"{algorithm}:{digest}")
    for wrong in (digest[1:], digest + "0", "", "g" + digest[1:], " " + digest):
        with pytest.raises(InvalidFileError, match=f"hex digits of {algorithm}"):
            read_reference(inline=DATA, checksum=f"{algorithm}:{wrong}")
    unchecked = FileReferenceReader(BytesSource(b""), None, verify_checksums=False)
    assert unchecked.read_reference({"inline": b"x", "checksum": f"{algorithm}:{digest}"}) == b"x"


@pytest.mark.parametrize("checksum", ['ETAG:"abc"', "ETAG:", "SHA-512:00", "md5:00", "", None, ":", "XX:y:z"])
def test_unknown_checksums_are_ignored(checksum):
    assert read_reference(inline=DATA, checksum=checksum) == DATA


def test_checksum_without_algorithm_is_refused():
    with pytest.raises(InvalidFileError, match="names no algorithm"):
        read_reference(inline=DATA, checksum="d41d8cd9")
