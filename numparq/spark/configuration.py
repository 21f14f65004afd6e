"""`configure`: the settings of a Spark session under which numparq's tasks start warm and keep to their core."""

from __future__ import annotations

import os
import re
import shlex
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure"]

_ENVIRONMENT = "spark.executorEnv."
_DAEMON = "spark.python.daemon.module"
_PYTHON = "spark.pyspark.python"


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
    for name, value in _wanted(cache_dir).items():
        if name not in given:
            builder.config(name, value)
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    else:
        os.environ.setdefault("PYSPARK_PYTHON", given.get(_PYTHON) or sys.executable)
    return builder


def _wanted(cache_dir: str | os.PathLike[str] | None) -> dict[str, str]:
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
