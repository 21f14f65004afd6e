"""`numparq verify` and writer quirks: a warning for the known writer, an error for others, and values still checked."""

from __future__ import annotations

import struct

import pandas as pd
import pytest

import numparq
from numparq.errors import ParquetError
from numparq.format.schema import OPTIONAL, REQUIRED
from numparq.format.writer_quirks import TOLERATED_DEFECTS
from numparq.tools.verify.checks import CHECKS
from numparq.tools.verify.file import check_file
from numparq.tools.verify.page_values import first_delta_value, max_delta_bits
from support.encryption.violations import VIOLATIONS
from support.files import builder as h
from support.files import writer_quirks as faults
from support.files.writer_quirks import OTHER, QUIRKS
from support.hostile.byte_damage import flipped_bytes


def checks(data):
    return {deviation.check for deviation in numparq.verify(data)}


def test_quirks_are_registered_checks():
    assert TOLERATED_DEFECTS.keys() <= QUIRKS.keys() | VIOLATIONS.keys()
    assert QUIRKS.keys() <= CHECKS.keys()
    assert all(CHECKS[check].severity == "warning" for check in QUIRKS)
    assert all(CHECKS[fault.error].severity == "error" for fault in TOLERATED_DEFECTS.values())


@pytest.mark.parametrize("check", QUIRKS)
@pytest.mark.parametrize("created_by", [OTHER, "parquet-mr version 1.18.1"])
def test_quirk_of_another_writer_is_an_error(check, created_by):
    make, _, expected = QUIRKS[check]
    found = checks(make(created_by))
    assert found
    assert found <= expected


LATER = {
    "writer-variant": "DuckDB version v1.6.0",
    "writer-prefixes": "parquet-mr version 1.8.0",
    "writer-row-count": "parquet-cpp-arrow version 12.0.0",
    "writer-null-count": "parquet-cpp-arrow version 12.0.0",
    "writer-list-nulls": "parquet-cpp-arrow version 26.0.0",
    "writer-compressed": "parquet-cpp-arrow version 3.0.0",
}


@pytest.mark.parametrize("check", LATER)
def test_quirk_of_a_later_release_is_not_tolerated(check):
    assert check not in checks(QUIRKS[check][0](LATER[check]))


def test_quirk_messages():
    (found,) = numparq.verify(faults.prefixes(faults.PARQUET_MR))
    assert str(found) == (
        "warning: row group 0, column 'a', page 1: the first string shares 10 bytes with the last "
        "one of the previous page (PARQUET-246) [writer-prefixes]"
    )
    (found,) = numparq.verify(QUIRKS["writer-bool"][0](QUIRKS["writer-bool"][1]))
    assert found.message == (
        "FileMetaData.schema[1].repetition_type is stored as a bool instead of an enum "
        "(fastparquet does so when it infers nulls)"
    )


# --- values of quirky files are checked -------------------------------------------------------------------------------


def with_statistics(data, **bounds):
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = h.from_bytes("FileMetaData", data[-8 - length : -8])
    for name, value in bounds.items():
        setattr(footer.row_groups[0].columns[0].meta_data.statistics, name, value)
    return h.with_footer(data[: -8 - length], footer)


WRONG = {
    "writer-level-bits": {"null_count": (3, "stats-null-count"), "max_value": (struct.pack("<q", 8), "stats-max")},
    "writer-prefixes": {"min_value": (b"other1", "stats-min"), "max_value": (b"strawberr", "stats-max")},
    "writer-compressed": {
        "min_value": (struct.pack("<q", 8), "stats-min"),
        "max_value": (struct.pack("<q", 8), "stats-max"),
    },
}


@pytest.mark.parametrize("check", WRONG)
def test_statistics_are_checked_against_corrected_values(check):
    make, writer, _ = QUIRKS[check]
    for name, (value, wrong) in WRONG[check].items():
        assert checks(with_statistics(make(writer), **{name: value})) == {check, wrong}


def test_prefix_pages_after_a_damaged_page_are_not_checked():
    """A prefix page that continues a damaged page may be valid; a page that starts anew is checked again."""
    found = numparq.verify(faults.prefixes(faults.PARQUET_MR, spoilt=1))
    assert [(deviation.check, deviation.page) for deviation in found] == [("page-values", 1), ("not-checked", 3)]
    found = numparq.verify(faults.prefixes(faults.PARQUET_MR, spoilt=3))
    assert [(deviation.check, deviation.page) for deviation in found] == [("writer-prefixes", 1), ("page-values", 3)]


def test_first_page_with_prefix_is_an_error():
    page = h.data_page(2, faults.encoded([b"straw", b"stray"], b"str"), faults.PREFIXES)
    assert checks(faults.one([page], 2, faults.PARQUET_MR, h.BYTE_ARRAY)) == {"page-values"}


def test_pages_flagged_as_compressed_are_valid():
    assert checks(faults.compressed(faults.PARQUET_CPP, is_compressed=True)) == set()


def test_nonzero_checksums_are_checked():
    page = h.data_page(2, h.encode_plain(h.INT64, [1, 2]))
    assert checks(faults.one([page.with_crc()], 2, "Parquet.jl 0.6.0")) == set()
    page.header.crc = 1
    assert checks(faults.one([page], 2, "Parquet.jl 0.6.0")) == {"page-crc"}


def test_uncounted_nulls_of_parquet_java():
    assert checks(faults.nulls("parquet-mr version 1.17.0 (build 0)", -1)) == {"writer-null-count"}
    assert checks(faults.nulls("parquet-mr version 1.18.0 (build 0)", -1)) == {"page-null-count"}
    assert "page-counts" in checks(faults.nulls("parquet-mr version 1.17.0 (build 0)", -2))


def test_other_wrong_counts_are_errors():
    arrow = "parquet-cpp-arrow version 25.0.1"
    assert checks(faults.list_nulls(arrow)) == set()
    assert checks(faults.list_nulls(arrow, said=3)) == {"page-null-count"}
    assert checks(faults.list_nulls(arrow, null_count=3)) == {"stats-null-count"}
    assert checks(faults.rows("parquet-go version latest", said=2)) == {"page-row-count"}
    assert checks(faults.shredded("DuckDB version v1.4.0", OPTIONAL, REQUIRED)) == {"schema-variant"}
    assert checks(faults.shredded("DuckDB version v1.4.0", REQUIRED, REQUIRED)) == set()


def test_delta_header_values():
    for values in ([], [5], [-3, 4, 9], list(range(300)), [0, 2**31 - 1, -(2**31)] * 99):
        for bits in (32, 64):
            section = faults.delta.encode(values, bits)
            assert first_delta_value(section) == (values[0] if values else 0)
            assert (max_delta_bits(section) > 32) == (bits == 64 and len(values) == 297)
    assert first_delta_value(b"") == max_delta_bits(b"") == 0


# --- files of these writers -------------------------------------------------------------------------------------------


def test_files_of_fastparquet(tmp_path):
    fastparquet = pytest.importorskip("fastparquet")
    path = str(tmp_path / "a.parquet")
    fastparquet.write(path, pd.DataFrame({"a": [1.0, 2, 3], "s": ["a", None, "b"]}), has_nulls="infer")
    report = check_file(path)
    assert report.is_valid
    assert "writer-bool" in {deviation.check for deviation in report.deviations}


def test_deltas_of_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    numbers = "case i % 3 when 0 then -2147483648 when 1 then 2147483647 - i else i end"
    duckdb.sql(
        f"copy (select ({numbers})::integer a from range(5000) r(i)) to '{path}' "
        "(format parquet, parquet_version v2, dictionary_size_limit 1)"
    )
    assert checks(path) <= {"writer-deltas", "chunk-encodings-beside"}


@pytest.mark.parametrize("check", QUIRKS)
def test_flipped_bytes_in_quirky_files_are_reported(check):
    make, writer, _ = QUIRKS[check]
    data, num_verified, num_noticed = make(writer), 0, 0
    undamaged = {deviation.check for deviation in numparq.verify(data)}
    for _, damaged in flipped_bytes(data, 11, 0, 40):
        try:
            found = numparq.verify(damaged)
        except ParquetError:
            continue
        num_verified += 1
        num_noticed += {deviation.check for deviation in found} != undamaged
    assert num_verified >= 30
    assert num_noticed > 0
