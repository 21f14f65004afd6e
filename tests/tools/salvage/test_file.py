"""`numparq salvage`: what is left of files that were cut off or damaged is saved, and no row is ever another."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.cli import main
from numparq.errors import InvalidFileError, ParquetError, SchemaError
from numparq.tools.salvage.file import salvage
from numparq.tools.verify.file import check_file
from support.files import builder as h
from support.files.builder import FileColumn, data_page, encode_plain
from support.files.spec_violations import handmade_file, sound_file
from support.hostile.byte_damage import flipped_bytes

ROWS = 40  # of a row group


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


def rows_of(count):
    """Give a frame as it is read back."""
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


def written(count, name, **more):
    return numparq.to_parquet(frame(count), row_group_size=ROWS, **OPTIONS[name], **more)


def ends_of(data):
    """Give where the pages of each row group end."""
    found = []
    for group in numparq.ParquetFile(data).metadata.row_groups:
        chunks = [chunk.meta_data for chunk in group.columns]
        starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        sizes = [chunk.total_compressed_size for chunk in chunks]
        found.append(max(start + size for start, size in zip(starts, sizes, strict=True)))
    return found


def saved(tmp_path, data, schema=None, **options):
    """Salvage bytes; give what is said of it, and the new file."""
    (tmp_path / "damaged").write_bytes(data)
    report = salvage(tmp_path / "damaged", tmp_path / "saved", schema, force=True, **options)
    assert (tmp_path / "damaged").read_bytes() == data
    return report, tmp_path / "saved"


def check(path, report, expected):
    assert [str(deviation) for deviation in numparq.verify(path)] == []
    assert report.num_rows == len(expected)
    pd.testing.assert_frame_equal(numparq.read_parquet(path).reset_index(drop=True), expected)


# --- cut off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIONS)
def test_cut_off_around_each_row_group(tmp_path, name):
    data, schema = written(3 * ROWS, name), written(20, name)
    ends = ends_of(data)
    for cut in sorted({end + by for end in ends for by in (-1, 0, 1, 70)} | {len(data) - 1, len(data) - 8}):
        whole = sum(end <= cut for end in ends)
        if not whole:
            with pytest.raises(InvalidFileError, match="is cut off"):
                saved(tmp_path, data[:cut], schema)
            continue
        report, path = saved(tmp_path, data[:cut], schema)
        check(path, report, rows_of(3 * ROWS)[: whole * ROWS])
        assert report.num_row_groups == whole
        assert cut not in ends or not report.lost


def test_cut_off_at_every_byte(tmp_path):
    rows = pd.DataFrame({"a": np.arange(6), "b": [f"value {i}" for i in range(6)], "c": [[i] * 2 for i in range(6)]})
    data = numparq.to_parquet(rows, row_group_size=3, use_dictionary=False)
    schema, ends = numparq.to_parquet(rows[:1], use_dictionary=False), ends_of(data)
    for cut in [*range(4, ends[-1] + 30), *range(ends[-1] + 30, len(data), 97)]:
        whole = sum(end <= cut for end in ends)
        try:
            report, path = saved(tmp_path, data[:cut], schema)
        except InvalidFileError:
            assert not whole
        else:
            assert report.num_rows == 3 * whole
            assert whole
            pd.testing.assert_frame_equal(numparq.read_parquet(path).reset_index(drop=True), rows[: 3 * whole])


WRITERS = ("pyarrow", "pyarrow v2", "polars", "duckdb")


def by_writer(writer, count, tmp_path):
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
def test_files_of_others(tmp_path, writer):
    pytest.importorskip("pyarrow")
    data, schema = by_writer(writer, 6000, tmp_path), by_writer(writer, 50, tmp_path)
    ends, expected = ends_of(data), numparq.read_parquet(data)
    for cut in (ends[0], ends[1] - 1, ends[1], ends[-1], len(data) - 9):
        rows = min(2048 * sum(end <= cut for end in ends), 6000)
        report, path = saved(tmp_path, data[:cut], schema)
        assert report.num_rows == rows
        pd.testing.assert_frame_equal(numparq.read_parquet(path), expected[:rows])


def test_a_schema_of_pyarrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    data = by_writer("pyarrow", 3000, tmp_path)
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("x", pa.float64()), ("l", pa.list_(pa.int64()))])
    _, path = saved(tmp_path, data[:-20], schema)
    pd.testing.assert_frame_equal(numparq.read_parquet(path), numparq.read_parquet(data))


def test_metadata_behind_chunks_as_old_writers_put_it(tmp_path):
    data, schema = written(2 * ROWS, "plain"), written(9, "plain")
    footer = h.from_bytes("FileMetaData", data[-8 - int.from_bytes(data[-8:-4], "little") : -8])[0]
    out = data[:4]
    for group in footer.row_groups:
        for chunk in group.columns:
            meta = chunk.meta_data
            out += data[meta.data_page_offset : meta.data_page_offset + meta.total_compressed_size] + h.to_bytes(chunk)
    report, path = saved(tmp_path, out, schema)
    assert report.num_rows == 2 * ROWS
    assert report.lost == []
    pd.testing.assert_frame_equal(numparq.read_parquet(path).reset_index(drop=True), rows_of(2 * ROWS))


# --- checkpoints ------------------------------------------------------------------------------------------------------


def with_checkpoints(groups, every):
    """Give a file with footers on the way, and where each of them ends."""
    with numparq.ParquetWriter(None, checkpoint_row_groups=every, row_group_size=ROWS) as writer:
        writer.write(frame(groups * ROWS))
    data = writer.getvalue()
    places = [place + 4 for place in range(4, len(data)) if data[place : place + 4] == b"PAR1"]
    return data, places


@pytest.mark.parametrize("every", [1, 2])
def test_checkpoints(tmp_path, every):
    """Row groups behind the last checkpoint are found by their pages: the footer in front of them has the columns."""
    data, footers = with_checkpoints(5, every)
    ends = ends_of(data)
    for cut in sorted({place + by for place in [*ends, *footers[:-1]] for by in (-1, 0, 1)}):
        whole = sum(end <= cut for end in ends)
        if cut < footers[0]:
            with pytest.raises(SchemaError, match="name a file that has the same ones as `schema`"):
                saved(tmp_path, data[:cut])
            continue
        report, path = saved(tmp_path, data[:cut])
        check(path, report, rows_of(5 * ROWS)[: whole * ROWS])


def test_what_is_said_of_it(tmp_path):
    data, footers = with_checkpoints(3, 1)
    ends = ends_of(data)
    report, _ = saved(tmp_path, data[: ends[1] + 5])
    assert str(report).splitlines() == [
        f"{2 * ROWS} rows in 2 row groups are saved",
        f"kept: {ROWS} rows in 1 row groups, by the footer that its writer left at byte {footers[0]:,}",
        f"kept: {ROWS} rows in 1 row groups, by their pages up to byte {ends[1]:,}",
        f"lost: 5 bytes from byte {ends[1]:,} on: at byte {ends[1]:,} there is none, or its header is damaged",
    ]


def test_a_file_that_is_cut_off_is_described():
    data, footers = with_checkpoints(3, 1)
    cut = data[: ends_of(data)[1] + 5]
    notes = check_file(cut).notes
    assert f"a footer that was left on the way ends at byte {footers[0]:,}" in notes[0]
    assert "pages that look whole" in notes[1]
    assert "with a checksum that is right" in notes[1]
    assert notes[-1] == "numparq salvage can make a good file of what is whole"


# --- what cannot be known ---------------------------------------------------------------------------------------------


def two_of_a_kind(groups, pages):
    """Two columns without dictionaries that look the same, in pages of 3 rows."""
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


def test_what_the_pages_do_not_tell_is_asked(tmp_path):
    data = two_of_a_kind(2, 2).stored()
    values = numparq.read_parquet(data)
    with pytest.raises(
        InvalidFileError,
        match=r"of a row group of 3, 6, 9, 12 rows, or of one that is cut off; row_group_size=\.\.\. would settle it",
    ):
        saved(tmp_path, data[:-9], data)
    report, path = saved(tmp_path, data[:-9], data, row_group_size=6)
    assert report.num_rows == 12
    pd.testing.assert_frame_equal(numparq.read_parquet(path), values)


def test_half_a_row_group_is_no_small_one(tmp_path):
    """Two pages of the first column look like one of each."""
    file = two_of_a_kind(1, 2)
    data = file.laid_out()[0]
    with pytest.raises(InvalidFileError, match="or of one that is cut off"):
        saved(tmp_path, data[: 4 + (len(data) - 4) // 2], file.stored())


def test_codecs_that_give_different_values_are_asked(tmp_path):
    """24 bytes of Snappy that stand for 24 others."""
    body = bytes([24, 19 << 2]) + bytes(range(1, 21)) + bytes([0b00000001, 4])
    page = data_page(3, body)
    page.header.uncompressed_page_size = page.header.compressed_page_size = 24
    data = h.build_file([3], [FileColumn("a", h.INT64, [[page]])]).stored()
    schema = h.build_file([], [FileColumn("a", h.INT64, [])])
    with pytest.raises(InvalidFileError, match=r"column 'a' can be read with several codecs; codec=\.\.\. would"):
        saved(tmp_path, data[:-9], schema.stored())
    _, path = saved(tmp_path, data[:-9], schema.stored(), codec="none")
    assert numparq.read_parquet(path)["a"].tolist() == np.frombuffer(body, "i8").tolist()
    _, path = saved(tmp_path, data[:-9], schema.stored(), codec="snappy")
    assert numparq.read_parquet(path)["a"].tolist()[0] == int.from_bytes(range(1, 9), "little")


def test_another_schema_saves_nothing(tmp_path):
    data = numparq.to_parquet(frame(50)[["i", "s"]], use_dictionary=False)
    for columns in (["s", "i"], ["i", "s", "f"], ["i", "l"]):
        other = numparq.to_parquet(frame(9)[columns], use_dictionary=False)
        with pytest.raises(InvalidFileError, match="no whole row group of these columns begins there"):
            saved(tmp_path, data[:-9], other)


def test_types_of_the_future_stay_in_the_schema(tmp_path, parquet_testing):
    """Found by fuzzing: a logical type that this version does not know is copied as it is."""
    data = (parquet_testing / "data" / "unknown-logical-type.parquet").read_bytes()
    _, path = saved(tmp_path, data[:-9], data)
    pd.testing.assert_frame_equal(numparq.read_parquet(path), numparq.read_parquet(data))
    assert str(numparq.ParquetFile(path).schema) == str(numparq.ParquetFile(data).schema)


# --- damage -----------------------------------------------------------------------------------------------------------


def one_damaged_page(name):
    """Damage the last page of the second of three row groups."""
    data = bytearray(written(3 * ROWS, name))
    data[ends_of(data)[1] - 1] ^= 1
    return bytes(data)


def test_rows_beside_damaged_pages_are_kept(tmp_path):
    pytest.importorskip("pyarrow")
    report, path = saved(tmp_path, one_damaged_page("version 2"))
    rows = rows_of(3 * ROWS)
    assert numparq.verify(path) == []
    assert report.kept == ["the rows that are whole in all columns, written anew"]
    kept = numparq.read_parquet(path)
    assert report.num_rows == len(kept) > 2 * ROWS
    assert kept["i"].tolist() == [i for i in rows["i"] if i < 2 * ROWS - (3 * ROWS - len(kept)) or i >= 2 * ROWS]
    assert [line for line in report.lost if "'st.y.list.element'" in line or "'st'" in line]


def test_row_groups_with_damaged_pages_are_left_out(tmp_path, monkeypatch):
    """Where the rows beside the damaged page cannot be written as they were."""
    monkeypatch.setattr("numparq.tools.salvage.damaged_pages.rewrite_rows", lambda name, out: None)
    report, path = saved(tmp_path, one_damaged_page("version 2"))
    rows = rows_of(3 * ROWS)
    check(path, report, pd.concat([rows[:ROWS], rows[2 * ROWS :]], ignore_index=True))
    (lost,) = report.lost
    assert "row group 1 with 40 rows" in lost
    assert "the checksum in the header" in lost


def test_types_are_not_changed(tmp_path):
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
    data[ends_of(data)[1] - 1] ^= 1
    report, path = saved(tmp_path, bytes(data))
    assert report.num_rows == 200
    assert pq.ParquetFile(path).schema.column(0).physical_type == "INT96"


def test_a_sound_file_is_copied(tmp_path):
    data = sound_file()
    report, path = saved(tmp_path, data)
    assert path.read_bytes() == data
    assert report.lost == []


def test_a_file_that_does_not_begin_as_it_should_gets_its_magic_number_back(tmp_path):
    data = sound_file()
    report, path = saved(tmp_path, b"\0\0\0\0" + data[4:])
    assert path.read_bytes() == data
    assert report.lost == []


@pytest.mark.parametrize("part", range(3))
def test_flipped_bytes_make_no_row_another(tmp_path, part):
    """Of pages with checksums, what is saved is what was written, or nothing."""
    data, schema = written(2 * ROWS, "version 2")[:-9], written(9, "version 2")
    rows, num_salvaged = rows_of(2 * ROWS), 0
    for what, damaged in flipped_bytes(data, 11, part * 25, 25):
        try:
            report, path = saved(tmp_path, damaged, schema)
        except ParquetError:
            continue
        num_salvaged += 1
        got = numparq.read_parquet(path).reset_index(drop=True)
        assert len(got) == report.num_rows, what
        assert len(got) in (ROWS, 2 * ROWS), what
        pd.testing.assert_frame_equal(got, rows[: len(got)], obj=what)
    assert num_salvaged >= 10


# --- the file that is written -----------------------------------------------------------------------------------------


def test_what_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "damaged").write_bytes(sound_file())
    (tmp_path / "out").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="is there already"):
        salvage(tmp_path / "damaged", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"precious"
    with pytest.raises(ValueError, match="never changed"):
        salvage(tmp_path / "damaged", tmp_path / "damaged", force=True)
    salvage(tmp_path / "damaged", tmp_path / "out", force=True)
    assert (tmp_path / "out").read_bytes() == sound_file()


def test_where_nothing_is_saved_nothing_is_written(tmp_path):
    (tmp_path / "damaged").write_bytes(sound_file()[:30])
    with pytest.raises(ParquetError):
        salvage(tmp_path / "damaged", tmp_path / "out", sound_file())
    assert [path.name for path in tmp_path.iterdir()] == ["damaged"]


def test_arguments(tmp_path):
    (tmp_path / "damaged").write_bytes(sound_file())
    with pytest.raises(ValueError, match="the codec is one of UNCOMPRESSED, SNAPPY"):
        salvage(tmp_path / "damaged", tmp_path / "out", codec="zip")
    with pytest.raises(TypeError, match="salvage takes paths of local files, not bytes"):
        salvage(sound_file(), tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        salvage(tmp_path / "missing", tmp_path / "out")


def test_the_command(tmp_path, capsys):
    data, schema = written(2 * ROWS, "dictionaries"), written(9, "dictionaries")
    (tmp_path / "damaged").write_bytes(data[: ends_of(data)[1] - 1])
    (tmp_path / "schema").write_bytes(schema)
    words = ["salvage", str(tmp_path / "damaged"), str(tmp_path / "out")]
    assert main(words) == 2
    assert "name a file that has the same ones" in capsys.readouterr().err
    assert main([*words, "--schema", str(tmp_path / "schema")]) == 1
    assert capsys.readouterr().out.startswith(f"{ROWS} rows in 1 row groups are saved\nkept: ")
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err
    assert main([*words, "--schema", str(tmp_path / "schema"), "--force"]) == 1
    assert main(["salvage", str(tmp_path / "schema"), str(tmp_path / "other")]) == 0


def test_a_file_of_one_column_needs_no_help(tmp_path):
    pages = [data_page(3, encode_plain(h.INT64, [10 * p, 10 * p + 1, 10 * p + 2])) for p in range(4)]
    data = handmade_file(FileColumn("a", h.INT64, [pages]), rows=12)
    report, path = saved(tmp_path, data[:-9], data)
    assert report.num_rows == 12
    assert numparq.read_parquet(path)["a"].tolist() == numparq.read_parquet(data)["a"].tolist()
