"""Modules of other files under the same keys: each is refused where another file's AAD belongs to it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Decryption, Encryption, ParquetError, ParquetFile

KEY, COLUMN_KEY = b"f" * 16, b"c" * 16
KEYS = Decryption(KEY, {"u": COLUMN_KEY})


def write(first, plaintext_footer):
    numbers = np.arange(first, first + 200)
    frame = pd.DataFrame({"a": numbers, "u": [f"u{number}" for number in numbers]})
    encryption = Encryption(KEY, {"u": COLUMN_KEY}, plaintext_footer=plaintext_footer, encrypt_other_columns=True)
    options = {"row_group_size": 100, "max_rows_per_page": 50, "bloom_filter_options": {"u": True}, "compression": None}
    return numparq.to_parquet(frame, encryption=encryption, **options)


def modules(content):
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    position = 4
    while position < footer:
        end = position + 4 + int.from_bytes(content[position : position + 4], "little")
        yield position, end
        position = end


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_modules_of_another_file_with_the_same_keys(plaintext_footer):
    """Files of equal layout; reads are right or an error, with filters by index and Bloom filter, too."""
    content, other = write(1000, plaintext_footer), write(2000, plaintext_footer)
    expected, raised, count = ParquetFile(content, decryption=KEYS).read(), 0, 0
    queries = [(None, slice(None)), ([("u", "==", "u1120")], slice(120, 121)), ([("a", "==", 1003)], slice(3, 4))]
    for (start, end), (first, last) in zip(modules(content), modules(other), strict=True):
        if end - start != last - first:
            continue
        mixed, count = content[:start] + other[first:last] + content[end:], count + 1
        for filters, rows in queries:
            try:
                found = ParquetFile(mixed, decryption=KEYS).read(filters=filters)
            except ParquetError:
                raised += 1
                continue
            assert found.to_numpy().tolist() == expected[rows].to_numpy().tolist()
    assert count > 20
    assert raised > count / 2


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_footers_of_another_file_with_the_same_keys(plaintext_footer):
    content, other = write(1000, plaintext_footer), write(2000, plaintext_footer)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    with pytest.raises(ParquetError):
        ParquetFile(content[:footer] + other[footer:], decryption=KEYS).read()
