"""Which columns a profile is about."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...schema import Leaf

__all__ = ["is_chosen", "is_named"]


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
