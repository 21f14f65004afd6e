"""Row selections in damaged files, with wrong offset indexes, and in files of old parquet-mr."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pyarrow as pa
import pytest

import numparq
from numparq import InvalidFileError, ParquetFile, read_parquet
from numparq.format.footer import tail as footer_module
from numparq.format.page_index import PAGE_ROW
from numparq.plan.chunk_pages import ChunkPages
from support.files.builder import (
    FIXED_LEN_BYTE_ARRAY,
    INT64,
    FileColumn,
    build_file,
    data_page,
    encode_levels,
    encode_plain,
)
from support.files.page_damage import damage_body, damage_header, pages_of
from support.files.prefix_carryover import OTHER, PARTS, WORDS, carryover_file, data_page_v2_of, encode_prefixes
from support.files.prefix_carryover import pages_of as pages_of_words
from support.files.wrong_locations import LIES, other_starts, swapped_places
from support.filters.reads import assert_frames_equal
from support.io.recorded_reads import RecordingFile
from support.row_selection import (
    SMALL,
    arrow_table,
    by_offset_index,
    expected_rows,
    page_locations,
    random_rows,
    read_rows,
    rows_of_file,
    small_read_sizes,
    whole_chunks,
    write_by_pyarrow,
)

FLAT = ["i4", "i8", "f8", "bool", "text", "fixed", "moment"]
NESTED = ["list", "words", "struct", "map", "deep", "one"]


def leaves_of(data):
    with ParquetFile(data) as file:
        return [file.schema.leaf(index).name for index in range(file.schema.num_leaves)]


# --- wrong offset indexes ---------------------------------------------------------------------------------------------


def is_plausible(locations, num_rows, end):
    try:
        ChunkPages(0, end, num_rows, locations)
    except InvalidFileError:
        return False
    return True


def replace_locations(leaf, lying):
    """Replace the page locations of one leaf."""
    return lambda _, index, original: lying if index == leaf else original


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_page_headers_are_checked_against_the_offset_index(version, dictionary, lie):
    """A wrong location is an error that names the column, or concerns only unselected pages."""
    rng = np.random.default_rng(1)
    data = write_by_pyarrow(
        arrow_table(300).select(FLAT + NESTED[:3]), data_page_version=version, use_dictionary=dictionary
    )
    (count, *_), locations, names = rows_of_file(data), page_locations(data), leaves_of(data)
    full = expected_rows(data, {0: np.arange(count)})
    refused = 0
    for number in range(60):
        leaf = number % len(names)
        lying = lie(rng, locations[0, leaf].copy()) if len(locations[0, leaf]) > 2 else locations[0, leaf]
        rows = random_rows(rng, count)
        if np.array_equal(lying, locations[0, leaf]) or not is_plausible(lying, count, len(data)) or not len(rows):
            continue
        try:
            with small_read_sizes(**SMALL[number % len(SMALL)]):
                got = read_rows(data, {0: rows}, replace_locations(leaf, lying))
        except InvalidFileError as error:
            refused += 1
            if "outside of the column chunk" not in str(error):  # this is checked before anything is read
                assert error.where["row_group"] == 0
                assert error.where["column"] == names[leaf]
            continue
        assert_frames_equal(got, full.iloc[rows].reset_index(drop=True), loose=True)
    assert refused or lie in (swapped_places, other_starts)


@pytest.mark.parametrize("name", [*FLAT, *NESTED])
def test_moved_row_boundary_between_pages(name):
    """The row counts of the pages are right in sum, and each is wrong."""
    data = write_by_pyarrow(
        arrow_table(300).select([name]), use_dictionary=False, row_group_size=300, write_batch_size=5, data_page_size=1
    )
    locations = page_locations(data)
    second = locations[0, 0][2, PAGE_ROW]

    def moved(_, __, original):
        original[1:3, PAGE_ROW] -= 1
        return original

    with pytest.raises(InvalidFileError) as caught:
        read_rows(data, {0: [0, second - 1]}, moved)
    assert caught.value.where["row_group"] == 0
    assert caught.value.where["column"] in leaves_of(data)
    got = read_rows(data, {0: [0, second - 1]})
    assert_frames_equal(got, expected_rows(data, {0: [0, second - 1]}), loose=True)


def test_offset_index_for_pages_that_begin_within_a_row():
    """Such pages have no valid offset index: values of a skipped row would be appended to an earlier list."""
    stored = [([0, 1, 0], [1, 2, 3]), ([0, 0], [4, 5]), ([1, 0], [6, 7])]
    pages = [
        data_page(
            len(values), encode_levels(repetition) + encode_levels([1] * len(values)) + encode_plain(INT64, values)
        )
        for repetition, values in stored
    ]
    data = build_file([5], [FileColumn("a", INT64, [pages], 2, facts={"num_values": 7})]).stored()
    rows = [[1, 2], [3], [4], [5, 6], [7]]
    assert [list(row) for row in read_parquet(data)["a"]] == rows

    def locations(_, __, ___):
        pages = pages_of(data, 0, "a")
        return np.array([(page.start, page.end - page.start, row) for page, row in zip(pages, (0, 2, 4), strict=True)])

    for selected in itertools.product([False, True], repeat=5):
        if selected[3] and not selected[4]:
            continue  # the page with the rest of its list is not read
        some = np.flatnonzero(selected)
        try:
            got = read_rows(data, {0: some}, locations)["a"].tolist()
        except InvalidFileError as error:
            assert error.where["column"] == "a"
            assert selected[4]
        else:
            assert [list(row) for row in got] == [rows[row] for row in some]


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [damage_header, damage_body])
def test_damage_in_unselected_pages_is_ignored(damage):
    """Located pages without selected rows are not read. Damage in the others names its page."""
    rng = np.random.default_rng(3)
    sound = write_by_pyarrow(arrow_table(300).select([*FLAT, "list"]), row_group_size=300, write_page_checksum=True)
    locations = page_locations(sound)
    for leaf, name in enumerate(leaves_of(sound)):
        pages = [page for page in pages_of(sound, 0, name) if not page.is_dictionary]
        first_rows = [*locations[0, leaf][:, PAGE_ROW].tolist(), 300]
        for number in rng.permutation(len(pages))[:4].tolist():
            bad = damage(sound, pages[number])
            inside, outside = np.arange(first_rows[number], first_rows[number + 1]), np.ones(300, bool)
            outside[inside] = False
            rows = np.flatnonzero(outside & (rng.random(300) < 0.3))
            assert_frames_equal(read_rows(bad, {0: rows}), expected_rows(sound, {0: rows}), loose=True)
            with pytest.raises(InvalidFileError) as caught:
                read_rows(bad, {0: np.union1d(rows, inside[-1:])}, threads=3)
            page = number + (len(pages_of(sound, 0, name)) > len(pages))
            assert {**caught.value.where, "file": ""} == {"file": "", "row_group": 0, "column": name, "page": page}
            with pytest.raises(InvalidFileError):
                read_parquet(bad)


def test_damage_between_selected_pages_without_an_offset_index_is_ignored():
    """The page ends where the second range of rows begins."""
    table = pa.table({"a": np.arange(400)})
    options = {"use_dictionary": False, "data_page_size": 8, "write_batch_size": 100, "row_group_size": 400}
    sound = write_by_pyarrow(table, **options, write_page_index=False, write_page_checksum=True)
    rows = [*range(100, 150), *range(300, 400)]
    bad = damage_body(sound, pages_of(sound, 0, "a")[2])
    assert read_rows(bad, {0: np.array(rows)})["a"].tolist() == rows
    with pytest.raises(InvalidFileError):
        read_rows(bad, {0: np.array([*rows, 299])})


@pytest.mark.parametrize("dictionary", [False, True])
def test_selected_invalid_utf8_is_an_error(dictionary):
    """Located pages and whole chunks, masks and indices behave alike."""
    values = [b"text %d" % (row % 40) for row in range(300)]
    values[250] = b"\xff\xfe"
    stored = pa.array(values, pa.binary()).buffers()
    text = pa.StringArray.from_buffers(300, *stored[1:])
    data = write_by_pyarrow(pa.table({"a": text}), row_group_size=300, use_dictionary=dictionary)
    for way in (by_offset_index, whole_chunks):
        for masked in (False, True):
            if not dictionary:  # a dictionary is validated as a whole
                assert read_rows(data, {0: [0, 3]}, way, masked=masked)["a"].tolist() == ["text 0", "text 3"]
            for rows in ([0, 250], [250], [*range(200, 300)], [*range(200, 300, 2)], [240, 249, 250, 299]):
                with pytest.raises(InvalidFileError) as caught:
                    read_rows(data, {0: rows}, way, masked=masked)
                assert caught.value.where["column"] == "a"


# --- prefixes carried over pages (PARQUET-246) ------------------------------------------------------------------------

OLD = "parquet-mr version 1.7.0 (build 1234567)"
FIXED_PARTS = [[word.ljust(10, b".") for word in part] for part in PARTS]


def by_headers(data):
    """Build a locator that takes the pages of the only column from their headers."""

    def change(_, __, ___):
        pages = pages_of(data, 0, "a")
        return np.array([(page.start, page.end - page.start, page.first_value) for page in pages], np.int64)

    return change


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("make", [data_page, data_page_v2_of], ids=["v1", "v2"])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("located", [False, True])
def test_prefixes_carried_over_pages(located, fixed, make):
    """Every set of rows: the pages before them are read, too, even if an index locates them."""
    parts, words = (FIXED_PARTS, [word.ljust(10, b".") for word in WORDS]) if fixed else (PARTS, WORDS)
    more = {"physical": FIXED_LEN_BYTE_ARRAY, "element": {"type_length": 10}} if fixed else {}
    data = carryover_file(pages_of_words(parts, make), len(words), OLD, **more)
    way = by_headers(data) if located else whole_chunks
    for number, selected in enumerate(itertools.product([False, True], repeat=len(words))):
        rows = np.flatnonzero(selected)
        with small_read_sizes(**SMALL[number % len(SMALL)]):
            got = read_rows(data, {0: rows}, way, threads=1 + number % 2, masked=number % 3 == 0)
        assert got["a"].tolist() == [words[row] for row in rows.tolist()]


@pytest.mark.parametrize("way", [whole_chunks, None], ids=["whole", "located"])
def test_prefixes_within_pages(way):
    """Each page of another writer is read alone."""
    data = carryover_file([data_page(len(part), encode_prefixes(part), 7) for part in PARTS], len(WORDS), OTHER)
    for selected in itertools.product([False, True], repeat=len(WORDS)):
        rows = np.flatnonzero(selected)
        got = read_rows(data, {0: rows}, way or by_headers(data))
        assert got["a"].tolist() == [WORDS[row] for row in rows.tolist()]


# --- row ranges without filters ---------------------------------------------------------------------------------------


def read_counted(data, monkeypatch, **options):
    """Return the frame and the number of bytes fetched."""
    monkeypatch.setattr(footer_module, "TAIL_BYTES", 16)
    source = RecordingFile(data)
    frame = read_parquet(source, **options)
    return frame, sum(stop - start for start, stop in source.ranges)


@pytest.mark.parametrize("writer", ["numparq", "pyarrow"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_row_ranges_fetch_fewer_bytes(monkeypatch, writer, dictionary):
    """Offset indexes locate the pages of partly selected row groups."""
    table = arrow_table(2000).drop_columns(["deep", "no type"])
    if writer == "pyarrow":
        data = write_by_pyarrow(table, use_dictionary=dictionary, row_group_size=1000)
    else:
        frame = table.to_pandas(types_mapper=lambda _: None)
        data = numparq.to_parquet(frame[FLAT], use_dictionary=dictionary, row_group_size=1000, max_rows_per_page=50)
    full, all_bytes = read_counted(data, monkeypatch)
    footer = 8 + struct.unpack("<I", data[-8:-4])[0]
    for first, stop, share in ((0, 3, 0.4), (995, 1004, 0.6), (1990, 2000, 0.4), (700, 1300, 0.8), (400, 401, 0.4)):
        for threads in (1, 3):
            got, num_bytes = read_counted(data, monkeypatch, row_range=(first, stop), threads=threads)
            assert_frames_equal(got, full.iloc[first:stop].reset_index(drop=True), loose=True)
            assert num_bytes - footer < share * (all_bytes - footer)
    for nrows in (1, 60, 1001):
        got, num_bytes = read_counted(data, monkeypatch, nrows=nrows)
        assert_frames_equal(got, full.iloc[:nrows].reset_index(drop=True), loose=True)
        assert num_bytes - footer < (0.4 if nrows < 100 else 0.8) * (all_bytes - footer)


def test_row_ranges_without_an_offset_index(monkeypatch):
    data = write_by_pyarrow(arrow_table(600).select(FLAT), write_page_index=False, row_group_size=300)
    full, _ = read_counted(data, monkeypatch)
    for first, stop in ((0, 600), (5, 6), (250, 350), (300, 600), (7, 7)):
        got, _ = read_counted(data, monkeypatch, row_range=(first, stop))
        assert_frames_equal(got, full.iloc[first:stop].reset_index(drop=True), loose=True)


def test_random_row_ranges():
    rng = np.random.default_rng(4)
    data = write_by_pyarrow(arrow_table(500), data_page_version="2.0")
    full = read_parquet(data)
    for number in range(40):
        first, stop = np.sort(rng.integers(0, 520, 2)).tolist()
        with small_read_sizes(**SMALL[number % len(SMALL)]):
            got = read_parquet(data, row_range=(first, stop), nrows=None if number % 3 else 50, threads=1 + number % 3)
        expected = full.iloc[first : stop if number % 3 else min(stop, first + 50)].reset_index(drop=True)
        assert_frames_equal(got, expected, loose=True)
