"""A filter against the rows of a store: which rows say that their file may match, and which indexes say no."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from numparq.errors import ParquetError
from numparq.expr.bound import ComparisonPredicate
from numparq.expr.expression import And, ColumnName, ColumnPredicate, Constant, Expression, Not, Or, OtherColumn
from numparq.expr.sort_keys import comparable_kinds
from numparq.plan.row_ranges import RowRanges
from numparq.prune.match import columns_may_match

from .indexes.index import CellReader, Cells, unwrap_test
from .indexes.minmax import read_bounds
from .indexes.registry import cell_reader
from .metadata import StoreIndex
from .part import PartRows

_SWAPPED = {">": "<", ">=": "<="}
_MIN_VERSION = 1  # cells of version 0 are serialized classes
NO_REASON = -1

# Returns the mask of a predicate on partition columns, or None if it is on others.
PartitionAnswers = Callable[[Expression], np.ndarray | None]


@dataclass(frozen=True)
class _Step:
    """One conjunct, or all predicates of a conjunction on one column, against one index."""

    cost: int
    reason: str
    may_match: Callable[[RowRanges | None], np.ndarray]


class Clause:
    """A filter against the rows of one row group.

    Parameters
    ----------
    expression : Expression
        The filter, in normal form.
    partition_answers : callable
        What answers predicates on partition columns, which hide indexes of the same name.

    Attributes
    ----------
    reasons : list of str
        What ruled rows out, in order of first use.
    """

    def __init__(self, expression: Expression, reasons: list[str]) -> None:
        self._expression = expression
        self.reasons = reasons

    def evaluate(self, rows: PartRows, partition_answers: PartitionAnswers) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows may match, and for the others the ordinal of the reason (`NO_REASON`: none)."""
        may, why = np.ones(rows.num_rows, np.bool_), np.full(rows.num_rows, NO_REASON, np.int32)
        evaluation = _Evaluation(rows, partition_answers)
        for step in evaluation.steps(self._expression):
            if not may.any():
                break
            chosen = RowRanges.from_mask(may) if step.cost and may.sum() * 2 < rows.num_rows else None
            answer = step.may_match(chosen)
            if chosen is not None:
                whole = np.ones(rows.num_rows, np.bool_)
                whole[chosen.indices()] = answer
                answer = whole
            gone = may & ~answer
            if gone.any():
                why[gone] = self._reason(step.reason)
                may &= answer
        return may, why

    def _reason(self, text: str) -> int:
        if text not in self.reasons:
            self.reasons.append(text)
        return self.reasons.index(text)


class _Evaluation:
    """Evaluation of one filter against one row group."""

    def __init__(self, rows: PartRows, partition_answers: PartitionAnswers) -> None:
        self._rows = rows
        self._partition_answers = partition_answers
        self._indexes = indexes_by_column(rows)

    def steps(self, expression: Expression) -> list[_Step]:
        """Return the steps of a conjunction, cheap ones first: a row may match if all steps say so."""
        parts = expression.parts if isinstance(expression, And) else (expression,)
        steps: list[_Step] = []
        of_column: dict[str, list[Expression]] = {}
        for part in parts:
            test = part.part if isinstance(part, Not) else part
            if isinstance(part, (And, Or)):
                steps += self._combined(part)
            elif isinstance(part, Constant):
                steps += [] if part.value else [_Step(0, "the filter is false", self._no)]
            elif isinstance(test, ColumnPredicate):
                answer = self._partition_answers(part)
                if answer is not None:
                    steps.append(_Step(0, "partition columns", partial(_pick, answer)))
                elif isinstance(test.operand, OtherColumn):
                    steps += self._two_columns(part)
                else:
                    of_column.setdefault(column_key(test.name), []).append(part)
        for column, tests in of_column.items():
            steps += [self._of_index(index, tests) for index in self._indexes.get(column, ())]
        return sorted(steps, key=lambda step: step.cost)

    def _no(self, chosen: RowRanges | None) -> np.ndarray:
        return np.zeros(self._rows.num_rows if chosen is None else chosen.count, np.bool_)

    def _of_index(self, index: StoreIndex, tests: Sequence[Expression]) -> _Step:
        reader = cell_reader(index.name)
        assert reader is not None

        def may_match(chosen: RowRanges | None) -> np.ndarray:
            return answer_tests(reader, Cells(index, self._rows, chosen), tests)

        return _Step(reader.cost, str(index), may_match)

    def _combined(self, part: And | Or) -> list[_Step]:
        """Return the step of a nested expression: of an OR, all sides have to rule a row out."""
        if isinstance(part, And):
            return self.steps(part)
        sides = [self.steps(side) for side in part.parts]
        if not all(sides):
            return []  # a side without any index may always match

        def may_match(chosen: RowRanges | None) -> np.ndarray:
            may = self._no(chosen)
            for steps in sides:
                both = ~self._no(chosen)
                for step in steps:
                    both &= step.may_match(chosen)
                may |= both
            return may

        every = [step for steps in sides for step in steps]
        reason = " or ".join(dict.fromkeys(step.reason for step in every))
        return [_Step(max(step.cost for step in every), reason, may_match)]

    def _two_columns(self, part: Expression) -> list[_Step]:
        """Return the step of a comparison of two columns: the bounds of both decide."""
        test, negated = unwrap_test(part)
        names = reversed(test.names) if test.op in _SWAPPED else test.names
        indexes = [self._bounds_index(name) for name in names]
        first, second = indexes
        if first is None or second is None:
            return []

        def may_match(chosen: RowRanges | None) -> np.ndarray:
            return self._compare(first, second, _SWAPPED.get(test.op, test.op), negated, chosen)

        return [_Step(0, f"{first} and {second}", may_match)]

    def _bounds_index(self, name: ColumnName) -> StoreIndex | None:
        for index in self._indexes.get(column_key(name), ()):
            if index.name == "minmax":
                return index
        return None

    def _compare(
        self, first: StoreIndex, second: StoreIndex, op: str, negated: bool, chosen: RowRanges | None
    ) -> np.ndarray:
        answer = ~self._no(chosen)
        try:
            one, other = (read_bounds(Cells(index, self._rows, chosen)) for index in (first, second))
        except ParquetError:
            return answer
        if one is None or other is None or comparable_kinds(one.domain).isdisjoint(comparable_kinds(other.domain)):
            return answer
        predicate = ComparisonPredicate(one.leaf, one.domain, op, other.leaf, other.domain, negated)
        answer = columns_may_match(predicate, one.statistics, other.statistics)
        answer |= one.says_nothing | other.says_nothing
        return answer


def _pick(mask: np.ndarray, chosen: RowRanges | None) -> np.ndarray:
    return mask if chosen is None else mask[chosen.indices()]


def answer_tests(reader: CellReader, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
    """Return what an index says; all may match if its cells cannot be read, or a literal not be compared with them."""
    tests = [test for test in tests if unwrap_test(test)[0].op != "contains"]
    try:
        return reader.may_match(cells, tests)
    except ParquetError:
        return np.ones(cells.count, np.bool_)


def indexes_by_column(rows: PartRows) -> Mapping[str, list[StoreIndex]]:
    """Return the indexes of one column that can be used, by its name in lower case."""
    indexes: dict[str, list[StoreIndex]] = {}
    schema = rows.part.schema
    for index in schema.indexes if schema.version >= _MIN_VERSION else ():
        if len(index.columns) == 1 and cell_reader(index.name) is not None:
            indexes.setdefault(index.columns[0].lower(), []).append(index)
    return indexes


def column_key(name: ColumnName) -> str:
    """Return a column's name as indexes have it: in lower case, a path with dots."""
    return (name if isinstance(name, str) else ".".join(name)).lower()


def filter_names(expression: Expression) -> Iterator[ColumnName]:
    """Yield the names of the columns in a filter."""
    if isinstance(expression, (And, Or)):
        for part in expression.parts:
            yield from filter_names(part)
    elif isinstance(expression, Not):
        yield from filter_names(expression.part)
    elif isinstance(expression, ColumnPredicate):
        yield from expression.names
