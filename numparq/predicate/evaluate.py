"""Which rows satisfy a bound expression: over whole columns, without an object for each value.

A bound expression is in normal form, where unknown never becomes true by a negation: so a mask of what is true is all
that there is to compute, and a null makes a test of values not true. There is one mask: each test is joined with what
the mask holds already, and looks no further at rows that are decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..kernels import predicate_kernels
from ..schema import FIXED_LEN_BYTE_ARRAY
from .asking import ask
from .bound import ElementTest, MemberTest, NullTest, ValueTest, each_test
from .expression import And, Constant, Expression, Or
from .joining import AND, OR, STORE, Mask, as_mask
from .values import Values

__all__ = ["Values", "evaluate", "satisfying"]


def evaluate(
    bound: Expression, columns: Mapping[int, Values], num_rows: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Find the rows that satisfy a bound expression.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    columns : mapping of int to Values
        The leaves that it asks, by their ordinals.
    num_rows : int
        How many rows these have.
    out : uint8 or bool array, optional
        Memory for the answer, of as many items; what it holds does not matter.

    Returns
    -------
    bool array
        An item a row: True where the expression is true, False where it is false or unknown. Its memory is that of
        `out`, if that is given.
    """
    into = _mask(out, num_rows)
    _join(bound, columns, into)
    return into.out.view(np.bool_)


def satisfying(test: ValueTest | MemberTest, column: Values, out: np.ndarray | None = None) -> np.ndarray:
    """Find the values that satisfy a test: rows of a column, or entries of a dictionary.

    Parameters
    ----------
    test : ValueTest or MemberTest
        Bound.
    column : Values
        The leaf's values.
    out : uint8 or bool array, optional
        As in `evaluate`.

    Returns
    -------
    bool array
        An item a value; False for nulls.
    """
    into = _mask(out, count_of(test, column))
    _join_values(test, column, into)
    return into.out.view(np.bool_)


def count_of(test: ValueTest | MemberTest, column: Values) -> int:
    """Count the values of a column."""
    if column.codes is not None:
        return len(column.codes)
    if column.offsets is not None:
        return len(column.offsets) - 1
    if test.leaf.physical == FIXED_LEN_BYTE_ARRAY and column.values.dtype == np.uint8:
        return len(column.values) // test.domain.width
    return len(column.values)


def _mask(out: np.ndarray | None, count: int) -> Mask:
    if out is None:
        return Mask(np.empty(count, np.uint8))
    if out.shape != (count,) or out.dtype.itemsize != 1 or not out.flags.c_contiguous:
        raise ValueError(f"the answer for {count} rows does not fit an array of {out.dtype} and shape {out.shape}")
    return Mask(out.view(np.uint8))


def _join(bound: Expression, columns: Mapping[int, Values], into: Mask) -> None:
    if isinstance(bound, Constant):
        into.constant(bound.value)
    elif isinstance(bound, (And, Or)):
        _join_parts(bound, columns, into)
    elif isinstance(bound, NullTest):
        _join_nulls(bound, columns[bound.leaf.index], into)
    elif isinstance(bound, ElementTest):
        _join_lists(bound, columns[bound.leaf.index], into)
    else:
        assert isinstance(bound, (ValueTest, MemberTest))
        _join_values(bound, columns[bound.leaf.index], into)


def _join_parts(bound: And | Or, columns: Mapping[int, Values], into: Mask) -> None:
    """Join the parts, those first that are quickly tested, until the others cannot change a row."""
    own, is_settled = (AND, _none) if isinstance(bound, And) else (OR, np.all)
    if into.how not in (STORE, own):  # what the parts have in common is to be joined with what is there
        apart = Mask(np.empty(len(into.out), np.uint8))
        _join_parts(bound, columns, apart)
        into.where(apart.out)
        return
    for part in sorted(bound.parts, key=_cost):
        if into.how == own and is_settled(into.out.view(np.bool_)):
            break
        _join(part, columns, into)
        into = replace(into, how=own)


def _none(mask: np.ndarray) -> bool:
    return not mask.any()


def _cost(bound: Expression) -> int:
    """Tell what takes longer: numbers, bytes, patterns and Bloom filters, lists."""
    return max((_COSTS[type(test)](test) for test in each_test(bound)), default=0)


_COSTS: dict[type, Any] = {
    NullTest: lambda test: 0,
    ValueTest: lambda test: 2 if test.pattern is not None else test.domain.kind in ("bytes", "decimal"),
    MemberTest: lambda test: 2,
    ElementTest: lambda test: 3,
}


# --- one test ---------------------------------------------------------------------------------------------------------


def _join_nulls(test: NullTest, column: Values, into: Mask) -> None:
    there = column.validity if test.is_of_leaf else column.levels.get(test.level)
    if test.is_of_leaf and column.codes is not None:
        coded = column.codes >= 0
        there = coded if there is None else coded & (there != 0)
    into.where(_of(there, len(into.out), "validity"), negated=not test.negated)


def _join_values(test: ValueTest | MemberTest, column: Values, into: Mask) -> None:
    """Join a test of values: of all, or where they are coded, of the entries, and then what was found of each."""
    count = len(into.out)
    if column.validity is not None or into.validity is not None:
        into = replace(into, validity=_of(column.validity, count, "validity"))
    if column.codes is None:
        if count_of(test, column) < count:
            raise ValueError(f"{test.leaf.name}: {count_of(test, column)} values for {count} rows")
        ask(test, column, into)
        return
    entries = satisfying(test, replace(column, codes=None, validity=None))
    codes = _of(column.codes, count, "codes")
    predicate_kernels.join_coded(codes.astype(np.int32, copy=False), entries, len(entries), *into.tail)


def _join_lists(test: ElementTest, column: Values, into: Mask) -> None:
    assert column.list_offsets is not None
    count = len(into.out)
    offsets = _of(column.list_offsets, count + 1, "list offsets")
    elements = satisfying(test.test, column)
    if offsets[-1] > len(elements):
        raise ValueError(f"{test.leaf.name}: {len(elements)} elements for lists that end at {offsets[-1]}")
    offsets = offsets if offsets.dtype.itemsize in (4, 8) else offsets.astype(np.int64)
    into = replace(into, validity=_of(column.levels.get(test.level), count, "validity"))
    predicate_kernels.join_lists(
        elements, offsets.view(np.uint8), offsets.dtype.itemsize, int(test.negated), *into.tail
    )


def _of(array: Any, count: int, what: str) -> Any:
    """Give what is known of so many rows, as the kernels take it, which check no lengths; more is left out."""
    if array is None:
        return None
    if len(array) < count:
        raise ValueError(f"{what} for {len(array)} rows, not for {count}")
    return as_mask(array[:count]) if what == "validity" else np.ascontiguousarray(array[:count])
