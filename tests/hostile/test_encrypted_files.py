"""Tampered encrypted files: nothing that was changed is returned, whichever byte or module it is."""

from __future__ import annotations

import functools
import io
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq import DecryptionError, ParquetError, ParquetFile
from support.encryption.pyarrow_files import MaterialKeys, encrypt

OPTIONS = {
    "row_group_size": 60,
    "data_page_size": 64,
    "write_batch_size": 20,
    "write_page_index": True,
    "write_page_checksum": True,
    "store_schema": False,
    "compression": "none",
}
KINDS = [(algorithm, is_plain) for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1") for is_plain in (False, True)]
PARTS = 256


def table():
    numbers = np.arange(120)
    return pa.table({"a": numbers, "s": [f"v{number % 7}" for number in numbers]})


@functools.cache
def encrypted(algorithm, plaintext_footer):
    """Return a file with dictionaries if its footer is encrypted, and PLAIN values if not."""
    options = OPTIONS | {"use_dictionary": not plaintext_footer}
    return encrypt(table(), ["a", "s"], algorithm=algorithm, plaintext_footer=plaintext_footer, **options)


def read(content, **options):
    return ParquetFile(bytes(content), decryption=MaterialKeys()).read(**options)


def check_reads(content) -> bool:
    """Read as a whole, filtered, and with damage skipped: right values or an error; return whether all is read."""
    expected, is_whole = table().to_pandas(), True
    try:
        pd.testing.assert_frame_equal(read(content), expected)
    except ParquetError:
        is_whole = False
    try:
        some = read(content, filters=[("a", ">=", 70), ("a", "<", 75)])
        assert some["a"].tolist() == [*range(70, 75)]
        assert some["s"].tolist() == expected["s"][70:75].tolist()
    except ParquetError:
        pass
    try:
        left = read(content, on_error="skip")
    except ParquetError:
        return is_whole
    for name in left:
        assert left[name].tolist() == expected.loc[left.index, name].tolist()
    assert is_whole == (len(left) == len(expected) and len(left.columns) == 2)
    return is_whole


def modules(content):
    """Return the bounds of the modules between the magic number and the footer; all columns are encrypted."""
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    bounds, position = [], 4
    while position < footer:
        end = position + 4 + int.from_bytes(content[position : position + 4], "little")
        bounds.append((position, end))
        position = end
    assert position == footer
    return bounds


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(PARTS))
def test_flipped_bytes(part):
    for kind in KINDS:
        content = encrypted(*kind)
        assert check_reads(content)
        for position in range(part, len(content), PARTS):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position // PARTS % 8
            check_reads(damaged)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(16))
def test_swapped_modules(part):
    """Modules of a file that have the same length change places; a read that needs one of them raises."""
    for kind in KINDS:
        content = encrypted(*kind)
        bounds = modules(content)
        pairs = [(one, two) for one, two in combinations(bounds, 2) if one[1] - one[0] == two[1] - two[0]]
        assert len(pairs) > 20
        for one, two in pairs[part::16]:
            swapped = bytearray(content)
            swapped[slice(*one)], swapped[slice(*two)] = content[slice(*two)], content[slice(*one)]
            check_reads(swapped)


@pytest.mark.parametrize(("algorithm", "plaintext_footer"), KINDS)
def test_every_page_module_is_authenticated(algorithm, plaintext_footer):
    """A flipped byte in a header raises, and in a body, too: by its tag, or under CTR by its checksum."""
    content = encrypted(algorithm, plaintext_footer)
    file = ParquetFile(content, decryption=MaterialKeys())
    chunks = [chunk for group in file.metadata.row_groups for chunk in group.columns]
    starts = [meta.dictionary_page_offset or meta.data_page_offset for meta in (chunk.meta_data for chunk in chunks)]
    spans = [
        (start, start + chunk.meta_data.total_compressed_size) for start, chunk in zip(starts, chunks, strict=True)
    ]
    pages = [module for module in modules(content) if any(low <= module[0] < high for low, high in spans)]
    assert len(pages) > 16
    for start, end in pages:
        for position in (start, start + 4, start + 16, end - 1):
            damaged = bytearray(content)
            damaged[position] ^= 64
            with pytest.raises(ParquetError):
                read(damaged)


@pytest.mark.parametrize(("algorithm", "plaintext_footer"), KINDS)
def test_footers_without_their_encryption_are_refused(algorithm, plaintext_footer):
    """A footer of a plain file does not replace that of an encrypted one."""
    sink = io.BytesIO()
    pq.write_table(table(), sink, **OPTIONS)
    for content in (sink.getvalue(), encrypted(algorithm, plaintext_footer)[:-8] + sink.getvalue()):
        for options in ({}, {"on_error": "skip"}):
            with pytest.raises(DecryptionError, match="the file is not encrypted"):
                read(content[:4].replace(b"PARE", b"PAR1") + content[4:], **options)


@pytest.mark.parametrize(("algorithm", "plaintext_footer"), KINDS)
def test_truncated_files(algorithm, plaintext_footer):
    content = encrypted(algorithm, plaintext_footer)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for start, end in modules(content):
        with pytest.raises(ParquetError):
            read(content[:end])
        check_reads(content[:start] + content[end:footer] + content[footer:])  # a module is missing
        check_reads(content[:end] + content[start:footer] + content[footer:])  # a module is repeated
