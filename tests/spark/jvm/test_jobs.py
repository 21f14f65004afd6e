"""pandas jobs on Spark: what functions receive in tasks, what they return, and clear failures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, SchemaError
from numparq.spark import aggregate_pandas, aggregate_pandas_by, map_pandas

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 4, 500


@pytest.fixture(scope="module", autouse=True)
def by_value(spark):
    """Pickle functions of this module by value, because workers cannot import it."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(scope="module")
def whole():
    numbers = np.arange(FILES * ROWS)
    frame = pd.DataFrame({"n": numbers, "key": numbers % 7, "x": numbers / 4, "s": [f"s{n % 3}" for n in numbers]})
    frame["when"] = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(numbers, "h")
    frame["hole"] = pd.array([None if n % 5 == 0 else n for n in numbers], "Int64")
    return frame


@pytest.fixture(scope="module")
def folder(whole, tmp_path_factory):
    """Write four files in two partitions; the last has no null in `hole`."""
    place = tmp_path_factory.mktemp("table")
    for number in range(FILES):
        part = whole[number * ROWS : (number + 1) * ROWS]
        below = place / f"part={number // 2}"
        below.mkdir(exist_ok=True)
        numparq.to_parquet(part, below / f"{number}.parquet", row_group_size=200)
    return str(place)


def collected(result, *by):
    return result.toPandas().sort_values(list(by)).reset_index(drop=True)


def by_key(frame):
    return frame.groupby("key", as_index=False).agg(total=("n", "sum"), rows=("n", "size"))


# --- frames that functions receive ------------------------------------------------------------------------------------


def test_map_pandas_over_frames(spark, folder, whole):
    got = map_pandas(spark, folder, by_key, "key bigint, total bigint, rows bigint", split_bytes=1)
    assert got.rdd.getNumPartitions() >= FILES
    together = collected(got, "key").groupby("key", as_index=False).sum()
    pd.testing.assert_frame_equal(together, by_key(whole), check_dtype=False)


def described_frame(frame):
    text = [f"{name} {dtype}" for name, dtype in frame.dtypes.items()] + [str(frame.index)[:11]]
    return pd.DataFrame({"text": [", ".join(text)]})


def test_dtypes_are_the_same_in_all_splits(spark, folder):
    """Also in splits without nulls and with nothing but nulls."""
    got = map_pandas(spark, folder, described_frame, "text string", split_bytes=1).toPandas()["text"]
    assert len(got) >= FILES
    assert got.nunique() == 1
    assert got[0] == (
        "n Int64, key Int64, x float64, s str, when datetime64[us, UTC], hole Int64, part Int32, RangeIndex("
    )
    no_nulls = map_pandas(spark, folder, described_frame, "text string", ["hole"], "hole between 6 and 9").toPandas()
    assert no_nulls["text"].tolist() == ["hole Int64, RangeIndex("]


def heads(frames):
    for frame in frames:
        yield frame[["n"]].head(1).assign(rows=len(frame))


def annotated(frames: Iterator[pd.DataFrame]):
    return (head for head in heads(frames))


class Heads:
    def __call__(self, frames):
        yield from heads(frames)


@pytest.mark.parametrize("fn", [heads, annotated, Heads(), partial(heads)], ids=["generator", "hint", "object", "part"])
def test_map_pandas_over_iterators(spark, folder, fn):
    got = collected(map_pandas(spark, folder, fn, "n bigint, rows bigint", rows_per_batch=150), "n")
    assert got["rows"].max() == 150
    assert got["rows"].sum() == FILES * ROWS
    assert got["n"].tolist() == np.concatenate([[0], got["rows"].cumsum()[:-1]]).tolist()


def test_map_pandas_gets_batches(spark, folder):
    rows = map_pandas(spark, folder, lambda frame: pd.DataFrame({"rows": [len(frame)]}), "rows int", rows_per_batch=70)
    found = rows.toPandas()["rows"]
    assert found.max() == 70
    assert found.sum() == FILES * ROWS


def test_functions_are_not_called_without_rows(spark, folder):
    """The maximum of an empty frame would be an extra row."""

    def largest(frame):
        return pd.DataFrame({"n": [frame["n"].max()]})

    got = map_pandas(spark, folder, largest, "n bigint", filters="n in (3, 1700)", split_bytes=1)
    assert sorted(row["n"] for row in got.collect()) == [3, 1700]
    one_of_many = map_pandas(spark, folder, largest, "n bigint", filters="x > 1 and n = 7")
    assert [row["n"] for row in one_of_many.collect()] == [7]
    nothing = map_pandas(spark, folder, largest, "n bigint", filters="part = 9")
    assert nothing.collect() == []
    assert nothing.columns == ["n"]
    assert map_pandas(spark, folder, heads, "n bigint, rows int", filters="n = -1").collect() == []


def test_columns_filters_and_other_options(spark, folder, whole):
    keys = spark.createDataFrame([(3,), (5,)], "key bigint")
    got = map_pandas(
        spark,
        folder,
        lambda frame: frame,
        "file string, n bigint, part int",
        ["n", "part"],
        numparq.col("n") < 800,
        runtime_filters={"key": keys},
        include=["file"],
    )
    expected = whole[(whole["n"] < 800) & whole["key"].isin([3, 5])]["n"]
    frame = collected(got, "n")
    assert frame["n"].tolist() == expected.tolist()
    assert frame["part"].unique().tolist() == [0]
    assert frame["file"].str.contains("part=0").all()
    with pytest.raises(TypeError, match=r"unknown option .* of a table"):
        map_pandas(spark, folder, heads, "n bigint", nrows=3)
    with pytest.raises(SchemaError, match="nothing"):
        map_pandas(spark, folder, heads, "n bigint", ["nothing"])
    with pytest.raises(FileNotFoundError):
        map_pandas(spark, folder + "/no", heads, "n bigint")


def test_dataframe_can_be_reused(spark, folder):
    got = map_pandas(spark, folder, lambda frame: frame[["n", "key"]], "n bigint, key bigint", filters="n < 1000")
    assert [got.count(), got.filter("key = 3").count(), got.count()] == [1000, 143, 1000]
    assert got.union(got.filter("n < 10")).count() == 1010
    assert got.join(got.select("key").distinct(), "key").count() == 1000


def threads_of_a_task(frame):
    import os
    import threading

    from numparq.util.arguments import thread_count

    numparq.read_parquet(frame["file"][0])
    return pd.DataFrame({"count": [thread_count(None)], "running": [threading.active_count()], "pid": [os.getpid()]})


def test_tasks_use_one_thread(spark, folder):
    """Includes files that the user's function reads."""
    schema = "count int, running int, pid int"
    got = map_pandas(spark, folder, threads_of_a_task, schema, ["n"], include=["file"], split_bytes=1).toPandas()
    assert set(got["count"]) == {1}
    assert set(got["running"]) == {1}


def killed_on_first_attempt(frame):
    import os
    import signal

    from pyspark.taskcontext import TaskContext

    if TaskContext.get().attemptNumber() == 0 and frame["n"][0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame[["n"]]


def test_killed_task_is_retried(spark, folder):
    got = map_pandas(spark, folder, killed_on_first_attempt, "n bigint", split_bytes=1)
    assert sorted(row["n"] for row in got.collect()) == list(range(FILES * ROWS))


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(folder, tmp_path):
    """Return a copy of one file with a damaged page in one column."""
    path = tmp_path / "damaged.parquet"
    with open(f"{folder}/part=1/2.parquet", "rb") as file:
        data = bytearray(file.read())
    start = numparq.ParquetFile(bytes(data)).metadata.row_groups[1].columns[2].meta_data.data_page_offset
    data[start + 60] ^= 1
    path.write_bytes(data)
    return str(path)


def by_whole_x(frame):
    return frame.assign(x=frame["x"] // 1).groupby("x", as_index=False).agg(rows=("n", "size"))[["x"]]


@pytest.mark.parametrize("fn", [by_whole_x, lambda frame: frame[["x"]]])
def test_damage_names_file_row_group_and_page(spark, damaged, fn):
    from pyspark.errors import PythonException

    with pytest.raises(PythonException) as caught:
        map_pandas(spark, damaged, fn, "x double").collect()
    for part in ("CorruptPageError", "damaged.parquet", "row group 1", "column 'x'", "page 0"):
        assert part in str(caught.value)


def test_aggregates_raise_the_worker_error(spark, damaged):
    with pytest.raises(CorruptPageError, match=r"damaged\.parquet") as caught:
        aggregate_pandas(spark, damaged, by_key, by_key)
    where = dict(caught.value.where)
    assert where.pop("file").endswith("damaged.parquet")
    assert where == {"row_group": 1, "column": "x", "page": 0}
    assert "Traceback" in str(caught.value.__cause__)


def test_results_must_match_the_schema(spark, folder):
    from pyspark.errors import PythonException

    with pytest.raises(PythonException, match=r"result of fraction .*values that do not fit int"):
        map_pandas(spark, folder, fraction, "x int").collect()
    with pytest.raises(PythonException, match="lacks 'z' and has unexpected 'x'"):
        map_pandas(spark, folder, fraction, "z int").collect()
    with pytest.raises(TypeError, match="StructType"):
        map_pandas(spark, folder, fraction, ["x"])


def fraction(frame):
    return frame[["x"]]


# --- aggregates -------------------------------------------------------------------------------------------------------


def sums(frame):
    return frame.groupby(["s", "key"])[["n", "x"]].sum()


def together(parts):
    return parts.groupby(level=["s", "key"]).sum()


def test_aggregate_over_all_rows(spark, folder, whole):
    got = aggregate_pandas(spark, folder, sums, together, split_bytes=1)
    pd.testing.assert_frame_equal(got, sums(whole.astype({"n": "Int64", "key": "Int64"})))


def test_partial_results_reach_final_unchanged(spark, folder):
    """Dtypes and index are kept, and partial results come in row order."""

    def firsts(frame):
        return pd.Series(pd.Categorical(frame["s"].head(2), ["s0", "s1", "s2"]), frame["n"].head(2), name="s")

    got = aggregate_pandas(spark, folder, firsts, lambda parts: parts, split_bytes=1)
    assert str(got.dtype) == "category"
    assert got.index.is_monotonic_increasing
    assert len(got) >= 2 * FILES


def test_aggregate_without_rows(spark, folder):
    def total(frame):
        return pd.DataFrame({"n": [frame["n"].sum()], "rows": [len(frame)]})

    got = aggregate_pandas(spark, folder, total, lambda parts: parts.sum(), filters="n < 0")
    assert got.tolist() == [0, 0]
    some = aggregate_pandas(spark, folder, total, lambda parts: parts.sum(), filters="n < 3")
    assert some.tolist() == [3, 3]


def test_partial_must_return_frames(spark, folder):
    from pyspark.errors import PythonException

    with pytest.raises(PythonException, match="DataFrame or a Series, not 3"):
        aggregate_pandas(spark, folder, lambda frame: 3, sum)


@pytest.mark.parametrize("by", ["key", ["key"], ["s", "key"]], ids=str)
def test_aggregate_by_keys(spark, folder, whole, by):
    names = [by] if isinstance(by, str) else by

    def totals(frame):
        return frame.groupby(names)[["n", "x"]].sum()

    schema = ", ".join([*(f"{name} {'string' if name == 's' else 'bigint'}" for name in names), "n bigint, x double"])
    got = aggregate_pandas_by(spark, folder, by, totals, totals, schema, split_bytes=1)
    expected = whole.groupby(names, as_index=False)[["n", "x"]].sum()
    pd.testing.assert_frame_equal(collected(got, *names), expected, check_dtype=False)


def test_rows_of_a_key_keep_table_order(spark, folder, whole):
    def ordered(frame):
        assert frame["n"].is_monotonic_increasing
        assert str(frame["n"].dtype) == "Int64"
        return pd.DataFrame({"key": [frame["key"].iloc[0]], "first": [frame["n"].iloc[0]], "rows": [len(frame)]})

    got = aggregate_pandas_by(
        spark,
        folder,
        "key",
        lambda frame: frame[["key", "n"]],
        ordered,
        "key bigint, first bigint, rows bigint",
        partial_schema="key bigint, n bigint",
        split_bytes=1,
        rows_per_batch=50,
    )
    frame = collected(got, "key")
    assert frame["first"].tolist() == list(range(7))
    assert frame["rows"].tolist() == whole.groupby("key").size().tolist()


def test_missing_key_columns_are_refused(spark, folder):
    with pytest.raises(ValueError, match="zone"):
        aggregate_pandas_by(spark, folder, ["key", "zone"], sums, sums, "key bigint")
