"""Building blocks of jobs: tasks with ordered results, job descriptions, decoders inside user functions."""

from __future__ import annotations

import io
import sys
import time

import pandas as pd
import pytest

import numparq
from numparq import InvalidFileError
from numparq.spark.tasks import describe_jobs, run_each

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def by_value(spark):
    """Pickle functions of this module by value, because workers cannot import it."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_run_each_keeps_the_order(spark):
    things = [3, {"a": pd.Timestamp("2024-01-01")}, None, "text", lambda: 7]
    got = run_each(spark, things, lambda thing: thing() if callable(thing) else thing, "things")
    assert got == [3, {"a": pd.Timestamp("2024-01-01")}, None, "text", 7]
    assert run_each(spark, [], lambda thing: thing, "nothing") == []


def test_run_each_raises_worker_errors(spark):
    from pyspark.errors import PythonException

    def fail(thing):
        if thing == 2:
            raise InvalidFileError("broken", file="/a b.parquet", column="x")
        if thing == 3:
            raise KeyError("the user's")

    with pytest.raises(InvalidFileError) as caught:
        run_each(spark, [1, 2], fail, "failing")
    assert caught.value.where == {"file": "/a b.parquet", "column": "x"}
    assert caught.value.message == "broken"
    with pytest.raises(PythonException, match="the user's"):
        run_each(spark, [3], fail, "failing")


# --- descriptions -----------------------------------------------------------------------------------------------------


def description(spark):
    return spark.sparkContext.getLocalProperty("spark.job.description")


def test_job_descriptions_nest_and_are_restored(spark):
    with describe_jobs(spark, "numparq optimize"):
        assert description(spark) == "numparq optimize"
        with describe_jobs(spark, "sorting"):
            assert description(spark) == "numparq optimize: sorting"
        with pytest.raises(ZeroDivisionError), describe_jobs(spark, "dividing"):
            1 / 0  # noqa: B018
        assert description(spark) == "numparq optimize"
    assert description(spark) is None
    spark.sparkContext.setJobDescription("mine")
    try:
        with describe_jobs(spark, "ours"):
            assert description(spark) == "mine: ours"
        assert description(spark) == "mine"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)


def test_session_without_context_has_no_description():
    class Connected:
        @property
        def sparkContext(self):
            raise AttributeError("sparkContext")

    with describe_jobs(Connected(), "something"):
        pass


def test_keyboard_interrupt_cancels_the_job(spark):
    """Another thread runs the job here, so that this one can be interrupted."""
    from pyspark import InheritableThread

    def waits(batches):
        time.sleep(60)
        yield from batches

    failures = []

    def run():
        try:
            spark.range(1).mapInArrow(waits, "id bigint").count()
        except Exception as error:
            failures.append(str(error))

    with pytest.raises(KeyboardInterrupt), describe_jobs(spark, "waiting"):
        thread = InheritableThread(target=run)
        thread.start()
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.05)
        raise KeyboardInterrupt
    thread.join()
    (failure,) = failures
    assert "cancelled" in failure.lower()


# --- decoders ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Return a DataFrame of file paths and bytes; one row is null."""
    from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

    folder, rows = tmp_path_factory.mktemp("cells"), []
    for number in range(6):
        frame = pd.DataFrame({"n": range(number * 10), "x": [0.5 * row for row in range(number * 10)]})
        frame = frame.astype({"n": "int64", "x": "float64"})
        buffer = io.BytesIO()
        numparq.to_parquet(frame, buffer)
        path = folder / f"{number}.parquet"
        path.write_bytes(buffer.getvalue())
        rows.append((number, str(path), buffer.getvalue()))
    rows.append((6, None, None))
    fields = [
        StructField("number", IntegerType()),
        StructField("path", StringType()),
        StructField("data", BinaryType()),
    ]
    return spark.createDataFrame(rows, StructType(fields)).repartition(3)


def test_decoders_inside_a_pandas_udf(spark, files):
    from pyspark.sql.functions import pandas_udf

    def largest(paths: pd.Series) -> pd.Series:
        found = numparq.spark.decode_paths(paths, columns=["n"], filters=numparq.col("n") < 35)
        return found["n"].groupby(level=0).max().reindex(paths.index)

    def summed(contents: pd.Series) -> pd.DataFrame:
        found = numparq.spark.decode_bytes(contents)
        made = found.groupby(level=0).agg(total=("x", "sum"), rows=("n", "size"))
        return made.reindex(contents.index, fill_value=0)

    largest = pandas_udf(largest, "bigint")
    summed = pandas_udf(summed, "total double, rows bigint")
    got = files.select("number", largest("path").alias("largest"), summed("data").alias("s")).toPandas()
    got = got.sort_values("number").reset_index(drop=True)
    assert [None if pd.isna(n) else int(n) for n in got["largest"]] == [None, 9, 19, 29, 34, 34, None]
    assert [row["rows"] for row in got["s"]] == [0, 10, 20, 30, 40, 50, 0]
    assert [row["total"] for row in got["s"]] == [sum(range(n * 10)) / 2 for n in range(6)] + [0.0]


def test_decode_paths_in_map_in_pandas(spark, files):
    def rows(frames):
        for frame in frames:
            decoded = numparq.spark.decode_paths(frame["path"])
            yield decoded.assign(number=frame["number"].reindex(decoded.index))

    got = files.mapInPandas(rows, "number int, n bigint, x double")
    assert got.count() == 150
    assert got.filter("number = 3").agg({"n": "max"}).collect()[0][0] == 29


def test_damaged_cell_names_its_row(spark, files):
    from pyspark.errors import PythonException
    from pyspark.sql.functions import pandas_udf

    @pandas_udf("bigint")
    def count(contents: pd.Series) -> pd.Series:
        rows = numparq.spark.decode_bytes(contents.map(lambda cell: bytes(cell)[:-9] + b"123456789"))
        return rows.groupby(level=0).size().reindex(contents.index)

    with pytest.raises(PythonException, match=r"numparq\.errors.*<cell 0>"):
        files.filter("number = 2").select(count("data")).collect()
