"""Deviations that readers ignore: `numparq verify` names the writer, and says that reading is not affected."""

from __future__ import annotations

import pytest

import numparq
from numparq.tools.verify.checks import IGNORED_BY_READERS
from support.files import builder as h
from support.files import spec_violations as made
from support.files.builder import (
    FileColumn,
    FilePage,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_plain,
)

WRITER = "parquet-cpp-arrow version 26.0.0"
NUMBERS = encode_plain(h.INT64, [1, 2, 3])


def stored(pages, *, facts=None, repetition=h.REQUIRED, physical=h.INT64):
    column = FileColumn("a", physical, [pages], repetition, facts={"encodings": [h.PLAIN, h.RLE], **(facts or {})})
    return build_file([3], [column], created_by=WRITER).stored()


def padded_levels():
    run = bytes([3 << 1, 1, 0, 0])
    return stored([data_page(3, len(run).to_bytes(4, "little") + run + NUMBERS)], repetition=h.OPTIONAL)


def padded_indices():
    pages = [dictionary_page(1, encode_plain(h.INT64, [5])), data_page(3, b"\1\6\0\0\0", h.RLE_DICTIONARY)]
    return stored(pages, facts={"encodings": [h.PLAIN, h.RLE, h.RLE_DICTIONARY]})


def padded_dictionary():
    pages = [dictionary_page(2, encode_plain(h.INT64, [1, 2, 3])), data_page(3, b"\1\6\0", h.RLE_DICTIONARY)]
    return stored(pages, facts={"encodings": [h.PLAIN, h.RLE, h.RLE_DICTIONARY]})


def chunk_into_the_next(count):
    """Count bytes of the second chunk as those of the first."""
    columns = [FileColumn(name, h.INT64, [[data_page(3, NUMBERS)]]) for name in "ab"]

    def change(footer):
        footer.row_groups[0].columns[0].meta_data.total_compressed_size += count

    return build_file([3], columns, created_by=WRITER).stored(change)


FILES = {
    "bytes behind levels": (padded_levels, [1, 2, 3], {"page-bytes"}),
    "bytes behind values": (lambda: stored([data_page(3, NUMBERS + bytes(8))]), [1, 2, 3], {"page-bytes"}),
    "bytes behind indices": (padded_indices, [5, 5, 5], {"page-bytes"}),
    "bytes behind dictionary entries": (padded_dictionary, [1, 1, 1], {"page-bytes"}),
    "long run of indices": (lambda: made.run_of_indices(20), [5, 5, 5], {"page-run"}),
    "long run of levels": (lambda: made.run_of_levels(20), [1, 2, 3], {"page-run"}),
    "long run of levels of version 2": (lambda: made.run_of_levels(20, data_page_v2), [1, 2, 3], {"page-run"}),
    "number of nulls": (
        lambda: stored([data_page_v2(3, 2, bytes([6, 1]), NUMBERS)], repetition=h.OPTIONAL),
        [1, 2, 3],
        {"page-null-count"},
    ),
    "bytes behind the last page": (lambda: made.bytes_behind_pages(16), [1, 2, 3], {"chunk-bytes"}),
    "a few bytes of the next chunk": (lambda: chunk_into_the_next(7), [1, 2, 3], {"chunk-bytes"}),
    "all but a byte of the next chunk": (lambda: chunk_into_the_next(30), [1, 2, 3], {"chunk-bytes"}),
    "decimals": (made.decimals_without_bytes, [0, 1, 0], {"page-decimal"}),
}


@pytest.mark.parametrize("name", FILES)
def test_deviations_that_readers_ignore(name):
    """The file is read, and the deviation says so."""
    make, values, checks = FILES[name]
    data = make()
    assert [int(value) for value in numparq.read_parquet(data, columns=["a"])["a"]] == values
    found = [one for one in numparq.verify(data) if one.check in IGNORED_BY_READERS]
    assert {one.check for one in found} == checks
    writer = numparq.ParquetFile(data).metadata.created_by or "unknown"
    for one in found:
        assert one.message.endswith(f"; the writer is {writer}, and reading is not affected")
    others = {one.check for one in numparq.verify(data) if one.severity == "error"}
    assert others <= checks | {"chunk-uncompressed-size"}


@pytest.mark.parametrize("field", ["offset", "compressed_page_size", "first_row_index"])
def test_offset_index_that_readers_ignore(field):
    """Each field of a page location, and the number of pages."""
    data = made.index_with("OffsetIndex", lambda index: index["page_locations"][1].update({field: 1}))
    assert numparq.read_parquet(data, filters=[("i", "==", 25)])["i"].tolist() == [25]
    messages = [one.message for one in numparq.verify(data) if one.check.startswith("offset-index")]
    assert messages
    assert all("the writer is numparq version" in one and one.endswith("reading is not affected") for one in messages)
    fewer = made.index_with("OffsetIndex", lambda index: index["page_locations"].pop())
    (found,) = numparq.verify(fewer)
    assert found.check == "index-pages"
    assert found.message.endswith("reading is not affected")


def test_damage_is_not_called_harmless():
    """A wrong checksum, or values in doubt."""
    page = data_page(3, NUMBERS).with_crc()
    bad = FilePage(page.header, page.body[:-1] + b"\7")
    for pages in ([bad], [data_page(3, NUMBERS[:-1])]):
        messages = [one.message for one in numparq.verify(stored(pages)) if one.severity == "error"]
        assert messages
        assert not any("not affected" in message for message in messages)
