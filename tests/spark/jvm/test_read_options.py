"""Options and errors of the data source, tables without rows, and the size of pickled readers."""

from __future__ import annotations

import json
import os
import pickle
import re
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
        (
            {"collumns": "a"},
            r"no option 'collumns' for reading; did you mean 'columns'\? the options are:(?s:.*)storage\.<name>",
        ),
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


OPTIONS = {
    "basePath": lambda folder: (f"{folder}/year=2023", {"basePath": folder}),
    "braces": lambda folder: (f"{folder}/year={{2023,2024}}", {"basePath": folder}),
    "braces of files": lambda folder: (f"{folder}/year=2023/{{a,b}}.parquet", {"basePath": folder}),
    "pathGlobFilter": lambda folder: (folder, {"pathGlobFilter": "{a,c}.parq*"}),
    "recursiveFileLookup": lambda folder: (folder, {"recursiveFileLookup": "true"}),
    "modifiedBefore": lambda folder: (folder, {"modifiedBefore": "2020-09-13T14:00:00", "timeZone": "Europe/Paris"}),
    "modifiedAfter": lambda folder: (folder, {"modifiedAfter": "2020-09-13T14:00:00", "timeZone": "Europe/Paris"}),
    "files of zero bytes": lambda folder: (folder, {"mergeSchema": "true", "ignoreMissingFiles": "false"}),
}


@pytest.fixture(scope="module")
def years(frame, tmp_path_factory):
    """Write partitions, files of two times, and files of zero bytes."""
    folder = tmp_path_factory.mktemp("years")
    for number, place in enumerate(("year=2023/a", "year=2023/b", "year=2024/a", "year=2025/c")):
        path = folder / f"{place}.parquet"
        path.parent.mkdir(exist_ok=True)
        numparq.to_parquet(frame[number * 100 : (number + 1) * 100][["row", "s"]], path, index=False)
        os.utime(path, (1_600_000_000 - 10_000 * (number % 2),) * 2)
        (path.parent / "0.parquet").touch()
    return str(folder)


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_sparks_own_source(spark, years, name):
    path, options = OPTIONS[name](years)
    expected = spark.read.options(**options).parquet(path)
    found = load_numparq(spark, path, **options)
    assert found.schema == expected.schema
    rows = sorted(expected.collect())
    assert rows
    assert sorted(found.collect()) == rows
    given = {re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), each): text for each, text in options.items()}
    arguments = {each: text for each, text in given.items() if each in ("base_path", "path_glob_filter")}
    if name in ("basePath", "braces", "braces of files", "pathGlobFilter", "files of zero bytes"):
        assert sorted(numparq.spark.read(spark, path, **arguments).collect()) == rows


def test_modification_times_are_in_the_sessions_zone(spark, years):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    try:
        for bound in ("modifiedBefore", "modifiedAfter"):
            expected = spark.read.option(bound, "2020-09-13T14:00:00").parquet(years).count()
            argument = {bound.replace("B", "_b").replace("A", "_a"): "2020-09-13T14:00:00"}
            assert numparq.spark.read(spark, years, **argument).count() == expected == 200
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_empty_folder_with_a_schema_is_an_empty_frame(spark, tmp_path):
    (tmp_path / "zero.parquet").touch()
    for folder in (tmp_path, tmp_path / "new"):
        folder.mkdir(exist_ok=True)
        expected = spark.read.schema("a int, b string").parquet(str(folder))
        for found in (
            spark.read.format("numparq").schema("a int, b string").load(str(folder)),
            numparq.spark.read(spark, str(folder), schema="a int, b string", filters="a > 3"),
        ):
            assert found.schema == expected.schema
            assert found.collect() == []
        with pytest.raises(Exception, match=r"the directory has no Parquet files|zero bytes|0 bytes"):
            load_numparq(spark, str(folder))


def test_names_of_files_come_from_the_option_include(spark, years):
    """Spark fills `input_file_name` and `_metadata` for its own sources only."""
    found = load_numparq(spark, years, include="file")
    assert {Path(row["file"]).name for row in found.select("file").distinct().collect()} == {
        "a.parquet",
        "b.parquet",
        "c.parquet",
    }
    assert found.selectExpr("input_file_name() as name").distinct().collect()[0]["name"] == ""
    with pytest.raises(Exception, match="_metadata"):
        found.select("_metadata.file_path").collect()


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
    assert len({option.name for option in READ_OPTIONS}) == len(READ_OPTIONS)


def test_errors_begin_with_their_sentence(spark, registered, stored_folder, tmp_path):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as raised:
        load_numparq(spark, stored_folder, columns="row, none")
    sentence = (
        r"\[PYTHON_DATA_SOURCE_ERROR\] Failed to create Python data source instance: numparq\.errors\.SchemaError: "
    )
    assert re.match(rf"{sentence}the option 'columns': .*no column 'none'", str(raised.value))
    assert "\nTraceback (most recent call last):\n" in str(raised.value)
    with pytest.raises(AnalysisException, match=r"data source writer: ValueError: numparq has no option 'compresion'"):
        spark.range(1).write.format("numparq").mode("append").option("compresion", "a").save(str(tmp_path / "new"))
