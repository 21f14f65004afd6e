"""Lazy Spark DataFrame of a scan's splits, which counts its rows by footers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numparq.spark.tasks import map_splits, map_tasks, task_slots
from numparq.util.bounded_cache import fork_safe_lru_cache

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from numparq.dataset.splits.reader import SplitReader
    from numparq.dataset.splits.split import Split

    from .plan import SparkScan
    from .reader import BatchReader


def create_split_frame(spark: SparkSession, scan: SparkScan) -> DataFrame:
    """Return a lazy DataFrame of a scan, one split a task; counted rows without columns need no Python worker."""
    schema, num_rows = scan.batch_reader.schema, scan.num_rows
    if not schema.fields and num_rows is not None:
        return spark.range(0, num_rows, 1, task_slots(spark)).select()
    frame: Any = map_splits(spark, scan.splits, _ReadSplit(scan.batch_reader), schema)
    if not hasattr(frame, "_jdf"):  # Spark Connect
        return frame  # type: ignore[no-any-return]
    made: Any = _frame_class()(frame._jdf, spark)
    made._scan = scan
    return made  # type: ignore[no-any-return]


class _ReadSplit:
    """Task function that reads a split."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, number: int, split: Split) -> Iterator[pa.RecordBatch]:
        return self._reader.read(split)


class _CountSplit:
    """Task function that counts the rows of a split, by its filter columns alone."""

    def __init__(self, reader: SplitReader) -> None:
        self._reader = reader

    def __call__(self, number: int, split: Split) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"rows": pa.array([self._reader.count(split)], pa.int64())})


@fork_safe_lru_cache(1)
def _frame_class() -> type[DataFrame]:
    """Return the DataFrame class of a scan, built on demand since it needs pyspark."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    class SplitFrame(ClassicDataFrame):
        """DataFrame of a scan; its `count` reads no projected columns."""

        _scan: SparkScan

        def count(self) -> int:
            if self.is_cached:  # the caller may count to fill the cache
                return super().count()
            known = self._scan.num_rows
            if known is None:
                return self._count_in_tasks()
            self._scan.check_unchanged()
            return known

        def _count_in_tasks(self) -> int:
            task = _CountSplit(self._scan.batch_reader.split_reader)
            rows = map_tasks(self.sparkSession, self._scan.splits, task, "rows bigint").collect()
            return sum(row["rows"] for row in rows)

    return SplitFrame
