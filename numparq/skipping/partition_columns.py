"""Partition columns of a dataset as a store has them: one value for each file, under ``virtual_`` names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from numparq.errors import ParquetError
from numparq.expr.bind import domain_predicate
from numparq.expr.evaluate import evaluate_predicate
from numparq.expr.expression import And, Expression, Or
from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.normalize import all_of

from .clause import column_key, filter_names
from .indexes.cell_values import cell_values
from .indexes.index import unwrap_test
from .metadata import PARTITION_PREFIX
from .part import PartRows


class PartitionColumns:
    """Answers predicates by the partition columns of one row group of a store."""

    def __init__(self, rows: PartRows) -> None:
        self._rows = rows
        self._names = {name.lower(): name for name in rows.part.schema.partitions}

    def split(self, expression: Expression) -> tuple[np.ndarray, Expression]:
        """Return which rows are in the partitions of a filter, and the conjuncts that are not on partitions alone."""
        inside = np.ones(self._rows.num_rows, np.bool_)
        parts = list(expression.parts) if isinstance(expression, And) else [expression]
        rest = []
        for part in parts:
            names = list(filter_names(part))
            if names and all(column_key(name) in self._names for name in names):
                inside &= self._evaluate(part)
            else:
                rest.append(part)
        return inside, all_of(rest)

    def _evaluate(self, expression: Expression) -> np.ndarray:
        if isinstance(expression, (And, Or)):
            join = np.logical_and if isinstance(expression, And) else np.logical_or
            mask: np.ndarray = join.reduce([self._evaluate(part) for part in expression.parts])
            return mask
        answer = self.answer(expression)
        return np.ones(self._rows.num_rows, np.bool_) if answer is None else answer

    def answer(self, test: Expression) -> np.ndarray | None:
        """Return for which rows a predicate may hold; None if it is on another column."""
        predicate, negated = unwrap_test(test)
        keys = [column_key(name) for name in predicate.names]
        if not all(key in self._names for key in keys):
            return None
        every = np.ones(self._rows.num_rows, np.bool_)
        leaves = self._rows.part.leaves(PARTITION_PREFIX + self._names[keys[0]])
        if len(keys) > 1 or len(leaves) != 1 or leaves[0].is_nested:
            return every
        try:
            values = cell_values(leaves[0], self._rows.column(leaves[0]))
            if values.is_doubtful is not None:
                return every
            if predicate.op == "is null":
                is_there = ~_is_null(values.vector, self._rows.num_rows)
                return is_there if negated else ~is_there
            if predicate.op == "contains":
                return every
            bound = domain_predicate(predicate, values.leaf, values.domain, negated)
            if values.vector.codes is None:
                return evaluate_predicate(bound, values.vector)[: self._rows.num_rows]
            entries = evaluate_predicate(bound, replace(values.vector, codes=None, validity=None))
            codes = values.vector.codes
            return (codes >= 0) & entries[np.maximum(codes, 0)] if len(entries) else codes < -1
        except ParquetError:
            return every


def _is_null(vector: ColumnVector, count: int) -> np.ndarray:
    null = np.zeros(count, np.bool_)
    if vector.codes is not None:
        null |= vector.codes[:count] < 0
    if vector.validity is not None:
        null |= np.asarray(vector.validity[:count]) == 0
    return null
