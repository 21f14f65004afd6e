"""Spark session: `configure` its workers, open one for a program, `register` the data source."""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENVIRONMENT = "spark.executorEnv."
_DAEMON = "spark.python.daemon.module"
_PYTHON = "spark.pyspark.python"


@contextmanager
def open_session(master: str | None, conf: Sequence[str], name: str) -> Iterator[Any]:
    """Yield the active Spark session, or start one and stop it at the end; `conf` has settings ``key=value``.

    Raises ImportError without pyspark, OSError if Spark does not start, ValueError for a malformed setting.
    """
    if find_spec("pyspark") is None:
        raise ImportError("pyspark is not installed: pip install 'numparq[spark]'; it also needs Java 17")
    from pyspark.sql import SparkSession

    settings = [_parse_setting(one) for one in conf]
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = configure(SparkSession.builder.appName(name))
    if master is not None or not _is_submitted():
        builder = builder.master(master or "local[*]")
    for key, value in (*_local_settings(master), *settings):
        builder = builder.config(key, value)
    try:
        made = builder.getOrCreate()
    except Exception as error:  # from Py4J, Java or PySpark: unknown master, no Java
        raise OSError(f"Spark did not start: {_error_text(error)}") from error
    try:
        yield made
    finally:
        made.stop()


def _error_text(error: Exception) -> str:
    """Return the first line of an error, without Java's stack trace."""
    return str(getattr(error, "java_exception", None) or error).strip().partition("\n")[0]


def _local_settings(master: str | None) -> list[tuple[str, str]]:
    """Return settings of a local Spark: quiet on the terminal, and listening on the loopback address only."""
    if _is_submitted() or not (master or "local").startswith("local"):
        return []
    return [
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.log.level", "ERROR"),
        ("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower()),
    ]


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ  # set by spark-submit


def _parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"--conf must be KEY=VALUE, not {text!r}")
    return key, value


def configure(
    builder: SparkSession.Builder, *, python: str | None = None, cache_dir: str | os.PathLike[str] | None = None
) -> SparkSession.Builder:
    """Set what numparq needs of a session before it starts; the user's own settings stay.

    Parameters
    ----------
    builder : SparkSession.Builder
        ``SparkSession.builder``, with or without settings. Spark does not change these in a running session.
    python : str, optional
        Python of the executors, with numparq installed, as a path or name there. Default: ``PYSPARK_PYTHON``,
        ``spark.pyspark.python``, or this interpreter's path.
    cache_dir : str or path, optional
        Directory of compiled kernels on the executors: part of an image or a shared file system, filled by ``numparq
        warmup``, and writable only by root or the user. Default: ``NUMPARQ_CACHE_DIR``, or the cache directory of
        the user who runs the executors.

    Returns
    -------
    SparkSession.Builder
        The same builder.

    Notes
    -----
    ===================================  ===============================  =============================================
    setting                              value                            why
    ===================================  ===============================  =============================================
    spark.python.daemon.module           numparq.spark.daemon             workers start with numparq loaded
    PYSPARK_PYTHON (environment)         this interpreter                 Spark would take the system's ``python3``
    spark.executorEnv.NUMPARQ_THREADS    1                                a task has one core
    spark.executorEnv.NUMBA_NUM_THREADS  1                                the same, for kernels of the user's own
    spark.executorEnv.NUMPARQ_CACHE_DIR  as here, if it is set or given   kernels are compiled once, not by each process
    ===================================  ===============================  =============================================

    The daemon is found only if numparq is installed with the executors' Python, or on its PYTHONPATH; ``--py-files``
    arrives too late, so the daemon stays Spark's if numparq itself is imported from a zip file. A Spark Connect session
    is configured on its server and left unchanged.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> spark = numparq.spark.configure(SparkSession.builder.master("local[*]")).getOrCreate()  # doctest: +SKIP
    """
    given = {**_outer_settings(), **{name: str(value) for name, value in builder._options.items()}}
    if "spark.remote" in given or os.environ.get("SPARK_REMOTE"):
        return builder
    for name, value in _numparq_settings(cache_dir).items():
        if name not in given:
            builder.config(name, value)
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    else:
        os.environ.setdefault("PYSPARK_PYTHON", given.get(_PYTHON) or sys.executable)
    return builder


def _numparq_settings(cache_dir: str | os.PathLike[str] | None) -> dict[str, str]:
    """Return numparq's default settings; a daemon starts before Spark sends the zip file that holds numparq."""
    settings = {_ENVIRONMENT + name: "1" for name in ("NUMPARQ_THREADS", "NUMBA_NUM_THREADS")}
    if not hasattr(__spec__.loader, "archive"):
        settings[_DAEMON] = "numparq.spark.daemon"
    place = os.environ.get("NUMPARQ_CACHE_DIR") if cache_dir is None else os.fspath(cache_dir)
    if place:
        settings[_ENVIRONMENT + "NUMPARQ_CACHE_DIR"] = place
    return settings


def _outer_settings() -> dict[str, str]:
    """Return the settings from outside the program: a file, a command line, or a running JVM."""
    from pyspark import SparkConf, SparkContext

    settings = {**_defaults_file(), **_submit_arguments()}
    if SparkContext._jvm is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit
        SparkContext._ensure_initialized()
        settings.update(SparkConf().getAll())
    return settings


def _defaults_file() -> dict[str, str]:
    """Read ``spark-defaults.conf``: a name, then white space or ``=``, then the value."""
    import pyspark

    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    try:
        with open(os.path.join(folder, "spark-defaults.conf"), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _submit_arguments() -> dict[str, str]:
    """Read the settings in ``PYSPARK_SUBMIT_ARGS``, which start the JVM of a program without spark-submit."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    given = [after for word, after in pairwise(words) if word in ("--conf", "-c")]
    given += [word.removeprefix("--conf=") for word in words if word.startswith("--conf=")]
    return dict(pair.split("=", 1) for pair in given if "=" in pair)


def register(spark: SparkSession, *, pushdown: bool = False) -> None:
    """Register ``spark.read.format("numparq")`` and ``df.write.format("numparq")`` with a session.

    If the module ``pyspark_numparq`` is installed, Spark finds them by itself; registering again is harmless. Call this
    in each writing thread that did not start the session, since Spark looks for the writer in the thread's session.

    Parameters
    ----------
    spark : SparkSession
        Session to register with.
    pushdown : bool
        Whether to enable the read option ``pushdown``, which prunes row groups, pages and rows by the filters of
        queries. It requires Spark's setting ``spark.sql.python.filterPushdown.enabled``, and a Spark version that
        keeps filters of different queries apart; a few small jobs check that.

    Raises
    ------
    UnsupportedError
        With `pushdown`, if queries of one DataFrame get each other's filters, as in Spark 4.3.0.
    """
    from .data_source.source import NumparqDataSource

    spark.createDataFrame([], "id int")  # makes it the session of this thread
    if pushdown:
        from numparq.errors import UnsupportedError

        from .data_source.pushdown import PushdownDataSource, filters_leak

        if filters_leak(spark):
            raise UnsupportedError(
                f"Spark {spark.version} applies the filters of one query to other queries of the same DataFrame, "
                "which would lose rows: pass filters to numparq.spark.read, or as the option 'filter'"
            )
        spark.dataSource.register(PushdownDataSource)
        return
    try:
        spark.dataSource.register(NumparqDataSource)
    except Exception as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
