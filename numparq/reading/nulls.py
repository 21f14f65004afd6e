"""Whether columns may have nulls, as far as footers tell, before any row is read."""

from __future__ import annotations

from collections.abc import Sequence

from ..opened import OpenedFile
from ..schema import Leaf
from ..statistics.distrust import NULL_COUNT, distrusted

__all__ = ["may_be_null", "may_have_nulls"]


def may_have_nulls(leaf: Leaf, null_count: int | None, created_by: str | None) -> bool:
    """Say whether a column may have a null in rows of which the statistics count so many.

    Parameters
    ----------
    leaf : Leaf
        The column.
    null_count : int or None
        What the statistics say; None where they do not.
    created_by : str or None
        The writer: of some it is known that they count wrong.

    Returns
    -------
    bool
        False for what is REQUIRED, and where a writer that is to be trusted counts none.
    """
    if not leaf.max_definition_level:
        return False
    return null_count != 0 or NULL_COUNT in distrusted(created_by, leaf)


def may_be_null(file: OpenedFile, leaves: Sequence[Leaf]) -> list[bool]:
    """Tell of columns whether they may have a null in any row of a file.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaves : sequence of Leaf
        The columns.

    Returns
    -------
    list of bool
        As of `may_have_nulls`.
    """
    counts = file.footer.chunks.table(range(file.num_row_groups), [leaf.index for leaf in leaves])["null_count"]
    none = (counts == 0).all(axis=0).tolist()
    created_by = file.footer.created_by
    return [
        may_have_nulls(leaf, 0 if are_none else None, created_by) for leaf, are_none in zip(leaves, none, strict=True)
    ]
