"""``numparq spark COMMAND``: the jobs of `numparq.spark`, on a Spark of this machine or on a cluster."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

# Of every command: where it runs.
_SESSION: tuple[tuple[str, dict], ...] = (
    ("--master", {"metavar": "URL", "help": "Spark's master, such as spark://host:7077 or yarn (local[*])"}),
    ("--conf", {"action": "append", "default": [], "metavar": "KEY=VALUE", "help": "a setting of Spark; any number"}),
)
_PATH = ("path", {"help": "the dataset: a directory or a URL"})
_NAMES = {"metavar": "NAME,NAME"}
# Command -> (module, function) that does it, the line of help, its arguments.
COMMANDS: dict[str, tuple[str, str, str, tuple[tuple[str, dict], ...]]] = {
    "optimize": ("spark_optimize", "optimize", "rewrite small or badly laid out files, so that queries read little", (
        _PATH,
        ("--sort-by", {**_NAMES, "help": "sort by these columns, over all files of a partition"}),
        ("--cluster-by", {**_NAMES, "help": "bring rows together that are alike in all of these columns"}),
        ("--target-file-bytes", {"default": "128MB", "metavar": "SIZE", "help": "of each file, about (128MB)"}),
        ("--out", {"metavar": "DIR", "help": "write there, and leave the dataset as it is"}),
        ("--where", {"metavar": "TEXT", "help": "only partitions of which this is true, such as: year = 2024"}),
        ("--bloom", {**_NAMES, "help": "Bloom filters of these columns; by default, of those that profit"}),
        ("--dry-run", {"action": "store_true", "help": "only say what would be done"}),
        ("--force", {"action": "store_true", "help": "also where files are laid out like that already"}),
        *_SESSION,
    )),
    "profile": ("spark_profile", "profile", "print what is in a dataset, and how well files could be skipped", (
        _PATH,
        ("--columns", {**_NAMES, "help": "only these columns, and what is in them"}),
        ("--data", {"default": "auto", "choices": ("auto", "always", "never"),
                    "help": "whether data is read: where footers leave something open (auto), of all, or not at all"}),
        ("--where", {"metavar": "TEXT", "help": "only partitions of which this is true, such as: year = 2024"}),
        ("--json", {"action": "store_true", "help": "print it as JSON"}),
        ("--strict", {"action": "store_true", "help": "a damaged file is an error"}),
        *_SESSION,
    )),
    "demo": ("spark_demo", "demo", "make many small files, optimize them, show what a look-up reads before and after", (
        ("--files", {"type": int, "default": 400, "metavar": "N", "help": "how many files (400)"}),
        ("--rows", {"type": int, "default": 4_000_000, "help": "rows of all of them (4000000)"}),
        ("--keep", {"metavar": "DIR", "help": "keep the dataset there"}),
        *_SESSION,
    )),
}  # fmt: skip


def names(text: str | None) -> list[str] | None:
    """Divide names at commas; None where nothing is given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def session(master: str | None, conf: Sequence[str], name: str) -> Iterator[Any]:
    """Start Spark, or take the session that there is.

    Parameters
    ----------
    master : str or None
        Spark's master; by default that of its configuration (spark-submit, spark-defaults.conf), else ``local[*]``.
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
    ValueError
        When a setting is not ``key=value``.
    """
    if find_spec("pyspark") is None:
        raise ImportError("pyspark is not installed: numparq[spark] brings it; it needs Java 17, too")
    from pyspark.sql import SparkSession

    from ..spark import configure

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
    made = builder.getOrCreate()
    try:
        yield made
    finally:
        made.stop()


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
