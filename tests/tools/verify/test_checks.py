"""`numparq verify`: one failing file for every check, valid files of many writers, and damaged files."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.cli import main
from numparq.errors import InvalidFileError, ParquetError
from numparq.tools.verify.checks import CHECKS
from numparq.tools.verify.deviations import Deviation
from numparq.tools.verify.file import check_file
from support.encryption import violations as encrypted
from support.files import builder as h
from support.files.spec_violations import VIOLATIONS, sound_file
from support.hostile.byte_damage import flipped_bytes


def errors(data):
    return [deviation for deviation in numparq.verify(data) if deviation.severity == "error"]


# --- every check ------------------------------------------------------------------------------------------------------


def test_every_check_has_a_file_that_fails_it():
    elsewhere = {"chunk-file"} | encrypted.VIOLATIONS.keys()  # test_file_external_chunks.py, test_encrypted_columns.py
    assert VIOLATIONS.keys() | elsewhere == CHECKS.keys()


@pytest.mark.parametrize("check", VIOLATIONS)
def test_violation_fails_only_its_check(check):
    make, also = VIOLATIONS[check]
    found = numparq.verify(make())
    assert {deviation.check for deviation in found} == {check, *also}
    assert all(deviation.severity == CHECKS[deviation.check].severity for deviation in found)
    assert all(deviation.message in str(deviation) for deviation in found)


def test_page_beyond_the_memory(monkeypatch):
    """Bounds of two strings of a gigabyte are copies of them."""

    def fail(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("numparq.tools.verify.pages.compute_page_bounds", fail)
    found = numparq.verify(numparq.to_parquet(pd.DataFrame({"a": [1, 2]})))
    assert [(one.check, one.row_group, one.column, one.page) for one in found] == [("not-checked", 0, "a", 0)]


LOCATIONS = {
    "page-crc": (0, "a", 0),
    "stats-min": (0, "a", None),
    "chunk-values": (0, "a", None),
    "column-index-min": (0, "i", 0),
    "offset-index-row": (0, "i", 1),
    "column-index-null-counts": (0, "i", 1),
    "group-ordinal": (0, None, None),
    "footer-rows": (None, None, None),
    "bloom-value": (0, "i", None),
    "page-header": (0, "i", 0),
    "sorting-rows": (0, None, None),
    "schema-decimal": (None, "a", None),
}


@pytest.mark.parametrize("check", LOCATIONS)
def test_deviation_locations(check):
    (found,) = (deviation for deviation in numparq.verify(VIOLATIONS[check][0]()) if deviation.check == check)
    assert (found.row_group, found.column, found.page) == LOCATIONS[check]


UNAFFECTED = "; the writer is unknown, and reading is not affected"
MESSAGES = {
    "stats-min": "the minimum of the statistics is 2, but value 1 is below it",
    "stats-null-count": "the statistics declare 1 null, but the data have 0",
    "chunk-rows": "the row group has 4 rows, but 3 begin in the pages",
    "page-range": "value 128 is out of range for INTEGER(8, signed)",
    "chunk-encodings-unused": "encodings listed but used by no page: DELTA_BINARY_PACKED",
    "bloom-value": "the Bloom filter lacks 60 of 60 values of the column chunk: readers will not find them",
    "chunk-type": "the column chunk has physical type DOUBLE, but the schema has INT64",
    "sorting-rows": "sorting_columns declares a sort order, but row 1 sorts before the previous row (59 such rows)",
    "thrift-required": "FileMetaData lacks the required field num_rows",
    "page-null-count": f"num_nulls is 2, but the page has 1 null{UNAFFECTED}",
    "page-bytes": f"1 byte follows the values{UNAFFECTED}",
    "page-run": f"a run of indices goes on for 7 more than the page has{UNAFFECTED}",
    "page-decimal": f"2 values have no bytes, and are read as 0{UNAFFECTED}",
    "chunk-bytes": f"16 bytes follow the last page, by the size of the column chunk{UNAFFECTED}",
}


@pytest.mark.parametrize("check", MESSAGES)
def test_deviation_messages(check):
    assert MESSAGES[check] in [deviation.message for deviation in numparq.verify(VIOLATIONS[check][0]())]


def test_bounds_of_int96():
    """Bounds of INT96 are checked if the footer declares the timestamp order."""
    from support.files.builder import extended_idl
    from support.files.spec_violations import one_column

    def moment(day, nanoseconds):
        return nanoseconds.to_bytes(8, "little") + day.to_bytes(4, "little")

    moments = [moment(2, 1), moment(1, 3), moment(2, 0)]
    cases = ((1, 0, set()), (2, 0, {"stats-min"}), (1, 2, {"stats-max"}), (0, 1, {"stats-min", "stats-max"}))
    for low, high, wrong in cases:
        bounds = {"min_value": moments[low], "max_value": moments[high]}
        data = one_column(
            pages=[h.data_page(3, b"".join(moments))],
            physical=h.INT96,
            facts={"statistics": extended_idl().Statistics(**bounds)},
            column_orders=[extended_idl().ColumnOrder(INT96_TIMESTAMP_ORDER=extended_idl().Int96TimestampOrder())],
        )
        assert {deviation.check for deviation in numparq.verify(data)} == wrong


@pytest.mark.parametrize("decimal", [False, True])
def test_values_of_no_bytes(decimal):
    module = h.extended_idl()
    kind = {"logicalType": module.LogicalType(DECIMAL=module.DecimalType(scale=0, precision=1))} if decimal else {}
    column = h.FileColumn("a", h.FIXED_LEN_BYTE_ARRAY, [[h.data_page(3, b"")]], element={"type_length": 0, **kind})
    orders = [module.ColumnOrder(TYPE_ORDER=module.TypeDefinedOrder())]
    found = {
        deviation.check for deviation in numparq.verify(h.build_file([3], [column], column_orders=orders).stored())
    }
    assert ("schema-decimal" in found) == decimal
    assert "page-values" not in found


def test_bounds_without_column_orders():
    """Bounds without column orders are checked in the type's order, which readers assume."""
    from support.files.spec_violations import column_with_statistics, edit_footer

    def found(**bounds):
        data = edit_footer(column_with_statistics(**bounds), lambda footer: setattr(footer, "column_orders", None))
        return [deviation.check for deviation in numparq.verify(data)]

    assert found(min_value=2, max_value=2) == ["column-orders-bounds", "stats-min", "stats-max"]
    assert found(min=1, max=3) == []
    assert found(min=2, max=3) == ["stats-legacy"]

    def change(footer):
        footer.column_orders = None
        for group in footer.row_groups:
            for chunk in group.columns:
                chunk.meta_data.statistics = None

    assert [deviation.check for deviation in numparq.verify(edit_footer(sound_file(), change))] == [
        "column-orders-bounds"
    ]


def test_bounds_of_unknown_column_order():
    """Bounds in a column order of a later format version are not checked."""
    from support.files.spec_violations import column_with_statistics

    data = column_with_statistics(min_value=2, max_value=2)
    assert {deviation.check for deviation in numparq.verify(data)} == {"stats-min", "stats-max"}
    known, later = b"\x39\x1c\x1c\x00\x00", b"\x39\x1c\xac\x00\x00"  # a list of one union: member 1, or member 10
    assert data.count(known) == 1
    data = data.replace(known, later)
    with numparq.ParquetFile(data) as file:
        assert [order.which() for order in file.metadata.column_orders] == [None]
    assert numparq.verify(data) == []


def test_deviation_as_text():
    assert str(Deviation("error", "page-crc", "damaged", 1, "a", 2)) == (
        "error: row group 1, column 'a', page 2: damaged [page-crc]"
    )
    assert str(Deviation("warning", "footer-version", "odd")) == "warning: odd [footer-version]"


def test_pages_after_a_damaged_page_are_checked():
    """The offset index locates the next page after a damaged page header."""
    data = bytearray(VIOLATIONS["page-header"][0]())
    second = numparq.ParquetFile(sound_file()).metadata.row_groups[1].columns[0].meta_data
    data[second.data_page_offset + second.total_compressed_size - 1] ^= 1
    found = numparq.verify(bytes(data))
    assert [(deviation.check, deviation.row_group, deviation.page) for deviation in found][:2] == [
        ("page-header", 0, 0),
        ("page-crc", 1, 2),
    ]
    assert check_file(bytes(data)).checked_counts["pages"] == check_file(sound_file()).checked_counts["pages"] - 1


# --- valid files ------------------------------------------------------------------------------------------------------


def arrow_table(count=3000):
    import datetime
    import decimal

    import pyarrow as pa

    rng = np.random.default_rng(1)
    return pa.table(
        {
            "i": np.arange(count),
            "i1": rng.integers(-100, 100, count).astype("i1"),
            "f": [None if i % 7 == 0 else float(i) for i in range(count)],
            "nan": np.where(np.arange(count) % 5 == 0, np.nan, 1.5),
            "zero": [-0.0, 1.0, 2.0] * (count // 3),
            "s": [f"key {i % 50}" for i in range(count)],
            "long": [f"a long string {i} " * 9 for i in range(count)],
            "b": rng.integers(0, 2, count).astype(bool),
            "d": [datetime.date(2020, 1, 1 + i % 9) for i in range(count)],
            "ts": np.arange(count).astype("M8[us]"),
            "null": pa.array([None] * count, pa.int32()),
            "dec": [decimal.Decimal(int(value)).scaleb(-2) for value in rng.integers(-(10**6), 10**6, count)],
            "l": [[1, 2, None] if i % 3 else None if i % 2 else [] for i in range(count)],
            "st": [{"a": i, "b": [str(i % 9)]} for i in range(count)],
            "m": pa.array(
                [[(str(k), i) for k in range(i % 3)] for i in range(count)], pa.map_(pa.string(), pa.int64())
            ),
            "bin": [b"\xff\x00"] * count,
            "fixed": pa.array([b"abcd"] * count, pa.binary(4)),
        }
    )


def pyarrow_file(**options):
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(arrow_table(), buffer, **options)
    return buffer.getvalue()


PYARROW = {
    "default": {},
    "all": {
        "write_page_index": True,
        "write_page_checksum": True,
        "data_page_size": 2000,
        "row_group_size": 900,
        "compression": "zstd",
        "data_page_version": "2.0",
    },
    "plain": {"use_dictionary": False, "compression": "none", "write_page_index": True},
}


@pytest.mark.parametrize("options", PYARROW)
def test_valid_files_of_pyarrow(options):
    pytest.importorskip("pyarrow")
    found = numparq.verify(pyarrow_file(**PYARROW[options]))
    # pyarrow counts data pages V2 as V1 in the encoding statistics.
    assert {deviation.check for deviation in found} <= {"encoding-stats-version"}
    assert bool(found) == (options == "all")


def test_valid_empty_files_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for table in (arrow_table().slice(0, 0), pa.table({})):
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        assert {deviation.check for deviation in numparq.verify(buffer.getvalue())} <= {"data-offset-legacy"}


@pytest.mark.parametrize("options", [{}, {"row_group_size": 500, "data_page_size": 900, "statistics": "full"}])
def test_valid_files_of_polars(options):
    pl = pytest.importorskip("polars")
    buffer = io.BytesIO()
    pl.from_arrow(arrow_table().drop_columns(["m"])).write_parquet(buffer, **options)
    assert numparq.verify(buffer.getvalue()) == []


@pytest.mark.parametrize("options", ["", "(row_group_size 2048, parquet_version v2)"])
def test_valid_files_of_duckdb(tmp_path, options):
    """DuckDB lists neither the encodings of levels nor those of dictionaries."""
    duckdb = pytest.importorskip("duckdb")
    table = arrow_table()
    path = tmp_path / "a.parquet"
    duckdb.from_arrow(table).query("rides", f"copy rides to '{path}' {options}")
    report = check_file(path)
    assert {deviation.check for deviation in report.deviations} == {"chunk-encodings-beside"}
    assert report.checked_counts["Bloom filters"] > 5


NUMPARQ = {
    "default": {},
    "all": {
        "row_group_size": 700,
        "data_page_size": 999,
        "data_page_version": "2.0",
        "sorting_columns": ["i"],
        "bloom_filter_options": {"i": {}, "s": {}, "f": {}, "nan": {}},
        "column_order": "ieee754",
        "compression": "zstd",
    },
    "plain": {
        "use_dictionary": False,
        "write_page_checksum": False,
        "compression": "none",
        "column_encoding": {
            "i": "DELTA_BINARY_PACKED",
            "s": "DELTA_BYTE_ARRAY",
            "f": "BYTE_STREAM_SPLIT",
            "long": "DELTA_LENGTH_BYTE_ARRAY",
        },
    },
}


@pytest.mark.parametrize("options", NUMPARQ)
@pytest.mark.parametrize("rows", [3000, 0])
def test_valid_files_of_numparq(options, rows):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = arrow_table().to_pandas(types_mapper=pd.ArrowDtype).iloc[:rows]
    report = check_file(numparq.to_parquet(frame, **NUMPARQ[options]))
    assert report.deviations == []
    assert report.num_rows == rows
    assert report.is_valid


def test_checked_counts():
    report = check_file(sound_file())
    assert (report.num_rows, report.num_row_groups, report.num_columns, report.errors) == (120, 2, 4, 0)
    assert report.checked_counts == {
        "row groups": 2,
        "column chunks": 8,
        "pages": 26,
        "checksums": 26,
        "Bloom filters": 4,
        "offset indexes": 8,
        "column indexes": 8,
    }


# --- conformance files ------------------------------------------------------------------------------------------------

# Good files with deviations, and their failing checks.
DEVIATING = {
    "byte_array_decimal.parquet": {"chunk-encodings"},  # the list of encodings is empty
    "nation.dict-malformed.parquet": {"chunk-encodings"},
    "repeated_no_annotation.parquet": {"footer-rows"},  # the footer says 0 rows
    # Their column indexes declare every page a null page.
    "datapage_v1-snappy-compressed-checksum.parquet": {"column-index-null-pages"},
    "datapage_v1-uncompressed-checksum.parquet": {"column-index-null-pages"},
    "datapage_v1-corrupt-checksum.parquet": {"column-index-null-pages", "page-crc"},
}
BAD = {
    "ARROW-GH-41321.parquet": {"page-levels", "page-counts"},
    "ARROW-GH-43605.parquet": set(),  # indices of bit width 0 are all 0, which is valid
    "ARROW-GH-47662.parquet": {"page-values"},
    "ARROW-RS-GH-6229-DICTHEADER.parquet": {"thrift-type", "thrift-required", "page-size", "chunk-place"},
    "PARQUET-1481.parquet": {"thrift-enum"},
}


def test_good_conformance_files(parquet_testing):
    paths = sorted((parquet_testing / "data").glob("*.parquet"))
    assert len(paths) >= 40
    for path in paths:
        if path.name != "large_string_map.brotli.parquet":  # a GiB of strings
            found = {deviation.check for deviation in errors(path)}
            assert found == DEVIATING.get(path.name, set()), path.name


def test_shredded_variant_conformance_files(parquet_testing):
    paths = sorted((parquet_testing / "shredded_variant").glob("*.parquet"))
    assert len(paths) >= 60
    for path in paths:
        lost = numparq.read_parquet(path, on_error="skip").attrs["numparq.lost"]
        assert {deviation.check for deviation in errors(path)} == ({"variant-values"} if lost else set()), path.name


@pytest.mark.parametrize("name", BAD)
def test_bad_conformance_files(parquet_testing, name):
    assert {deviation.check for deviation in errors(parquet_testing / "bad_data" / name)} == BAD[name]


def test_encrypted_files(parquet_testing):
    (locked,) = numparq.verify(parquet_testing / "data" / "uniform_encryption.parquet.encrypted")
    assert (locked.check, locked.message) == ("not-checked", "the footer is encrypted; not checked: no key")
    found = numparq.verify(parquet_testing / "data" / "encrypt_columns_plaintext_footer.parquet.encrypted")
    assert {(deviation.check, deviation.column) for deviation in found} == {
        ("not-checked", "double_field"),
        ("not-checked", "float_field"),
    }


# --- hostile files ----------------------------------------------------------------------------------------------------


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(4))
def test_flipped_bytes_are_reported(part):
    """Any damage gives a list of deviations; damage in checksummed pages is always found."""
    data = sound_file()
    pages = [chunk.meta_data for group in numparq.ParquetFile(data).metadata.row_groups for chunk in group.columns]
    ends = [(meta.data_page_offset, meta.data_page_offset + meta.total_compressed_size) for meta in pages]
    num_verified = 0
    for what, damaged in flipped_bytes(data, 7, part * 60, 60):
        try:
            found = numparq.verify(damaged)
        except ParquetError:
            continue
        num_verified += 1
        changed = [position for position, (one, other) in enumerate(zip(data, damaged, strict=True)) if one != other]
        in_pages = [position for position in changed if any(start <= position < end for start, end in ends)]
        assert found or not in_pages, what
    assert num_verified >= 50


def test_truncated_file_has_no_footer():
    data = sound_file()
    for cut in range(0, len(data), 97):
        try:
            found = numparq.verify(data[:cut])
        except InvalidFileError:
            assert cut < 4
        else:
            assert [deviation.check for deviation in found] == ["magic-tail"]


def test_deviations_are_bounded():
    """A thousand deviations of a kind are listed, the others are counted."""
    footer = sound_file()[:4] + b"\x15\x02\x19\xfc\xff\xff\x03" + b"\x00" * 65535
    data = footer + (len(footer) - 4).to_bytes(4, "little") + b"PAR1"
    report = check_file(data)
    assert len(report.deviations) <= 1002
    assert {d.check for d in report.deviations} == {
        "thrift-required",
        "thrift-struct",
    }


@pytest.mark.parametrize("name", ["num_values", "encoding", "definition_level_encoding", "repetition_level_encoding"])
def test_page_headers_without_required_fields(name):
    """Found by flipping bytes."""
    from support.files.spec_violations import first_page

    found = numparq.verify(first_page(**{name: None}))
    assert found[0].check == "thrift-required"
    assert name in found[0].message
    assert found[0].page == 0


def test_huge_runs_are_not_decoded():
    """A run of a few bytes stands for 2**31 values, more than are decoded."""
    from support.files.spec_violations import one_column

    many = (1 << 31) - 1
    section = b"\xfe\xff\xff\xff\x0f\x00"
    page = h.data_page(many, len(section).to_bytes(4, "little") + section)
    found = numparq.verify(one_column(pages=[page] * 3, repetition=h.OPTIONAL, rows=3 * many))
    assert {deviation.check for deviation in found} >= {"not-checked"}


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "good").write_bytes(sound_file())
    (tmp_path / "bad").write_bytes(VIOLATIONS["stats-min"][0]())
    (tmp_path / "odd").write_bytes(VIOLATIONS["group-ordinal"][0]())
    (tmp_path / "none").write_bytes(b"no Parquet file at all")
    return tmp_path


STATUSES = {
    ("good",): 0,
    ("bad",): 1,
    ("odd",): 0,
    ("odd", "--strict"): 1,
    ("none",): 2,
    ("missing",): 2,
    ("good", "bad"): 1,
    ("none", "bad", "good"): 2,
}


@pytest.mark.parametrize("arguments", STATUSES, ids=" ".join)
def test_exit_status(folder, arguments, capsys):
    words = [word if word.startswith("--") else str(folder / word) for word in arguments]
    assert main(["verify", *words]) == STATUSES[arguments]
    output = capsys.readouterr()
    assert bool(output.err) == bool({"none", "missing"} & set(arguments))


def test_piped_output(folder):
    command = [sys.executable, "-m", "numparq", "verify", str(folder / "good"), str(folder / "bad")]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.replace(f"{folder}/", "").splitlines()
    assert done.returncode == 1
    assert done.stderr == ""
    assert lines[0] == "good: sound"
    assert lines[2] == "bad: 1 error"
    assert lines[1].endswith(
        "checked 2 row groups, 8 column chunks, 26 pages, 26 checksums, 8 column indexes, "
        "8 offset indexes, 4 Bloom filters"
    )
    assert lines[4] == (
        "bad: error: row group 0, column 'a': the minimum of the statistics is 2, but value 1 is below it [stats-min]"
    )


def test_terminal_output_has_colors(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["verify", str(folder / "bad")]) == 1
    assert "\x1b[" in capsys.readouterr().out
