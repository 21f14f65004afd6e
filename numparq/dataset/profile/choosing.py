"""Which files and columns a profile is about."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...predicate import as_expression
from ...predicate.expression import And, Constant, Not, Or, Test
from ...predicate.text import parse
from ...schema import Leaf
from ..asked import key_of
from ..data_files import DataFile
from ..files import Listing
from ..partitions import Partitions
from ..pruners import PartitionPruner, kept_by

__all__ = ["files_where", "is_chosen", "is_named"]


def is_chosen(leaf: Leaf, names: Collection[str | tuple[str, ...]], leaves: Sequence[Leaf]) -> bool:
    """Tell whether a leaf is a column that is asked for, or in one.

    Parameters
    ----------
    leaf : Leaf
        One of a file's.
    names : collection of str or tuple
        What is asked for. A text is a top-level column of exactly that name, or else a dotted path.
    leaves : sequence of Leaf
        All of the file's.
    """
    top = {other.path[0] for other in leaves}
    return any(leaf.path[0] == name if name in top else is_named(leaf.path, name) for name in names)


def is_named(path: tuple[str, ...], name: str | tuple[str, ...]) -> bool:
    """Tell whether a path begins with a name, or with a path, which may be dotted."""
    if isinstance(name, tuple):
        return path[: len(name)] == name
    return path[0] == name or ".".join(path) == name or ".".join(path).startswith(name + ".")


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
