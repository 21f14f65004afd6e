"""Batch jobs with pandas functions: `map_pandas`, `aggregate_pandas`, `aggregate_pandas_by`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numparq.keys.provider import check_provider_name
from numparq.spark.tasks import describe_jobs, map_splits, run_splits, task_slots
from numparq.util.pluralize import agree_noun

from .user_function import (
    ROW_POSITION,
    PartialAggregator,
    RowNumberer,
    SplitMapper,
    arrow_group_function,
    check_partial_result,
    concat_results,
    function_name,
)

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.table import SplitTable
    from numparq.typing import Columns, Filters, PathLike

    from .results import ResultBatchBuilder

# Options of a job's table: arguments of `split_table`.
_OPTIONS = (
    "runtime_filters",
    "split_bytes",
    "min_splits",
    "plan_files",
    "partitioning",
    "resolve",
    "table_format",
    "storage_options",
    "filesystem",
    "include",
    "pruners",
    "verify_crc",
    "decryption",
    "expected_parts",
)
_DATASET_OPTIONS = (
    "partitioning",
    "resolve",
    "table_format",
    "storage_options",
    "filesystem",
    "decryption",
    "expected_parts",
)  # arguments of `Dataset`

_UTC = {"UTC", "GMT", "Z", "ETC/UTC", "ETC/GMT", "UTC+0", "+00:00", "GMT+0", "UCT", "ZULU"}


def plan_job_splits(
    spark: SparkSession, path: PathLike | Sequence[PathLike], columns: Columns, filters: Filters, **options: Any
) -> SplitTable:
    """Plan the splits of a table for pandas frames; options as in `map_pandas`, None counts as not given.

    Raises TypeError for an unknown option.
    """
    from numparq.column.projection import check_names
    from numparq.dataset.splits.table import split_table
    from numparq.spark.filters.dialect import DEFAULT_DIALECT, session_dialect
    from numparq.spark.filters.plan import plan_with_text
    from numparq.spark.scan.calendar import session_calendar

    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r} of a table; the options are: {', '.join(_OPTIONS)}")
    if options.get("decryption") is not None:
        check_provider_name(options["decryption"], "decryption")
    columns = None if columns is None else check_names(columns)
    given = {name: value for name, value in options.items() if value is not None or name == "partitioning"}
    given.setdefault("min_splits", task_slots(spark))
    given["calendar"] = session_calendar(spark)
    opening = {name: given[name] for name in (*_DATASET_OPTIONS, "calendar") if name in given}
    if "runtime_filters" in given:
        from numparq.spark.scan.plan import join_key_columns
        from numparq.spark.scan.runtime_filters import build_runtime_filters

        given["runtime_filters"] = build_runtime_filters(
            spark,
            given["runtime_filters"],
            lambda names: join_key_columns(names, lambda alone: split_table(path, alone, **opening)),
        )

    def plan(filters: Filters) -> SplitTable:
        return split_table(path, columns, filters, threads=1, **given)

    dialect = session_dialect(spark) if isinstance(filters, str) else DEFAULT_DIALECT
    return plan_with_text(filters, dialect, plan)


def map_pandas(
    spark: SparkSession,
    path: PathLike | Sequence[PathLike],
    fn: Callable[[Any], Any],
    schema: StructType | str,
    columns: Columns = None,
    filters: Filters = None,
    *,
    rows_per_batch: int | None = None,
    **options: Any,
) -> DataFrame:
    """Call a pandas function with the rows of a table in Spark tasks; return its results as a Spark DataFrame.

    Parameters
    ----------
    spark : SparkSession
        Session that runs the tasks.
    path : str, os.PathLike, or list of these
        Table, as in `numparq.Dataset`; executors must reach it by the same path.
    fn : callable
        ``fn(frame)`` returns a DataFrame for each frame of the table. A generator function, or one annotated with an
        ``Iterator`` as parameter or result, gets an iterator of all frames of a split and yields frames; it can start
        with costly preparations. Frames without rows are skipped.
    schema : StructType or str
        Schema of the results: ``"zone string, total double"``. Columns are matched by name, in any order, as are named
        index levels; other index levels are dropped.
    columns, filters
        As in `numparq.read_parquet`; text filters mean what they mean in Spark's SQL.
    rows_per_batch : int, optional
        Maximum rows of a frame. By default a frame is a whole split, of about `split_bytes` stored bytes.
    **options
        As in `numparq.spark.read`: runtime_filters, split_bytes, min_splits, partitioning, resolve, table_format,
        storage_options, filesystem, include, verify_crc, decryption, expected_parts. By default there are at least as
        many splits as tasks run at a time, if rows can be divided so.

    Returns
    -------
    pyspark.sql.DataFrame
        Results, split by split. Only planning has run yet.

    Raises
    ------
    SchemaError, FileNotFoundError, InvalidFileError
        As `numparq.Dataset.read` does.

    Notes
    -----
    Frames have schema-only types, the same in all frames: integers and booleans are nullable (``Int64``) unless the
    column is REQUIRED. No column becomes a Categorical or an index; rows are numbered from 0.

    Results are cast to the schema without loss, or the task fails: for example on integers that are too large,
    fractions as integers, or text as numbers. Timestamps without a time zone become instants only if the session's
    time zone is UTC. NaN in a column of floats becomes null, as it is missing for pandas. A failing task raises Spark's
    ``PythonException``, with file, row group, column and page if a file is to blame.

    Examples
    --------
    >>> def totals(frame):
    ...     return frame.groupby("zone", as_index=False)["total"].sum()
    >>> numparq.spark.map_pandas(spark, "trips", totals, "zone string, total double")  # doctest: +SKIP
    """
    wanted = parse_result_schema(schema)
    table = plan_job_splits(spark, path, columns, filters, **options)
    job = SplitMapper(table.reader, fn, _result_builder(spark, table, wanted, fn), rows_per_batch)
    return map_splits(spark, table.splits, job, wanted)


def aggregate_pandas(
    spark: SparkSession,
    path: PathLike | Sequence[PathLike],
    partial: Callable[[pd.DataFrame], Any],
    final: Callable[[Any], Any],
    columns: Columns = None,
    filters: Filters = None,
    *,
    rows_per_batch: int | None = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Aggregate a table: each split in a task, then the tasks' results on the driver.

    Parameters
    ----------
    spark, path, columns, filters, rows_per_batch, **options
        As in `map_pandas`.
    partial : callable
        ``partial(frame)`` returns a small DataFrame or Series, with any index. It is called for each frame with rows;
        if there is none, once with an empty frame.
    final : callable
        ``final(results)`` combines the results, concatenated in the order of the table's rows. Dtypes and index are
        those that `partial` returned.
    description : str, optional
        Job description in Spark's console and web pages.

    Returns
    -------
    object
        Result of `final`.

    Raises
    ------
    ParquetError
        If a task finds a damaged file. Other failures of `partial` are Spark's ``PythonException``.

    Examples
    --------
    >>> def sums(frame):
    ...     return frame.groupby("zone")["total"].sum()
    >>> def together(results):
    ...     return results.groupby(level=0).sum()
    >>> numparq.spark.aggregate_pandas(spark, "trips", sums, together)  # doctest: +SKIP
    """
    with describe_jobs(spark, description or f"numparq aggregate: {function_name(partial)} of {path}"):
        table = plan_job_splits(spark, path, columns, filters, **options)
        made = run_splits(
            spark, table, PartialAggregator(partial, rows_per_batch), f"{len(table)} {agree_noun(len(table), 'split')}"
        )
    results = [one for split in made for one in split]
    if not results:
        from numparq.dataset.splits.split import Split

        results = [check_partial_result(partial(table.frame(Split())), partial)]
    return final(concat_results(results))


def aggregate_pandas_by(
    spark: SparkSession,
    path: PathLike | Sequence[PathLike],
    by: str | Sequence[str],
    partial: Callable[[pd.DataFrame], pd.DataFrame],
    final: Callable[[pd.DataFrame], pd.DataFrame],
    schema: StructType | str,
    columns: Columns = None,
    filters: Filters = None,
    *,
    partial_schema: StructType | str | None = None,
    rows_per_batch: int | None = None,
    **options: Any,
) -> DataFrame:
    """Aggregate a table by many keys: each split in a task, then each key, after Spark's shuffle.

    Parameters
    ----------
    spark, path, columns, filters, rows_per_batch, **options
        As in `map_pandas`.
    by : str or sequence of str
        Keys: columns of `partial_schema`.
    partial : callable
        ``partial(frame)`` returns a DataFrame of `partial_schema`, like the function of `map_pandas`.
    final : callable
        ``final(frame)`` returns a DataFrame of `schema`. It is called once for each key, with all rows that `partial`
        returned for it, in the order of the table's rows; integers and booleans are nullable.
    schema : StructType or str
        Schema of the results of `final`.
    partial_schema : StructType or str, optional
        Schema of the results of `partial`; default: `schema`.

    Returns
    -------
    pyspark.sql.DataFrame
        Results. Only planning has run yet.

    Examples
    --------
    >>> def sums(frame):
    ...     return frame.groupby("customer", as_index=False)["total"].sum()
    >>> numparq.spark.aggregate_pandas_by(
    ...     spark, "trips", "customer", sums, sums, "customer bigint, total double"
    ... )  # doctest: +SKIP
    """
    from pyspark.sql.types import LongType, StructField, StructType

    wanted = parse_result_schema(schema)
    between = wanted if partial_schema is None else parse_result_schema(partial_schema)
    keys = [by] if isinstance(by, str) else list(by)
    unknown = [key for key in keys if key not in between.fieldNames()]
    if unknown or not keys:
        raise ValueError(
            f"by must name columns of the partial results ({', '.join(between.fieldNames())}), not {unknown}"
        )
    table = plan_job_splits(spark, path, columns, filters, **options)
    job = SplitMapper(table.reader, partial, _result_builder(spark, table, between, partial), rows_per_batch)
    numbered = StructType([*between.fields, StructField(ROW_POSITION, LongType())])
    rows = map_splits(spark, table.splits, RowNumberer(job), numbered)
    results = _result_builder(spark, table, wanted, final)
    return rows.groupBy(*keys).applyInArrow(arrow_group_function(final, results), wanted)


def parse_result_schema(schema: StructType | str) -> StructType:
    """Return a schema, or the text of one, as a StructType."""
    from pyspark.sql.types import StructType

    if isinstance(schema, str):
        schema = StructType.fromDDL(schema)  # type: ignore[assignment]
    if not isinstance(schema, StructType):
        raise TypeError(f"the schema of results must be a StructType or a DDL string, not {schema!r}")
    return schema


def _result_builder(
    spark: SparkSession, table: SplitTable, schema: StructType, fn: Callable[..., Any]
) -> ResultBatchBuilder:
    from .results import ResultBatchBuilder

    zone = spark.conf.get("spark.sql.session.timeZone") or ""
    return ResultBatchBuilder(
        schema, function_name(fn), is_utc=zone.upper() in _UTC, hides_values=table.reader.has_keys
    )
