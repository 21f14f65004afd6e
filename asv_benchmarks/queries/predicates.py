"""Predicates, written once, as expressions of numparq, pyarrow and polars, as a pandas mask, and as SQL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq


@dataclass(frozen=True)
class At:
    """A literal from the file: the column's value at a share of its rows, plus an offset where there is one."""

    share: float
    plus: int = 0

    def of(self, path: Path, column: str) -> Any:
        """Return the literal for a file."""
        with pq.ParquetFile(path) as file:
            row = int(self.share * file.metadata.num_rows)
            group = 0
            while row >= file.metadata.row_group(group).num_rows:
                row -= file.metadata.row_group(group).num_rows
                group += 1
            value = file.read_row_group(group, columns=[column])[column][row].as_py()
        return value + self.plus if self.plus else value


@dataclass(frozen=True)
class Among:
    """A list of literals from the file: the column's values in `count` rows, half of all at most, in no order."""

    count: int

    def of(self, path: Path, column: str) -> list[Any]:
        """Return the literals for a file."""
        values = pq.read_table(path, columns=[column])[column]
        rows = np.random.default_rng(0).permutation(len(values))[: min(self.count, len(values) // 2)]
        listed: list[Any] = values.take(rows).to_pylist()
        return listed


@dataclass(frozen=True)
class Term:
    """A comparison of a column with a literal; conditions are tuples of terms that all have to hold.

    Attributes
    ----------
    column : str
        Its name.
    operator : {"==", ">=", "<", "in", "startswith"}
        How it is compared.
    value : object
        The literal: a number, a string, a list of such, an `At` or an `Among`.
    """

    column: str
    operator: str
    value: Any

    def on(self, path: Path) -> Term:
        """Return the term with its literal resolved for the file at `path`."""
        is_of_file = isinstance(self.value, (At, Among))
        return replace(self, value=self.value.of(path, self.column)) if is_of_file else self


Way = Callable[[Any, Any], Any]
_COMPARED: Mapping[str, Way] = {"==": operator.eq, ">=": operator.ge, "<": operator.lt}


def _expression(terms: Sequence[Term], column: Callable[[str], Any], is_in: Way, starts_with: Way) -> Any:
    """Build an expression from a library's columns; None without terms."""
    ways = {**_COMPARED, "in": is_in, "startswith": starts_with}
    parts = [ways[term.operator](column(term.column), term.value) for term in terms]
    return reduce(operator.and_, parts) if parts else None


def for_numparq(terms: Sequence[Term]) -> Any:
    """Return the predicate for numparq's ``filters=``."""
    import numparq

    return _expression(
        terms, numparq.col, lambda column, values: column.isin(values), lambda column, text: column.startswith(text)
    )


def for_pyarrow(terms: Sequence[Term]) -> Any:
    """Return the predicate for ``filters=`` of pandas with pyarrow and ``filter=`` of a dataset."""
    import pyarrow.compute as pc

    return _expression(terms, pc.field, lambda column, values: column.isin(values), pc.starts_with)


def for_polars(terms: Sequence[Term]) -> Any:
    """Return the predicate for polars' ``filter``."""
    import polars as pl

    return _expression(
        terms, pl.col, lambda column, values: column.is_in(values), lambda column, text: column.str.starts_with(text)
    )


def mask_of(frame: pd.DataFrame, terms: Sequence[Term]) -> pd.Series:
    """Return the mask of a frame."""
    return _expression(
        terms,
        frame.__getitem__,
        lambda column, values: column.isin(values),
        lambda column, text: column.str.startswith(text),
    )


_SQL = {
    "==": "{} = {}",
    ">=": "{} >= {}",
    "<": "{} < {}",
    "in": "{} IN ({})",
    "startswith": "starts_with({}, {})",
}


def quoted(name: str) -> str:
    """Return a column's name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_literal(one) for one in value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def for_sql(terms: Sequence[Term]) -> str:
    """Return a WHERE clause; empty without terms."""
    parts = [_SQL[term.operator].format(quoted(term.column), _literal(term.value)) for term in terms]
    return " WHERE " + " AND ".join(parts) if parts else ""
