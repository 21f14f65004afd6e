"""Evaluate a bound expression over decoded columns into a row mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.format.physical_type import FIXED_LEN_BYTE_ARRAY
from numparq.kernels.kernel_groups import predicate_kernels
from numparq.util.pluralize import agree_noun

from .bound import (
    BloomPredicate,
    ComparisonPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
    bound_predicates,
)
from .expression import And, Constant, Expression, Or
from .matchers.columns import match_columns
from .matchers.compile import match_values
from .matchers.vectors import AND, OR, STORE, ColumnVector, RowMask, as_mask


def evaluate(
    bound: Expression, columns: Mapping[int, ColumnVector], num_rows: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Return a bool array: True for the rows for which a bound expression is true, not false or unknown.

    `columns` is keyed by leaf ordinal. `out` (uint8 or bool, one item a row) becomes the result's memory.
    """
    into = RowMask(np.empty(num_rows, np.uint8)) if out is None else _mask(out, num_rows)
    if type(bound) is ValuePredicate:  # by far the most frequent case
        _join_values(bound, columns[bound.leaf.index], into)
    else:
        _join(bound, columns, into)
    return into.out.view(np.bool_)


def evaluate_predicate(predicate: ValuePredicate | BloomPredicate, column: ColumnVector) -> np.ndarray:
    """Return a bool array: which values, rows of a column or entries of a dictionary, match; nulls do not."""
    into = RowMask(np.empty(count_values(predicate, column), np.uint8))
    _join_values(predicate, column, into)
    return into.out.view(np.bool_)


def count_values(predicate: ValuePredicate | BloomPredicate, column: ColumnVector) -> int:
    """Return the number of values of a column."""
    if column.codes is not None:
        return len(column.codes)
    if column.offsets is not None:
        return len(column.offsets) - (not column.are_prefixed)
    if column.runs is not None:
        return int(np.add.reduce(column.runs[1::2]))
    if predicate.leaf.physical == FIXED_LEN_BYTE_ARRAY and column.values.dtype == np.uint8:
        return len(column.values) // predicate.domain.width
    return len(column.values)


def _mask(out: np.ndarray, count: int) -> RowMask:
    if out.shape != (count,) or out.dtype.itemsize != 1 or not out.flags.c_contiguous:
        raise ValueError(
            f"out must be a contiguous bool or uint8 array of {count} {agree_noun(count, 'row')}, not "
            f"{out.dtype} of shape {out.shape}"
        )
    return RowMask(out.view(np.uint8))


def _join(bound: Expression, columns: Mapping[int, ColumnVector], mask: RowMask) -> None:
    if isinstance(bound, Constant):
        mask.combine_constant(bound.value)
    elif isinstance(bound, (And, Or)):
        _join_parts(bound, columns, mask)
    elif isinstance(bound, NullPredicate):
        _join_nulls(bound, columns[bound.leaf.index], mask)
    elif isinstance(bound, ContainsPredicate):
        _join_lists(bound, columns[bound.leaf.index], mask)
    elif isinstance(bound, ComparisonPredicate):
        match_columns(bound, columns[bound.leaf.index].join_runs(), columns[bound.other.index].join_runs(), mask)
    else:
        assert isinstance(bound, (ValuePredicate, BloomPredicate))
        _join_values(bound, columns[bound.leaf.index], mask)


def _join_parts(bound: And | Or, columns: Mapping[int, ColumnVector], mask: RowMask) -> None:
    """Combine the parts into the mask, cheap ones first, until the others cannot change a row."""
    own, is_settled = (AND, _none) if isinstance(bound, And) else (OR, np.all)
    if mask.mode not in (STORE, own):  # the mask holds other results: combine the parts apart
        apart = RowMask(np.empty(len(mask.out), np.uint8))
        _join_parts(bound, columns, apart)
        mask.combine(apart.out)
        return
    for part in sorted(bound.parts, key=_cost):
        if mask.mode == own and is_settled(mask.out.view(np.bool_)):
            break
        _join(part, columns, mask)
        mask = replace(mask, mode=own)


def _none(mask: np.ndarray) -> bool:
    return not mask.any()


def _cost(bound: Expression) -> int:
    """Return the relative cost of a predicate: numbers, bytes, patterns and Bloom filters, lists."""
    return max((_COSTS[type(test)](test) for test in bound_predicates(bound)), default=0)


_COSTS: dict[type, Any] = {
    NullPredicate: lambda test: 0,
    ValuePredicate: lambda test: 2 if test.pattern is not None else test.domain.kind in ("bytes", "decimal"),
    BloomPredicate: lambda test: 2,
    ContainsPredicate: lambda test: 3,
    ComparisonPredicate: lambda test: 2,
}


# --- one predicate ----------------------------------------------------------------------------------------------------


def _join_nulls(predicate: NullPredicate, column: ColumnVector, mask: RowMask) -> None:
    there = column.validity if predicate.is_leaf_level else column.levels.get(predicate.definition_level)
    if predicate.is_leaf_level and column.codes is not None:
        coded = column.codes >= 0
        there = coded if there is None else coded & (there != 0)
    mask.combine(_of(there, len(mask.out), "validity"), negated=not predicate.negated)


def _join_values(predicate: ValuePredicate | BloomPredicate, column: ColumnVector, mask: RowMask) -> None:
    """Combine a value predicate into the mask; of a dictionary-encoded column, entries are matched, then codes."""
    count = len(mask.out)
    if column.validity is not None or mask.validity is not None:
        mask = replace(mask, validity=_of(column.validity, count, "validity"))
    if column.codes is None:
        if count_values(predicate, column) < count:
            raise ValueError(
                f"column {predicate.leaf.name!r} has {count_values(predicate, column)} "
                f"{agree_noun(count_values(predicate, column), 'value')} for {count} {agree_noun(count, 'row')}"
            )
        match_values(predicate, column, mask)
        return
    codes = _of(column.codes, count, "codes")
    offsets = column.offsets
    if offsets is not None and 0 < count < len(offsets):  # of many strings only those that codes may stand for
        first = max(int(np.minimum.reduce(codes)), 0)
        offsets, codes = offsets[first : int(np.maximum.reduce(codes)) + 2], codes - first
    entries = evaluate_predicate(predicate, replace(column, offsets=offsets, codes=None, validity=None))
    predicate_kernels.match_codes(codes.astype(np.int32, copy=False), entries, len(entries), *mask.kernel_arguments)


def _join_lists(predicate: ContainsPredicate, column: ColumnVector, mask: RowMask) -> None:
    assert column.list_offsets is not None
    count = len(mask.out)
    offsets = _of(column.list_offsets, count + 1, "list offsets")
    elements = evaluate_predicate(predicate.predicate, column)
    if offsets[-1] > len(elements):
        raise ValueError(
            f"column {predicate.leaf.name!r} has {len(elements)} {agree_noun(len(elements), 'element')}, "
            f"but its lists end at {offsets[-1]}"
        )
    offsets = offsets if offsets.dtype.itemsize in (4, 8) else offsets.astype(np.int64)
    mask = replace(mask, validity=_of(column.levels.get(predicate.definition_level), count, "validity"))
    predicate_kernels.match_any_element(
        elements, offsets.view(np.uint8), offsets.dtype.itemsize, int(predicate.negated), *mask.kernel_arguments
    )


def _of(array: Any, count: int, what: str) -> Any:
    """Return the first `count` items as kernels take them (they check no lengths); ValueError if there are fewer."""
    if array is None:
        return None
    if len(array) < count:
        raise ValueError(f"the array of {what} has {len(array)} {agree_noun(len(array), 'item')}; {count} are needed")
    return as_mask(array[:count]) if what == "validity" else np.ascontiguousarray(array[:count])
