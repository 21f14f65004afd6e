"""The table of Spark queries for numparq and Spark's own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

import numparq
from asv_benchmarks.queries.goals import Faster
from asv_benchmarks.spark.folders import KEYED, TRIPS, Spread, key_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Way = Callable[["SparkSession", str, int], pd.DataFrame]
"""``way(spark, path, num_rows)`` gives the answer, on the driver."""

LARGE_BATCHES = 200_000  # rows: Spark's own default, 10,000, costs it most of the time where columns are few


@dataclass(frozen=True)
class SparkQuery:
    """Something asked of a folder in several ways, all with the same answer.

    Attributes
    ----------
    name : str
        For the table.
    folder : PartitionedFileWriter
        Of what.
    ways : mapping of str to callable
        By contender: numparq's first.
    goals : tuple of Faster
        What numparq has to reach.
    """

    name: str
    folder: Spread
    ways: Mapping[str, Way]
    goals: tuple[Faster, ...] = ()


# --- aggregated in the worker -----------------------------------------------------------------------------------------


PARTIAL = "rows bigint, seats bigint, price double, share double, trams bigint, latest timestamp_ntz, ids bigint"


def _partial() -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the partial aggregate as a nested function, so that it is pickled by value."""

    def partial(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "rows": [len(frame)],
                "seats": [int(frame["seats"].sum())],
                "price": [frame["price"].sum()],
                "share": [frame["share"].sum()],
                "trams": [int((frame["kind"] == "tram").sum())],
                "latest": [frame["at"].max()],
                "ids": [int(frame["id"].sum())],
            }
        )

    return partial


def _final(parts: Any) -> pd.DataFrame:
    """Aggregate the workers' results."""
    return parts.selectExpr(
        "sum(rows)",
        "sum(seats)",
        "round(sum(price), 3)",
        "round(sum(share), 3)",
        "sum(trams)",
        "max(latest)",
        "sum(ids)",
    ).toPandas()


def aggregated_by_numparq(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Aggregate splits in the workers."""
    return _final(numparq.spark.map_pandas(spark, path, _partial(), PARTIAL))


def aggregated_natively(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Aggregate with Spark's reader and mapInPandas."""
    partial = _partial()

    def each(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield partial(frame)

    return _final(spark.read.parquet(path).mapInPandas(each, PARTIAL))


def with_large_batches(way: Way) -> Way:
    """Return the way with larger batches from Spark."""

    def done(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
        name = "spark.sql.execution.arrow.maxRecordsPerBatch"
        before = spark.conf.get(name)
        spark.conf.set(name, LARGE_BATCHES)
        try:
            return way(spark, path, num_rows)
        finally:
            spark.conf.set(name, before)

    return done


# --- sums over columns ------------------------------------------------------------------------------------------------

SUMMED = ["id", "seats", "price", "share"]


def _sums(table: Any) -> pd.DataFrame:
    return table.selectExpr(*(f"round(sum({name}), 3)" for name in SUMMED)).toPandas()


def summed_by_numparq(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Sum over the data source."""
    return _sums(numparq.spark.read(spark, path, columns=SUMMED))


def summed_natively(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Sum over Spark's reader."""
    return _sums(spark.read.parquet(path).select(*SUMMED))


# --- rows counted -----------------------------------------------------------------------------------------------------


def _row_count(count: int) -> pd.DataFrame:
    return pd.DataFrame({"rows": [count]})


def counted_by_numparq(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Count the rows of a DataFrame of `numparq.spark.read`."""
    return _row_count(numparq.spark.read(spark, path).count())


def counted_natively(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Count the rows of Spark's reader."""
    return _row_count(spark.read.parquet(path).count())


def counted_by_source(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Count the rows of the data source without columns."""
    return _row_count(spark.read.format("numparq").option("columns", "").load(path).count())


def counted_in_sql_by_numparq(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Count in SQL, over a view of rows without columns."""
    numparq.spark.read(spark, path, []).createOrReplaceTempView("counted")
    return _row_count(spark.sql("select count(*) from counted").first()[0])


def counted_in_sql_natively(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Count in SQL, over a view of Spark's reader."""
    spark.read.parquet(path).createOrReplaceTempView("counted")
    return _row_count(spark.sql("select count(*) from counted").first()[0])


# --- rows written -----------------------------------------------------------------------------------------------------


def _written(write: Callable[[Any, str], None], spark: SparkSession, path: str) -> pd.DataFrame:
    """Write the rows of Spark's reader to a new folder, and count what is there by its footers."""
    with TemporaryDirectory() as folder:
        write(spark.read.parquet(path), f"{folder}/written")
        return _row_count(numparq.Dataset(f"{folder}/written").num_rows)


def written_by_numparq(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Write by the data source."""
    return _written(lambda rows, folder: rows.write.format("numparq").mode("append").save(folder), spark, path)


def written_natively(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
    """Write by Spark's writer."""
    return _written(lambda rows, folder: rows.write.parquet(folder), spark, path)


# --- look-ups ---------------------------------------------------------------------------------------------------------


def _wanted(column: str, num_rows: int) -> int:
    """Return the literal of a row in the middle of the table."""
    import numpy as np

    row = np.array([num_rows // 2 + num_rows // 7])
    return int((row if column == "id" else key_of(row))[0])


def looked_up_by_numparq(column: str) -> Way:
    """Return a look-up through the data source."""

    def done(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
        return numparq.spark.read(spark, path, filters=numparq.col(column) == _wanted(column, num_rows)).toPandas()

    return done


def looked_up_natively(column: str) -> Way:
    """Return a look-up through Spark's reader, which uses statistics, page indexes and Bloom filters too."""

    def done(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
        return spark.read.parquet(path).where(f"{column} = {_wanted(column, num_rows)}").toPandas()

    return done


def looked_up_by_source(column: str) -> Way:
    """Return a look-up through the data source, which plans its filter when the rows are loaded."""

    def done(spark: SparkSession, path: str, num_rows: int) -> pd.DataFrame:
        source = spark.read.format("numparq").option("filter", f"{column} = {_wanted(column, num_rows)}")
        return source.load(path).toPandas()

    return done


def _look_up(name: str, column: str) -> SparkQuery:
    ways = {
        "numparq": looked_up_by_numparq(column),
        "native": looked_up_natively(column),
        "data source": looked_up_by_source(column),
    }
    return SparkQuery(name, KEYED, ways, (Faster(3.0, ("native",)),))


QUERIES: dict[str, SparkQuery] = {
    query.name: query
    for query in (
        SparkQuery(
            "aggregate",
            TRIPS,
            {
                "numparq": aggregated_by_numparq,
                "native": aggregated_natively,
                "large batches": with_large_batches(aggregated_natively),
            },
            (Faster(1.3, ("native",)), Faster(1.3, ("large batches",))),
        ),
        SparkQuery(
            "sums", TRIPS, {"numparq": summed_by_numparq, "native": summed_natively}, (Faster(1.0, ("native",)),)
        ),
        SparkQuery(
            "count",
            TRIPS,
            {"numparq": counted_by_numparq, "native": counted_natively, "data source": counted_by_source},
            (Faster(1.0, ("native",)),),
        ),
        SparkQuery(
            "count-sql",
            TRIPS,
            {"numparq": counted_in_sql_by_numparq, "native": counted_in_sql_natively},
            (Faster(1.0, ("native",)),),
        ),
        SparkQuery(
            "write", TRIPS, {"numparq": written_by_numparq, "native": written_natively}, (Faster(1.0, ("native",)),)
        ),
        _look_up("look-up", "id"),
        _look_up("look-up-bloom", "key"),
    )
}
"""All by name, in the order in which they are run."""
