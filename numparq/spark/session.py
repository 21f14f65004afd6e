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

__all__ = ["configure", "open_session", "register"]

_ENVIRONMENT = "spark.executorEnv."
_DAEMON = "spark.python.daemon.module"
_PYTHON = "spark.pyspark.python"


@contextmanager
def open_session(master: str | None, conf: Sequence[str], name: str) -> Iterator[Any]:
    """Start Spark, or take the session that there is.

    Parameters
    ----------
    master : str or None
        Spark's master; by default the one that spark-submit was told, else ``local[*]``.
    conf : sequence of str
        Settings, ``key=value``.
    name : str
        What Spark calls the application.

    Yields
    ------
    SparkSession
        Stopped in the end, where it was started here.

    Raises
    ------
    ImportError
        When pyspark is not installed.
    OSError
        When Spark does not start.
    ValueError
        When a setting is not ``key=value``.
    """
    if find_spec("pyspark") is None:
        raise ImportError("pyspark is not installed: numparq[spark] brings it; it needs Java 17, too")
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
    except Exception as error:  # of Py4J, of Java, of PySpark: a master that there is not, or no Java
        raise OSError(f"Spark did not start: {_error_text(error)}") from error
    try:
        yield made
    finally:
        made.stop()


def _error_text(error: Exception) -> str:
    """Give what an error says, without where in Java it was."""
    return str(getattr(error, "java_exception", None) or error).strip().partition("\n")[0]


def _local_settings(master: str | None) -> list[tuple[str, str]]:
    """Give settings of a Spark that is this process: what it says on the terminal, and to whom it listens."""
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
    return "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which says where


def _parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"--conf is KEY=VALUE, not {text!r}")
    return key, value


def configure(
    builder: SparkSession.Builder, *, python: str | None = None, cache_dir: str | os.PathLike[str] | None = None
) -> SparkSession.Builder:
    """Set what numparq wants of a session, before the session starts; each setting of the user's own stays.

    Parameters
    ----------
    builder : SparkSession.Builder
        ``SparkSession.builder``, with or without settings. Of a session that runs already, Spark changes none of these.
    python : str, optional
        The Python of the executors, as a path or a name there; numparq is to be installed in it. By default what
        ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` says, or this very interpreter's path.
    cache_dir : str or path, optional
        Where the compiled kernels are kept on the executors: a directory of an image or of a shared file system, which
        ``numparq warmup`` has filled and nobody but root or the user can write. By default ``NUMPARQ_CACHE_DIR``, or
        the cache directory of the user who runs the executors.

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

    The daemon is found only where numparq is installed with the executors' Python, or on its PYTHONPATH: what
    ``--py-files`` sends comes too late for it. A session of Spark Connect, whose server is configured elsewhere, stays
    as it is.

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
    """Give the settings that numparq wants where the user has none."""
    settings = {_DAEMON: "numparq.spark.daemon", _ENVIRONMENT + "NUMPARQ_THREADS": "1"}
    settings[_ENVIRONMENT + "NUMBA_NUM_THREADS"] = "1"
    place = os.environ.get("NUMPARQ_CACHE_DIR") if cache_dir is None else os.fspath(cache_dir)
    if place:
        settings[_ENVIRONMENT + "NUMPARQ_CACHE_DIR"] = place
    return settings


def _outer_settings() -> dict[str, str]:
    """Give the settings that come from outside of the program: a file, a command line, or a JVM that runs already."""
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
    """Read the settings in ``PYSPARK_SUBMIT_ARGS``, with which a program without spark-submit starts its JVM."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    given = [after for word, after in pairwise(words) if word in ("--conf", "-c")]
    given += [word.removeprefix("--conf=") for word in words if word.startswith("--conf=")]
    return dict(pair.split("=", 1) for pair in given if "=" in pair)


def register(spark: SparkSession, *, pushdown: bool = False) -> None:
    """Make ``spark.read.format("numparq")`` and ``df.write.format("numparq")`` known to a session.

    Where the module ``pyspark_numparq`` is installed, Spark finds them by itself; registering them again does no harm.
    A thread that did not start the session and writes registers them, too: Spark looks for what to write to in the
    session of the thread, which is this one then.

    Parameters
    ----------
    spark : SparkSession
        The session.
    pushdown : bool
        Whether reading is to know the option ``pushdown``, with which filters of queries leave out row groups, pages
        and rows. It needs Spark's setting ``spark.sql.python.filterPushdown.enabled``, and a Spark that keeps the
        filters of queries apart: a few small jobs find out.

    Raises
    ------
    UnsupportedError
        When `pushdown` is asked for, and queries of one DataFrame get filters of one another, as in Spark 4.3.0.
    """
    from .data_source.source import NumparqDataSource

    spark.createDataFrame([], "id int")  # by which Spark takes the session for that of this thread
    if pushdown:
        from numparq.errors import UnsupportedError

        from .data_source.pushdown import PushdownDataSource, filters_leak

        if filters_leak(spark):
            raise UnsupportedError(
                f"Spark {spark.version} applies the filters of one query to others of the same DataFrame, whose rows "
                "would be missing: give filters to numparq.spark.read, or as the option 'filter'"
            )
        spark.dataSource.register(PushdownDataSource)
        return
    try:
        spark.dataSource.register(NumparqDataSource)
    except Exception as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
