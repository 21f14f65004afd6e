"""What the fuzz targets found, each as the smallest file that shows it."""

from __future__ import annotations

import pytest
from hostile.handmade import INT64, Column, data_page_v2, dictionary_page, file, plain

import numparq
from numparq import CorruptPageError, ParquetError


def page_with(**fields):
    """Make a page of version 2 whose header says something else."""
    page = data_page_v2(4, 0, b"", plain(INT64, [1, 2, 3, 4]))
    for name, value in fields.items():
        setattr(page.header.data_page_header_v2, name, value)
    return page


def one_column(*pages):
    return file([4], [Column("a", INT64, [list(pages)])])


# Levels longer than their page sent the decoder of `verify` and `salvage` over the end of its buffer.
LYING_LEVELS = [
    {"repetition_levels_byte_length": 1 << 30},
    {"definition_levels_byte_length": (1 << 31) - 1},
    {"definition_levels_byte_length": 20, "repetition_levels_byte_length": 20},
    {"repetition_levels_byte_length": -(1 << 30)},
    {"num_values": -(1 << 31)},
    {"num_rows": -1},
]


@pytest.mark.parametrize("fields", LYING_LEVELS, ids=str)
def test_levels_that_are_longer_than_the_page(tmp_path, fields):
    data = one_column(page_with(**fields)).stored()
    assert "page-counts" in {deviation.check for deviation in numparq.verify(data)}
    with pytest.raises(CorruptPageError):
        numparq.read_parquet(data)
    path = tmp_path / "cut"
    path.write_bytes(data[:-30])
    with pytest.raises(ParquetError):
        numparq.salvage(path, tmp_path / "out", one_column(page_with()).stored(), force=True)


def test_dictionaries_of_a_negative_number_of_values(tmp_path):
    pages = dictionary_page(-7, plain(INT64, [1])), page_with()
    data = one_column(*pages).stored()
    assert "page-counts" in {deviation.check for deviation in numparq.verify(data)}
    path = tmp_path / "cut"
    path.write_bytes(data[:-30])
    with pytest.raises(ParquetError):
        numparq.salvage(path, tmp_path / "out", one_column(page_with()).stored(), force=True)
