"""The steps of a run of `optimize`: how long each of them takes, and what of them Spark does in tasks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .tasks import run_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Steps", "job_text"]


class Steps:
    """The steps of one run.

    Parameters
    ----------
    spark : SparkSession
        Where the work is done.

    Attributes
    ----------
    seconds : dict of str to float
        How long each step took that is over.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take the time of a step, and say on a terminal when it is over."""
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began
        if sys.stderr.isatty():
            print(f"numparq optimize: {name}: {self.seconds[name]:.1f} s", file=sys.stderr)

    def each(self, items: Sequence[Any], do: Callable[[Any], Any], text: str) -> list[Any]:
        """Do something with each of a list of things, in a task of its own; `text` says what, where people look."""
        return run_each(self.spark, items, do, job_text(text))


def job_text(text: str) -> str:
    """Give the description of a job of Spark."""
    return f"numparq optimize: {text}"
