"""Options and errors of the data source, tables without rows, and the size of pickled readers."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import numparq
from support.spark.source_table import ROWS, load_numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("registered")]


def test_files_are_listed_at_load(spark, frame, tmp_path):
    numparq.to_parquet(frame[:100], tmp_path / "a.parquet", index=False)
    found = load_numparq(spark, str(tmp_path)), numparq.spark.read(spark, str(tmp_path))
    numparq.to_parquet(frame[100:250], tmp_path / "b.parquet", index=False)
    assert [each.count() for each in found] == [100, 100]
    assert load_numparq(spark, str(tmp_path)).count() == 250
    numparq.to_parquet(frame[:30], tmp_path / "a.parquet", index=False)
    for each in found:
        with pytest.raises(Exception, match=r"a\.parquet.*|.*changed"):
            each.count()


# --- no rows, no files ------------------------------------------------------------------------------------------------


def test_reads_without_rows(spark, frame, tmp_path, stored_folder):
    numparq.to_parquet(frame[:0], tmp_path / "a.parquet", index=False)
    expected = spark.read.parquet(str(tmp_path))
    nothing = (
        load_numparq(spark, stored_folder, filter="row < 0"),
        numparq.spark.read(spark, stored_folder, filters="row < 0"),
    )
    for found in (load_numparq(spark, str(tmp_path)), numparq.spark.read(spark, str(tmp_path)), *nothing):
        assert found.schema == expected.schema
        assert (found.collect(), found.count(), found.agg({"n": "sum"}).first()[0]) == ([], 0, None)


def test_missing_path_is_refused(spark, tmp_path):
    with pytest.raises(FileNotFoundError):
        numparq.spark.read(spark, str(tmp_path / "none"))
    with pytest.raises(Exception, match="none"):
        load_numparq(spark, str(tmp_path / "none"))


# --- options and errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collumns": "a"}, r"no option 'collumns' for reading; the options are:\n  columns: (?s:.*)storage\.<name>"),
        ({"SPLITBYTES": "many"}, "the option 'splitBytes' must be a number of bytes, such as 67108864"),
        ({"rowsPerBatch": "0"}, "the option 'rowsPerBatch' must be a whole number of at least 1, not '0'"),
        ({"verifyCrc": "no"}, "the option 'verifyCrc' must be true or false, not 'no'"),
        ({"resolve": "luck"}, "name or position or field_id"),
        ({"filter": "row >"}, "the filter cannot be parsed"),
        ({"filter": "row > 'x'"}, "row"),
        ({"columns": "row, none"}, "no column 'none'"),
        ({"storageOptions": "[]"}, "a JSON object"),
        ({"pushdown": "true"}, "register"),
    ],
)
def test_invalid_options_are_refused(spark, stored_folder, options, message):
    with pytest.raises(Exception, match=message):
        load_numparq(spark, stored_folder, **options)


def test_batch_size_and_path_options(spark, stored_folder, frame):
    several = (
        spark.read.format("NUMPARQ")
        .option("ROWSPERBATCH", 7)
        .option("splitbytes", "1m")
        .load([f"file://{stored_folder}/0.parquet", f"{stored_folder}/2.parquet"])
    )
    assert several.count() == 2000
    assert several.agg({"row": "sum"}).first()[0] == int(frame.row[:1000].sum() + frame.row[2000:].sum())
    assert load_numparq(spark, f"{stored_folder}/*.parquet", minSplits="5").rdd.getNumPartitions() >= 5


def test_damage_names_file_row_group_and_page(spark, stored_folder, tmp_path):
    source = f"{stored_folder}/1.parquet"
    with numparq.ParquetFile(source) as file:
        chunk = file.metadata.row_groups[1].columns[2].meta_data
    spoilt = bytearray(Path(source).read_bytes())
    spoilt[chunk.data_page_offset + 100] ^= 255
    (tmp_path / "spoilt.parquet").write_bytes(spoilt)
    for found in (load_numparq(spark, str(tmp_path)), numparq.spark.read(spark, str(tmp_path))):
        place = r"CorruptPageError: .*file '[^']*spoilt\.parquet', row group 1, column 'x', page 0"
        with pytest.raises(Exception, match=place):
            found.agg({"x": "sum"}).collect()
        assert found.columns == ["row", "n", "x", "s", "key"]
    assert load_numparq(spark, str(tmp_path), columns="row, n").count() == 1000


def test_pickled_reader_and_splits_are_small(spark, stored_folder):
    """A task gets its own split and the reader, but no other splits."""
    from numparq.spark.data_source.source import NumparqReader
    from numparq.spark.scan.plan import SparkScan
    from numparq.spark.scan.request import ReadRequest

    table = SparkScan.plan(ReadRequest(stored_folder, split_bytes=1))
    reader = NumparqReader(table)
    sizes = [len(pickle.dumps(each)) for each in reader.partitions()]
    assert len(sizes) > 20
    assert max(sizes) < 1_500
    assert len(pickle.dumps(reader)) < 12_000
    again = pickle.loads(pickle.dumps(reader))
    found = [batch for part in reader.partitions() for batch in again.read(part)]
    assert sum(batch.num_rows for batch in found) == ROWS
    assert list(again.read(type(reader.partitions()[0])(None))) == []


def test_parsed_json_options():
    from numparq.spark.data_source.read_options import READ_OPTIONS, parse_read_options

    request = parse_read_options({"path": "a", "STORAGE.Anon": "true", "storageOptions": json.dumps({"Key": 1})})
    assert (request.path, request.storage_options) == ("a", {"Key": 1, "anon": True})
    assert parse_read_options({"paths": '["a", "b"]'}).path == ["a", "b"]
    with pytest.raises(ValueError, match="the path is missing"):
        parse_read_options({})
    assert (
        len({option.name for option in READ_OPTIONS})
        == len({option.field for option in READ_OPTIONS})
        == len(READ_OPTIONS)
    )
