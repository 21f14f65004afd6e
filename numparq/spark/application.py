"""A program of its own that runs on Spark: the session that it starts, or is started in."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

__all__ = ["session"]


@contextmanager
def session(master: str | None, conf: Sequence[str], name: str) -> Iterator[Any]:
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

    from .configuration import configure

    settings = [_setting(one) for one in conf]
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = configure(SparkSession.builder.appName(name))
    if master is not None or not _is_submitted():
        builder = builder.master(master or "local[*]")
    for key, value in (*_defaults(master), *settings):
        builder = builder.config(key, value)
    try:
        made = builder.getOrCreate()
    except Exception as error:  # of Py4J, of Java, of PySpark: a master that there is not, or no Java
        raise OSError(f"Spark did not start: {_said(error)}") from error
    try:
        yield made
    finally:
        made.stop()


def _said(error: Exception) -> str:
    """Give what an error says, without where in Java it was."""
    return str(getattr(error, "java_exception", None) or error).strip().partition("\n")[0]


def _defaults(master: str | None) -> list[tuple[str, str]]:
    """Give settings of a Spark that is this process: what it says on the terminal, and to whom it listens."""
    if _is_submitted() or not (master or "local").startswith("local"):
        return []
    return [("spark.driver.host", "127.0.0.1"), ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.ui.enabled", "false"), ("spark.log.level", "ERROR"),
            ("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())]  # fmt: skip


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which says where


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"--conf is KEY=VALUE, not {text!r}")
    return key, value
