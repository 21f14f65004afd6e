"""Jobs of Spark that somebody waits for: what runs, said where people look, and ended when nobody waits any more."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PROPERTY = "spark.job.description"


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the jobs that this thread starts meanwhile; where Ctrl-C ends the waiting for them, end them as well.

    Spark's own handling of Ctrl-C means to do that, and cannot where it interrupts a call to the Java side.

    Parameters
    ----------
    spark : SparkSession
        Whose jobs; of one that is connected to a server (Spark Connect), which has no such thing, none is described.
    text : str
        What they do: ``"numparq optimize: sorting 2,000 files"``. A description that is there already stays in front.

    Examples
    --------
    >>> with described(spark, "numparq profile: 40 footers"):  # doctest: +SKIP
    ...     spark.range(10).count()
    """
    context = _context(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_PROPERTY)
    context.setLocalProperty(_PROPERTY, f"{before}: {text}" if before else text)
    tag = f"numparq-{secrets.token_hex(8)}"
    context.addJobTag(tag)
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(_PROPERTY, before)  # type: ignore[arg-type]


def _context(spark: SparkSession) -> SparkContext | None:
    """Give the SparkContext of a session; None where there is none on this side."""
    try:
        return spark.sparkContext
    except AttributeError:
        return None
