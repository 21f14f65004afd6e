"""`numparq salvage`: intact rows of truncated and damaged files are saved, and no row changes."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.cli import main
from numparq.errors import InvalidFileError, ParquetError, SchemaError, UnsupportedError
from numparq.tools.salvage.file import salvage
from numparq.tools.verify.file import check_file
from support.data.foreign_tables import FOREIGN, add_rows, forge_table
from support.files import builder as h
from support.files.builder import FileColumn, data_page, encode_plain
from support.files.page_damage import footer_of, footer_start
from support.files.spec_violations import handmade_file, sound_file
from support.files.writer_quirks import list_nulls
from support.hostile.byte_damage import flipped_bytes

ROWS = 40  # per row group


def frame(count):
    return pd.DataFrame(
        {
            "i": np.arange(count),
            "s": [None if i % 7 == 0 else f"key {i % 9}" for i in range(count)],
            "f": np.arange(count) / 3,
            "l": [[None] * (i % 2) + list(range(i % 4)) for i in range(count)],
            "b": np.arange(count) % 3 == 0,
            "st": [None if i % 5 == 0 else {"x": i, "y": ["z"] * (i % 3)} for i in range(count)],
        }
    ).astype({"s": "str"})


def expected_rows(count):
    """Return a frame as it is read back."""
    return numparq.read_parquet(numparq.to_parquet(frame(count)))


OPTIONS = {
    "dictionaries": {},
    "version 2": {"data_page_version": "2.0", "max_rows_per_page": 16},
    "plain": {"use_dictionary": False, "compression": "none", "max_rows_per_page": 16, "write_page_checksum": False},
    "zstd": {"use_dictionary": False, "compression": "zstd", "max_rows_per_page": 16},
    "gzip": {"compression": "gzip", "row_group_alignment": 512},
    "lz4": {"compression": "lz4", "write_page_checksum": False, "data_page_version": "2.0"},
    "brotli": {"compression": "brotli"},
    "deltas": {"column_encoding": {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"}, "use_dictionary": False},
}


def write_file(count, name, **more):
    return numparq.to_parquet(frame(count), row_group_size=ROWS, **OPTIONS[name], **more)


def row_group_ends(data):
    """Return the end (exclusive) of the pages of each row group."""
    found = []
    for group in numparq.ParquetFile(data).metadata.row_groups:
        chunks = [chunk.meta_data for chunk in group.columns]
        starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        sizes = [chunk.total_compressed_size for chunk in chunks]
        found.append(max(start + size for start, size in zip(starts, sizes, strict=True)))
    return found


def salvage_bytes(tmp_path, data, schema=None, **options):
    """Salvage bytes; return the report and the path of the new file."""
    (tmp_path / "damaged").write_bytes(data)
    report = salvage(tmp_path / "damaged", tmp_path / "saved", schema, force=True, **options)
    assert (tmp_path / "damaged").read_bytes() == data
    return report, tmp_path / "saved"


def check(path, report, expected):
    assert [str(deviation) for deviation in numparq.verify(path)] == []
    assert report.num_rows == len(expected)
    pd.testing.assert_frame_equal(numparq.read_parquet(path).reset_index(drop=True), expected)


# --- truncated files --------------------------------------------------------------------------------------------------


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", OPTIONS)
def test_truncated_near_row_group_ends(tmp_path, name):
    data, schema = write_file(3 * ROWS, name), write_file(20, name)
    ends = row_group_ends(data)
    for cut in sorted({end + by for end in ends for by in (-1, 0, 1, 70)} | {len(data) - 1, len(data) - 8}):
        whole = sum(end <= cut for end in ends)
        if not whole:
            with pytest.raises(InvalidFileError, match="is cut off"):
                salvage_bytes(tmp_path, data[:cut], schema)
            continue
        report, path = salvage_bytes(tmp_path, data[:cut], schema)
        check(path, report, expected_rows(3 * ROWS)[: whole * ROWS])
        assert report.num_row_groups == whole
        assert cut not in ends or not report.lost


@pytest.mark.slow
def test_truncated_at_every_byte(tmp_path):
    rows = pd.DataFrame({"a": np.arange(6), "b": [f"value {i}" for i in range(6)], "c": [[i] * 2 for i in range(6)]})
    data = numparq.to_parquet(rows, row_group_size=3, use_dictionary=False)
    schema, ends = numparq.to_parquet(rows[:1], use_dictionary=False), row_group_ends(data)
    for cut in [*range(4, ends[-1] + 30), *range(ends[-1] + 30, len(data), 97)]:
        whole = sum(end <= cut for end in ends)
        try:
            report, path = salvage_bytes(tmp_path, data[:cut], schema)
        except InvalidFileError:
            assert not whole
        else:
            assert report.num_rows == 3 * whole
            assert whole
            pd.testing.assert_frame_equal(numparq.read_parquet(path).reset_index(drop=True), rows[: 3 * whole])


def test_chunk_without_metadata(tmp_path):
    """The codec of the new file is that of the first column chunk that has metadata."""
    data = write_file(2 * ROWS, "zstd")
    footer = footer_of(data)
    footer.row_groups[0].columns[0].meta_data = None
    report, path = salvage_bytes(tmp_path, h.with_footer(data[: footer_start(data)], footer))
    assert report.num_rows == ROWS
    assert len(numparq.read_parquet(path)) == ROWS


@pytest.mark.parametrize(
    ("checksums", "sizes", "num_rows"),
    [
        (True, ["total_compressed_size", "total_uncompressed_size"], ROWS),
        (False, ["total_compressed_size"], ROWS),
        (False, ["total_compressed_size", "total_uncompressed_size"], 32),
    ],
)
def test_chunk_that_its_pages_do_not_fill(tmp_path, checksums, sizes, num_rows):
    """Nothing is lost if a checksum or the uncompressed size confirms the last page, and else that page."""
    data = numparq.to_parquet(
        frame(ROWS)[["i"]],
        use_dictionary=False,
        max_rows_per_page=16,
        write_page_index=False,
        write_page_checksum=checksums,
    )
    footer = footer_of(data)
    for size in sizes:
        facts = footer.row_groups[0].columns[0].meta_data
        setattr(facts, size, getattr(facts, size) + 7)
    report, path = salvage_bytes(tmp_path, h.with_footer(data[: footer_start(data)] + bytes(7), footer))
    assert report.num_rows == len(numparq.read_parquet(path)) == num_rows


WRITERS = ("pyarrow", "pyarrow v2", "polars", "duckdb")


def file_of_writer(writer, count, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "i": np.arange(count),
            "s": [f"{i % 40}" for i in range(count)],
            "x": np.arange(count) / 3,
            "l": [[i] * (i % 3) for i in range(count)],
        }
    )
    buffer = io.BytesIO()
    if writer.startswith("pyarrow"):
        pq.write_table(
            table,
            buffer,
            row_group_size=2048,
            data_page_version="2.0" if "v2" in writer else "1.0",
            data_page_size=4000,
        )
    elif writer == "polars":
        pytest.importorskip("polars").from_arrow(table).write_parquet(buffer, row_group_size=2048)
    else:
        duckdb = pytest.importorskip("duckdb")
        path = tmp_path / "by_duckdb"
        duckdb.from_arrow(table).query("rows", f"copy rows to '{path}' (format parquet, row_group_size 2048)")
        return path.read_bytes()
    return buffer.getvalue()


@pytest.mark.parametrize("writer", WRITERS)
def test_truncated_files_of_other_writers(tmp_path, writer):
    pytest.importorskip("pyarrow")
    data, schema = file_of_writer(writer, 6000, tmp_path), file_of_writer(writer, 50, tmp_path)
    ends, expected = row_group_ends(data), numparq.read_parquet(data)
    for cut in (ends[0], ends[1] - 1, ends[1], ends[-1], len(data) - 9):
        rows = min(2048 * sum(end <= cut for end in ends), 6000)
        report, path = salvage_bytes(tmp_path, data[:cut], schema)
        assert report.num_rows == rows
        pd.testing.assert_frame_equal(numparq.read_parquet(path), expected[:rows])


def test_schema_argument_from_pyarrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    data = file_of_writer("pyarrow", 3000, tmp_path)
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("x", pa.float64()), ("l", pa.list_(pa.int64()))])
    _, path = salvage_bytes(tmp_path, data[:-20], schema)
    pd.testing.assert_frame_equal(numparq.read_parquet(path), numparq.read_parquet(data))


def test_column_metadata_after_chunks_is_skipped(tmp_path):
    data, schema = write_file(2 * ROWS, "plain"), write_file(9, "plain")
    footer = h.from_bytes("FileMetaData", data[-8 - int.from_bytes(data[-8:-4], "little") : -8])[0]
    out = data[:4]
    for group in footer.row_groups:
        for chunk in group.columns:
            meta = chunk.meta_data
            out += data[meta.data_page_offset : meta.data_page_offset + meta.total_compressed_size] + h.to_bytes(chunk)
    report, path = salvage_bytes(tmp_path, out, schema)
    assert report.num_rows == 2 * ROWS
    assert report.lost == []
    pd.testing.assert_frame_equal(numparq.read_parquet(path).reset_index(drop=True), expected_rows(2 * ROWS))


# --- checkpoints ------------------------------------------------------------------------------------------------------


def with_checkpoints(groups, every):
    """Return a file with checkpoint footers, and the ends of all footers."""
    with numparq.ParquetWriter(None, checkpoint_row_groups=every, row_group_size=ROWS) as writer:
        writer.write(frame(groups * ROWS))
    data = writer.getvalue()
    footer_ends = [position + 4 for position in range(4, len(data)) if data[position : position + 4] == b"PAR1"]
    return data, footer_ends


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("every", [1, 2])
def test_truncated_near_checkpoints(tmp_path, every):
    """Row groups after the last checkpoint are found by their pages; its footer has the columns."""
    data, footers = with_checkpoints(5, every)
    ends = row_group_ends(data)
    for cut in sorted({end + by for end in [*ends, *footers[:-1]] for by in (-1, 0, 1)}):
        whole = sum(end <= cut for end in ends)
        if cut < footers[0]:
            with pytest.raises(SchemaError, match="pass a file with the same columns as `schema`"):
                salvage_bytes(tmp_path, data[:cut])
            continue
        report, path = salvage_bytes(tmp_path, data[:cut])
        check(path, report, expected_rows(5 * ROWS)[: whole * ROWS])


def test_report_lines_of_truncated_file(tmp_path):
    data, footers = with_checkpoints(3, 1)
    ends = row_group_ends(data)
    report, _ = salvage_bytes(tmp_path, data[: ends[1] + 5])
    assert str(report).splitlines() == [
        f"saved {2 * ROWS} rows in 2 row groups",
        f"kept: {ROWS} rows in 1 row group, by the checkpoint's footer that ends at byte {footers[0]:,}",
        f"kept: {ROWS} rows in 1 row group, by their pages up to byte {ends[1]:,}",
        f"lost: 5 bytes from byte {ends[1]:,} on: no intact page begins at byte {ends[1]:,}: its header is damaged",
    ]


def test_check_file_describes_truncated_file():
    data, footers = with_checkpoints(3, 1)
    cut = data[: row_group_ends(data)[1] + 5]
    notes = check_file(cut).notes
    assert f"the last checkpoint's footer ends at byte {footers[0]:,}" in notes[0]
    assert "intact pages" in notes[1]
    assert "have a correct checksum" in notes[1]
    assert notes[-1] == "numparq salvage can write the intact pages to a new file"


# --- ambiguous pages --------------------------------------------------------------------------------------------------


def two_equal_columns(groups, pages):
    """Return two equal columns without dictionaries, in pages of 3 rows."""
    columns = [
        FileColumn(
            name,
            h.INT64,
            [
                [data_page(3, encode_plain(h.INT64, [100 * g + 10 * p + i for i in range(3)])) for p in range(pages)]
                for g in range(groups)
            ],
        )
        for name in "ab"
    ]
    return h.build_file([3 * pages] * groups, columns)


def test_ambiguous_row_group_size_raises(tmp_path):
    data = two_equal_columns(2, 2).stored()
    values = numparq.read_parquet(data)
    with pytest.raises(
        InvalidFileError,
        match=r"form a row group of 3, 6, 9, 12 rows, or one that is cut off; use row_group_size=\.\.\. to choose",
    ):
        salvage_bytes(tmp_path, data[:-9], data)
    report, path = salvage_bytes(tmp_path, data[:-9], data, row_group_size=6)
    assert report.num_rows == 12
    pd.testing.assert_frame_equal(numparq.read_parquet(path), values)


def test_half_a_row_group_is_not_saved(tmp_path):
    """Two pages of the first column look like one page of each column."""
    file = two_equal_columns(1, 2)
    data = file.laid_out()[0]
    with pytest.raises(InvalidFileError, match="or one that is cut off"):
        salvage_bytes(tmp_path, data[: 4 + (len(data) - 4) // 2], file.stored())


def test_ambiguous_codec_raises(tmp_path):
    """24 bytes that are also Snappy data for 24 other bytes."""
    body = bytes([24, 19 << 2]) + bytes(range(1, 21)) + bytes([0b00000001, 4])
    page = data_page(3, body)
    page.header.uncompressed_page_size = page.header.compressed_page_size = 24
    data = h.build_file([3], [FileColumn("a", h.INT64, [[page]])]).stored()
    schema = h.build_file([], [FileColumn("a", h.INT64, [])])
    with pytest.raises(InvalidFileError, match=r"several codecs can decompress column 'a'; use codec=\.\.\. to"):
        salvage_bytes(tmp_path, data[:-9], schema.stored())
    _, path = salvage_bytes(tmp_path, data[:-9], schema.stored(), codec="none")
    assert numparq.read_parquet(path)["a"].tolist() == np.frombuffer(body, "i8").tolist()
    _, path = salvage_bytes(tmp_path, data[:-9], schema.stored(), codec="snappy")
    assert numparq.read_parquet(path)["a"].tolist()[0] == int.from_bytes(range(1, 9), "little")


def test_wrong_schema_raises(tmp_path):
    data = numparq.to_parquet(frame(50)[["i", "s"]], use_dictionary=False)
    for columns in (["s", "i"], ["i", "s", "f"], ["i", "l"]):
        other = numparq.to_parquet(frame(9)[columns], use_dictionary=False)
        with pytest.raises(InvalidFileError, match="no complete row group begins there"):
            salvage_bytes(tmp_path, data[:-9], other)


def test_unknown_logical_types_are_copied(tmp_path, parquet_testing):
    """Found by fuzzing: an unknown logical type is copied unchanged."""
    data = (parquet_testing / "data" / "unknown-logical-type.parquet").read_bytes()
    _, path = salvage_bytes(tmp_path, data[:-9], data)
    pd.testing.assert_frame_equal(numparq.read_parquet(path), numparq.read_parquet(data))
    assert str(numparq.ParquetFile(path).schema) == str(numparq.ParquetFile(data).schema)


# --- damaged files ----------------------------------------------------------------------------------------------------


def one_damaged_page(name):
    """Damage the last page of the second of three row groups."""
    data = bytearray(write_file(3 * ROWS, name))
    data[row_group_ends(data)[1] - 1] ^= 1
    return bytes(data)


def test_rows_outside_damaged_pages_are_saved(tmp_path):
    pytest.importorskip("pyarrow")
    report, path = salvage_bytes(tmp_path, one_damaged_page("version 2"))
    rows = expected_rows(3 * ROWS)
    assert numparq.verify(path) == []
    assert report.kept == ["the rows that are intact in all columns, rewritten"]
    saved_rows = numparq.read_parquet(path)
    assert report.num_rows == len(saved_rows) > 2 * ROWS
    assert saved_rows["i"].tolist() == [
        i for i in rows["i"] if i < 2 * ROWS - (3 * ROWS - len(saved_rows)) or i >= 2 * ROWS
    ]
    assert [line for line in report.lost if "'st.y.list.element'" in line or "'st'" in line]


def test_stored_types_change_where_else_rows_were_lost(tmp_path):
    """Required columns of another writer become optional; the report names them."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    table = pa.table({"a": np.arange(5000), "b": [str(i) for i in range(5000)]}, schema)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, data_page_size=4000, write_batch_size=500, use_dictionary=False, compression="none")
    data = bytearray(buffer.getvalue())
    data[data.index(b"2500\x04") - 1] = 99  # the length of a string
    skipped = numparq.read_parquet(bytes(data), on_error="skip")
    report, path = salvage_bytes(tmp_path, bytes(data))
    pd.testing.assert_frame_equal(numparq.read_parquet(path), skipped.reset_index(drop=True))
    assert report.kept == ["the rows that are intact in all columns, rewritten, with other stored types of 'a'"]


def test_physical_types_are_not_changed(tmp_path):
    """INT96 is read as timestamps, which would be written as INT64."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = pa.table({"t": pa.array(np.arange(300).astype("M8[ns]"))})
    pq.write_table(
        table,
        buffer,
        use_deprecated_int96_timestamps=True,
        row_group_size=100,
        use_dictionary=False,
        write_page_checksum=True,
        compression="none",
    )
    data = bytearray(buffer.getvalue())
    data[row_group_ends(data)[1] - 1] ^= 1
    report, path = salvage_bytes(tmp_path, bytes(data))
    assert report.num_rows == 200
    assert pq.ParquetFile(path).schema.column(0).physical_type == "INT96"


def test_valid_file_is_copied(tmp_path):
    data = sound_file()
    report, path = salvage_bytes(tmp_path, data)
    assert path.read_bytes() == data
    assert report.lost == []


def test_missing_magic_number_is_restored(tmp_path):
    data = sound_file()
    report, path = salvage_bytes(tmp_path, b"\0\0\0\0" + data[4:])
    assert path.read_bytes() == data
    assert report.lost == []


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(3))
def test_flipped_bytes_never_change_rows(tmp_path, part):
    """With checksums, saved rows equal the written ones or are missing."""
    data, schema = write_file(2 * ROWS, "version 2")[:-9], write_file(9, "version 2")
    rows, num_salvaged = expected_rows(2 * ROWS), 0
    for what, damaged in flipped_bytes(data, 11, part * 25, 25):
        try:
            report, path = salvage_bytes(tmp_path, damaged, schema)
        except ParquetError:
            continue
        num_salvaged += 1
        got = numparq.read_parquet(path).reset_index(drop=True)
        assert len(got) == report.num_rows, what
        assert len(got) in (ROWS, 2 * ROWS), what
        first = int(got["i"][0])
        pd.testing.assert_frame_equal(got, rows[first : first + len(got)].reset_index(drop=True), obj=what)
    assert num_salvaged >= 10


# --- the output file --------------------------------------------------------------------------------------------------


def test_existing_output_is_not_overwritten(tmp_path):
    (tmp_path / "damaged").write_bytes(sound_file())
    (tmp_path / "out").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"the file exists; force=True \(--force\) replaces it"):
        salvage(tmp_path / "damaged", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"precious"
    with pytest.raises(ValueError, match="never changed"):
        salvage(tmp_path / "damaged", tmp_path / "damaged", force=True)
    salvage(tmp_path / "damaged", tmp_path / "out", force=True)
    assert (tmp_path / "out").read_bytes() == sound_file()


def test_failed_salvage_writes_no_file(tmp_path):
    (tmp_path / "damaged").write_bytes(sound_file()[:30])
    with pytest.raises(ParquetError):
        salvage(tmp_path / "damaged", tmp_path / "out", sound_file())
    assert [path.name for path in tmp_path.iterdir()] == ["damaged"]


def test_invalid_arguments_raise(tmp_path):
    (tmp_path / "damaged").write_bytes(sound_file())
    with pytest.raises(ValueError, match="codec must be one of UNCOMPRESSED, SNAPPY"):
        salvage(tmp_path / "damaged", tmp_path / "out", codec="zip")
    with pytest.raises(TypeError, match="salvage takes paths of local files, not bytes"):
        salvage(sound_file(), tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        salvage(tmp_path / "missing", tmp_path / "out")


def test_salvage_command(tmp_path, capsys):
    data, schema = write_file(2 * ROWS, "dictionaries"), write_file(9, "dictionaries")
    (tmp_path / "damaged").write_bytes(data[: row_group_ends(data)[1] - 1])
    (tmp_path / "schema").write_bytes(schema)
    words = ["salvage", str(tmp_path / "damaged"), str(tmp_path / "out")]
    assert main(words) == 2
    assert "pass a file with the same columns" in capsys.readouterr().err
    assert main([*words, "--schema", str(tmp_path / "schema")]) == 1
    assert capsys.readouterr().out.startswith(f"saved {ROWS} rows in 1 row group\nkept: ")
    assert main(words) == 2
    assert "out: the file exists; force=True (--force) replaces it" in capsys.readouterr().err
    assert main([*words, "--schema", str(tmp_path / "schema"), "--force"]) == 1
    assert main(["salvage", str(tmp_path / "schema"), str(tmp_path / "other")]) == 0


def test_single_column_needs_no_row_group_size(tmp_path):
    pages = [data_page(3, encode_plain(h.INT64, [10 * p, 10 * p + 1, 10 * p + 2])) for p in range(4)]
    data = handmade_file(FileColumn("a", h.INT64, [pages]), rows=12)
    report, path = salvage_bytes(tmp_path, data[:-9], data)
    assert report.num_rows == 12
    assert numparq.read_parquet(path)["a"].tolist() == numparq.read_parquet(data)["a"].tolist()


def test_nulls_of_lists_that_a_page_header_does_not_count(tmp_path):
    """Arrow before 26.0 counts too few nulls of lists: the page belongs to the column all the same."""
    sound = list_nulls("parquet-cpp-arrow version 25.0.1", said=0)
    (tmp_path / "sound").write_bytes(sound)
    (tmp_path / "damaged").write_bytes(sound[: footer_start(sound)])
    assert salvage(tmp_path / "damaged", tmp_path / "saved", tmp_path / "sound").num_rows == 3
    for way in (sound, tmp_path / "saved"):
        assert [list(value) for value in numparq.read_parquet(way)["a"]] == [[7], [], []]


@pytest.mark.parametrize("kind", FOREIGN)
def test_other_tables_are_not_written(kind, tmp_path):
    table, lost = forge_table(tmp_path / "table", kind), add_rows(tmp_path / "lost.parquet", 4)
    for out in (table / "new.parquet", next(table.rglob("one.parquet"))):
        before = out.read_bytes() if out.exists() else None
        with pytest.raises(UnsupportedError, match=kind):
            salvage(lost, out, force=True)
        assert (out.read_bytes() if out.exists() else None) == before
        assert main(["salvage", str(lost), str(out), "--force"]) == 2
        assert main(["salvage", str(lost), str(out), "--force", "--table-format", "parquet"]) == 0
