"""``df.write.format("numparq")``: modes, options, partitions, failing tasks and jobs."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def numparq_spark(spark: Any) -> Any:
    from numparq.spark.data_source.source import NumparqDataSource

    spark.dataSource.register(NumparqDataSource)
    return spark


def numbers(spark: Any, start: int, stop: int, partitions: int = 2) -> Any:
    return spark.range(start, stop, 1, partitions).selectExpr("id", "id % 3 as Key", "concat('s', id) as s")


def save(df: Any, folder: Path, mode: str = "append", **options: Any) -> None:
    df.write.format("numparq").mode(mode).options(**options).save(str(folder))


def ids(spark: Any, folder: Path) -> list[int]:
    """Return the ids that Spark's reader finds, after checking that numparq finds the same."""
    import numparq

    found = sorted(row.id for row in spark.read.parquet(str(folder)).select("id").collect())
    assert sorted(numparq.read_parquet(folder, columns=["id"])["id"].tolist()) == found
    return found


def files(folder: Path) -> list[str]:
    """Return the relative paths of files, without ``_SUCCESS``."""
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if path != "_SUCCESS"]


def is_clean(folder: Path) -> bool:
    return not any(part[0] in "._" for path in files(folder) for part in path.split("/"))


def test_append_overwrite_and_empty_frames(numparq_spark, tmp_path):
    folder = tmp_path / "data"
    save(numbers(numparq_spark, 0, 10), folder)
    save(numbers(numparq_spark, 10, 12), folder)
    assert ids(numparq_spark, folder) == list(range(12))
    assert is_clean(folder)
    numparq_spark.catalog.clearCache()
    save(numbers(numparq_spark, 100, 105), folder, "overwrite")
    assert ids(numparq_spark, folder) == list(range(100, 105))
    assert is_clean(folder)
    schema = numparq_spark.read.parquet(str(folder)).schema
    save(numbers(numparq_spark, 0, 10).where("id < 0"), folder, "overwrite")
    assert ids(numparq_spark, folder) == []
    assert numparq_spark.read.parquet(str(folder)).schema == schema
    with pytest.raises(Exception, match="the dataset has files already"):
        save(numbers(numparq_spark, 0, 1), folder, ifExists="error")
    assert is_clean(folder)


def test_partition_columns_and_dynamic_overwrite(numparq_spark, tmp_path):
    folder = tmp_path / "data"
    save(numbers(numparq_spark, 0, 9), folder, partitionColumns="key")
    assert {name.split("/")[0] for name in files(folder)} == {"Key=0", "Key=1", "Key=2"}
    assert numparq_spark.read.parquet(str(folder)).where("Key = 1").count() == 3
    only = numbers(numparq_spark, 100, 104).where("Key = 1")
    save(only, folder, "overwrite", partitionColumns="Key", partitionOverwriteMode="dynamic")
    assert ids(numparq_spark, folder) == [0, 2, 3, 5, 6, 8, 100, 103]
    save(only, folder, "overwrite", partitionColumns="Key")
    assert ids(numparq_spark, folder) == [100, 103]
    assert is_clean(folder)


def test_setting_of_the_session_decides_what_overwrite_replaces(numparq_spark, tmp_path):
    setting = "spark.sql.sources.partitionOverwriteMode"
    folders = tmp_path / "ours", tmp_path / "native"
    only = numbers(numparq_spark, 100, 104).where("Key = 1")

    def overwrite(df: Any, **options: str) -> list[int]:
        save(df, folders[0], "overwrite", partitionColumns="Key", **options)
        df.write.mode("overwrite").options(**options).partitionBy("Key").parquet(str(folders[1]))
        found = ids(numparq_spark, folders[0])
        assert found == ids(numparq_spark, folders[1])
        return found

    overwrite(numbers(numparq_spark, 0, 9))
    numparq_spark.conf.set(setting, "Dynamic")
    try:
        assert overwrite(only) == [0, 2, 3, 5, 6, 8, 100, 103]
        assert overwrite(only.where("false")) == [0, 2, 3, 5, 6, 8, 100, 103]
        assert overwrite(only, partitionOverwriteMode="static") == [100, 103]
    finally:
        numparq_spark.conf.unset(setting)
    assert overwrite(numbers(numparq_spark, 0, 3)) == [0, 1, 2]


def test_dataframes_outlive_overwrites_that_keep_replaced_files(numparq_spark, tmp_path):
    folder = tmp_path / "data"
    save(numbers(numparq_spark, 0, 9), folder)
    before = numparq_spark.read.format("numparq").load(str(folder))
    for start in (100, 200):
        save(numbers(numparq_spark, start, start + 5), folder, "overwrite", keepReplaced="600")
    assert sorted(row.id for row in before.collect()) == list(range(9))
    assert ids(numparq_spark, folder) == list(range(200, 205))


def test_success_file_is_written_as_by_spark(numparq_spark, tmp_path):
    name = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    ours, native, without = (tmp_path / each for each in ("ours", "native", "without"))
    df = numbers(numparq_spark, 0, 9)
    save(df, ours, partitionColumns="Key", maxRecordsPerFile=0, **{"parquet.compression": "gzip"})
    df.write.partitionBy("Key").option("parquet.compression", "gzip").parquet(str(native))
    assert {path.name for path in ours.iterdir()} == {
        path.name for path in native.iterdir() if not path.name.endswith(".crc")
    }
    assert (ours / "_SUCCESS").read_bytes() == b""
    save(df, without, **{name: "false"})
    assert not (without / "_SUCCESS").exists()
    (ours / "_SUCCESS").unlink()
    with pytest.raises(Exception, match="raised on purpose"):
        save(df.selectExpr("assert_true(id < 3, 'raised on purpose')", "id"), ours)
    assert not (ours / "_SUCCESS").exists()


def test_codec_of_the_session(numparq_spark, tmp_path):
    """The session's setting counts where no option names a codec."""
    name = "spark.sql.parquet.compression.codec"
    before = numparq_spark.conf.get(name)
    expected = {("zstd", None): "ZSTD", ("zstd", "gzip"): "GZIP", ("uncompressed", None): "UNCOMPRESSED"}
    try:
        for number, ((setting, option), codec) in enumerate(expected.items()):
            numparq_spark.conf.set(name, setting)
            writer = numparq_spark.range(10).coalesce(1).write.format("numparq").mode("append")
            (writer if option is None else writer.option("compression", option)).save(str(tmp_path / str(number)))
            (file,) = (tmp_path / str(number)).glob("*.parquet")
            assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == codec
    finally:
        numparq_spark.conf.set(name, before)


def test_rows_per_file_of_the_session(numparq_spark, tmp_path):
    """The session's setting counts where no option limits the rows of a file, as for Spark's own writer."""
    name = "spark.sql.files.maxRecordsPerFile"
    rows = numparq_spark.range(10).coalesce(1)
    cases = [("4", None, 3), ("4", "0", 1), ("0", None, 1), ("0", "6", 2)]
    for number, (setting, option, expected) in enumerate(cases):
        numparq_spark.conf.set(name, setting)
        try:
            for kind in ("numparq", "parquet"):
                writer = rows.write.format(kind).mode("append")
                folder = tmp_path / f"{kind}{number}"
                (writer if option is None else writer.option("maxRecordsPerFile", option)).save(str(folder))
                assert len(list(folder.glob("*.parquet"))) == expected
        finally:
            numparq_spark.conf.unset(name)


def test_options_reach_the_files(numparq_spark, tmp_path):
    import numparq

    folder = tmp_path / "data"
    df = numbers(numparq_spark, 0, 1000, 1).withColumnRenamed("Key", "k").selectExpr("-id as id", "k", "s")
    save(
        df,
        folder,
        compression='{"id": "zstd", "k": "gzip", "s": "none"}',
        rowGroupSize=100,
        maxRecordsPerFile=500,
        sortColumns="k desc, id",
        encodings='{"id": "DELTA_BINARY_PACKED"}',
        keyValueMetadata='{"a": "b"}',
        **{"parquet.bloom.filter.enabled#s": "true", "parquet.bloom.filter.fpp#s": "0.01"},
    )
    assert len(files(folder)) == 2
    rows = []
    for name in files(folder):
        frame = numparq.read_parquet(folder / name)
        rows += list(zip(-frame["k"], frame["id"], strict=True))
        metadata = numparq.ParquetFile(folder / name).metadata
        keys = {pair.key: pair.value for pair in metadata.key_value_metadata}
        assert keys["a"] == "b"
        assert "org.apache.spark.sql.parquet.row.metadata" in keys
        assert "pandas" not in keys
        assert [group.num_rows for group in metadata.row_groups] == [100] * 5
        chunks = [chunk.meta_data for chunk in metadata.row_groups[0].columns]
        assert [chunk.codec for chunk in chunks] == [6, 2, 0]
        assert [chunk.bloom_filter_offset is not None for chunk in chunks] == [False, False, True]
        assert [(key.column_idx, key.descending) for key in metadata.row_groups[0].sorting_columns] == [
            (1, True),
            (0, False),
        ]
    assert len(rows) == 1000
    assert rows == sorted(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nonsense": "1"}, "no option 'nonsense' for writing; the options are:(.|\n)*maxRecordsPerFile"),
        ({"rowGroupSize": "many"}, "'rowgroupsize' must be a whole number of at least 1, not 'many'"),
        ({"codec": "snappy", "compression": "zstd"}, "are synonyms"),
        ({"partitionColumns": "nowhere"}, "the partition column does not exist"),
        ({"compression": "zip"}, "compression 'zip' is not one of"),
        ({"bloomFilters": "nowhere"}, "names the column 'nowhere'"),
    ],
)
def test_invalid_options_are_refused(numparq_spark, tmp_path, options, message):
    with pytest.raises(Exception, match=message):
        save(numbers(numparq_spark, 0, 3), tmp_path / "data", **options)
    assert not (tmp_path / "data").exists()


def test_concurrent_appends_from_threads(numparq_spark, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    import numparq.spark

    def append(number: int) -> None:
        numparq.spark.register(numparq_spark)  # makes the session active in this thread
        save(numbers(numparq_spark, 10 * number, 10 * number + 10), tmp_path / "data")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(append, range(3)))
    assert ids(numparq_spark, tmp_path / "data") == list(range(30))
    assert is_clean(tmp_path / "data")


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_unsupported_by_python_data_sources(numparq_spark, tmp_path, mode):
    with pytest.raises(Exception, match='use either the "Append" or "Overwrite" mode'):
        save(numbers(numparq_spark, 0, 3), tmp_path / "data", mode)


def ending_source(kill: bool, partition: int, attempts: int) -> Any:
    """Return a data source whose tasks fail halfway in their first attempts."""
    from pyspark.sql.datasource import DataSource

    from numparq.spark.data_source.writer import NumparqWriter, make_writer

    class Ending(NumparqWriter):
        def write(self, iterator: Iterator[Any]) -> Any:
            from pyspark import TaskContext

            context = TaskContext.get()
            ends = context.partitionId() == partition and context.attemptNumber() < attempts

            def batches() -> Iterator[Any]:
                for number, batch in enumerate(iterator):
                    if number and ends and kill:
                        os.kill(os.getpid(), signal.SIGKILL)
                    if number and ends:
                        raise RuntimeError("a task that ends")
                    yield batch

            return super().write(batches())

    class EndingSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ending"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            writer = make_writer(dict(self.options), schema, overwrite)
            return Ending(writer._job, writer._schema)

    return EndingSource


@pytest.fixture
def small_batches(numparq_spark: Any) -> Iterator[Any]:
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = numparq_spark.conf.get(key)
    numparq_spark.conf.set(key, "100")
    yield numparq_spark
    numparq_spark.conf.set(key, before)


@pytest.mark.parametrize("kill", [False, True], ids=["fails", "is killed"])
def test_failed_task_is_retried(small_batches, tmp_path, kill):
    spark, folder = small_batches, tmp_path / "data"
    save(numbers(spark, 5000, 5010), folder)
    spark.dataSource.register(ending_source(kill, 1, 2))
    writer = numbers(spark, 0, 2000).write.format("ending").mode("append")
    writer.options(maxRecordsPerFile=150, rowGroupSize=100).save(str(folder))
    assert ids(spark, folder) == [*range(2000), *range(5000, 5010)]
    assert is_clean(folder)


@pytest.mark.parametrize(("mode", "kill"), [("append", True), ("overwrite", False)], ids=["is killed", "fails"])
def test_failed_job_leaves_nothing(small_batches, tmp_path, mode, kill):
    spark, folder = small_batches, tmp_path / "data"
    save(numbers(spark, 5000, 5010), folder)
    before = files(folder)
    spark.dataSource.register(ending_source(kill, 1, 9))
    for place in (folder, tmp_path / "new"):
        writer = numbers(spark, 0, 2000).write.format("ending").mode(mode)
        with pytest.raises(Exception, match=r"a task that ends|Python worker"):
            writer.options(maxRecordsPerFile=150, rowGroupSize=100).save(str(place))
    assert files(folder) == before
    assert is_clean(folder)
    assert not (tmp_path / "new").exists()


def test_errors_in_tasks_name_the_column(numparq_spark, tmp_path):
    df = numparq_spark.range(0, 10, 1, 2).selectExpr("id", "if(id = 7, '', 'x') as k")
    with pytest.raises(Exception, match=r"an empty string cannot be a partition value.*column 'k'"):
        save(df, tmp_path / "data", partitionColumns="k")
    assert not (tmp_path / "data").exists()


def test_pickled_writer_is_small(tmp_path):
    from pyspark.sql.types import LongType, StructField, StructType

    from numparq.spark.data_source.writer import make_writer

    writer = make_writer({"path": f"file:{tmp_path}/data"}, StructType([StructField("id", LongType())]), False)
    assert len(pickle.dumps(writer)) < 4000
    pickle.loads(pickle.dumps(writer)).abort([None])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("", {}, "a DataFrame without columns cannot be written"),
        ("a int, A string", {}, "two columns have this name.*column 'A'"),
        ("a array<struct>", {}, "two columns have this name.*column 'X'"),
        ("id string", {}, r"do not form one table with the existing ones.*column is string here.*data', column 'id'\)"),
        ("ID int", {}, "the existing column 'id' has a name that readers treat as equal"),
        ("id int, k int", {"partitionColumns": "k"}, "the dataset is partitioned by nothing, but the frame by 'k'"),
        ("id int, k array<int>", {"partitionColumns": "k"}, "values of type list cannot be partition values"),
        ("id int", {"partitionColumns": "id"}, "all columns are partition columns"),
    ],
)
def test_invalid_columns_are_refused_before_tasks_run(tmp_path, columns, options, message):
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

    import numparq
    from numparq.spark.data_source.writer import make_writer

    kinds = {"int": IntegerType(), "string": StringType(), "array<int>": ArrayType(IntegerType())}
    fields = [StructField("x", IntegerType()), StructField("X", IntegerType())]
    kinds["array<struct>"] = ArrayType(StructType(fields))
    pairs = [column.split() for column in columns.split(", ") if column]
    schema = StructType([StructField(name, kinds[kind]) for name, kind in pairs])
    (tmp_path / "data").mkdir()
    numparq.to_parquet(pandas.DataFrame({"id": [1]}), tmp_path / "data" / "0.parquet")
    with pytest.raises(numparq.SchemaError, match=message):
        make_writer({"path": str(tmp_path / "data"), **options}, schema, False)
    assert files(tmp_path / "data") == ["0.parquet"]
    assert is_clean(tmp_path / "data")


def test_write_of_rows_if_spark_passes_no_batches(tmp_path, monkeypatch):
    from pyspark.sql import Row
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

    import numparq
    from numparq.spark.data_source import writer as module

    monkeypatch.setattr(module, "_TAKES_BATCHES", False)
    schema = StructType([StructField("id", LongType()), StructField("l", ArrayType(StringType()))])
    writer = module.make_writer({"path": str(tmp_path / "data")}, schema, True)
    writer.commit([writer.write(iter([Row(id=1, l=["a", None]), Row(id=None, l=None)]))])
    found = numparq.read_parquet(tmp_path / "data")
    assert found["l"][0].tolist() == ["a", None]
    assert found["id"].isna().tolist() == [False, True]
