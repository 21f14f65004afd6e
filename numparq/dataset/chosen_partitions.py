"""The files of some partitions, chosen by a filter that asks of nothing else: for what is done with whole files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..predicate import as_expression
from ..predicate.expression import And, Constant, Not, Or, Test
from ..predicate.text import parse
from .asked import key_of
from .data_files import DataFile
from .files import Listing
from .partitions import Partitions
from .pruners import PartitionPruner, kept_by

__all__ = ["files_where"]


def files_where(listing: Listing, partitioning: Any, where: Any) -> list[DataFile]:
    """Choose the files of some partitions.

    Parameters
    ----------
    listing : Listing
        All files.
    partitioning : Any
        What `list_files` was given.
    where : expression, list of tuples, or str
        What is asked of partition columns; text as ``numparq plan --filter`` takes it.

    Raises
    ------
    ValueError
        When it asks of anything else.
    """
    asked = as_expression(parse(where) if isinstance(where, str) else where)
    partitions = Partitions.of(listing, partitioning)
    for name in _names(asked):
        if key_of(name, partitions) < 0:
            shown = name if isinstance(name, str) else ".".join(map(str, name))
            known = ", ".join(map(repr, partitions.keys)) or "none"
            raise ValueError(f"where is about partition columns, and {shown!r} is none: there are {known}")
    kept = kept_by(PartitionPruner(asked, partitions), listing.files)
    return [file for file, is_kept in zip(listing.files, kept.tolist(), strict=True) if is_kept]


def _names(expression: Any) -> Iterator[Any]:
    """Give the names of all columns that an expression asks."""
    if isinstance(expression, (And, Or)):
        for part in expression.parts:
            yield from _names(part)
    elif isinstance(expression, Not):
        yield from _names(expression.part)
    elif isinstance(expression, Test):
        yield expression.name
    elif not isinstance(expression, Constant):
        raise ValueError(f"where cannot be {expression!r}")
