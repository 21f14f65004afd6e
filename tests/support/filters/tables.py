"""Random tables: sorted, nearly sorted, in runs, constant, with ranges of nulls and NaNs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from .column_kinds import KINDS, ColumnKind
from .literals import pick
from .predicates import Name

Rng = np.random.Generator


@dataclass(frozen=True)
class TableColumn:
    """A column: its kind by name, its values for pyarrow with None for nulls, and whether it is nullable."""

    kind: str
    values: Sequence[Any]
    nullable: bool = True

    @property
    def about(self) -> ColumnKind:
        return KINDS[self.kind]

    def array(self) -> pa.Array:
        if pa.types.is_dictionary(self.about.arrow):
            return pa.array(self.values, self.about.arrow.value_type).dictionary_encode()
        return pa.array(self.values, self.about.arrow)


@dataclass(frozen=True)
class FilterTarget:
    """Something that can be asked: a column, or a field of structs.

    Parameters
    ----------
    name : str or tuple of str
        As numparq is told.
    column : str
        The column that it is in.
    steps : tuple of str
        The fields that lead to it.
    about : Kind
        What it is.
    """

    name: Name
    column: str
    steps: tuple[str, ...]
    about: ColumnKind

    def values(self, table: RandomTable) -> list[Any]:
        values = list(table[self.column].values)
        for step in self.steps:
            values = [None if value is None else value[step] for value in values]
        return values

    def worths(self, table: RandomTable) -> list[Any]:
        return [None if value is None else self.about.worth(value) for value in self.values(table)]


RandomTable = dict[str, TableColumn]


def num_rows(table: RandomTable) -> int:
    return len(next(iter(table.values())).values)


def arrow_table(table: RandomTable) -> pa.Table:
    arrays = [column.array() for column in table.values()]
    fields = [
        pa.field(name, array.type, column.nullable) for (name, column), array in zip(table.items(), arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def filter_targets(table: RandomTable) -> list[FilterTarget]:
    """Return everything in a table that predicates can use."""
    found = []

    def walk(column: str, steps: tuple[str, ...], about: ColumnKind) -> None:
        path = (column, *steps)
        found.append(FilterTarget(".".join(path) if len(path) != 2 else path, column, steps, about))
        for step, kind in about.fields.items():
            walk(column, (*steps, step), kind)

    for name, column in table.items():
        walk(name, (), column.about)
    return [replace(target, name=target.column) if not target.steps else target for target in found]


# --- random ones ------------------------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "sorted": lambda rng, rows: np.sort(rng.integers(0, max(rows, 1) * 2, rows)),
    "rising": lambda rng, rows: np.arange(rows),
    "falling": lambda rng, rows: np.arange(rows)[::-1] * 2,
    "nearly": lambda rng, rows: np.arange(rows) + rng.integers(-9, 10, rows).clip(-np.arange(rows), None),
    "random": lambda rng, rows: rng.integers(0, 2000, rows),
    "few": lambda rng, rows: rng.integers(0, 4, rows) * 3,
    "constant": lambda rng, rows: np.full(rows, 7),
    "runs": lambda rng, rows: np.repeat(rng.integers(0, 300, rows // 40 + 1), 40)[:rows],
    "saw": lambda rng, rows: np.arange(rows) % 97,
}


def _stretches(rng: Rng, rows: int, share: float) -> np.ndarray:
    length = pick(rng, 1, 1, 20, 200)
    return np.repeat(rng.random(rows // length + 1) < share, length)[:rows]


def random_column(rng: Rng, name: str, rows: int) -> TableColumn:
    about = KINDS[name]
    made: dict[int, Any] = {}
    numbers = pick(rng, *SHAPES.values())(rng, rows).tolist()
    values = [made[n] if n in made else made.setdefault(n, about.make(n)) for n in numbers]
    if about.edges and rng.random() < 0.4:
        for row in np.flatnonzero(rng.random(rows) < pick(rng, 0.002, 0.05, 0.5)).tolist():
            values[row] = pick(rng, *about.edges)
    if about.is_float and rng.random() < 0.4:
        for row in np.flatnonzero(_stretches(rng, rows, pick(rng, 0.05, 0.4, 1))).tolist():
            values[row] = type(values[row])(math.nan)
    share = pick(rng, 0, 0, 0.05, 0.5, 1) if name != "nothing" else 1
    if share:
        values = [
            None if null else value for value, null in zip(values, _stretches(rng, rows, share).tolist(), strict=True)
        ]
    return TableColumn(name, values, None in values or name == "nothing" or bool(rng.random() < 0.7))


def random_table(rng: Rng, writer: str, most_rows: int = 3000) -> RandomTable:
    """Draw columns named after their kinds; ``key`` and ``row.no`` serve as index."""
    rows = min(int(pick(rng, 0, 1, 50, 50, 200, 200, 700, 3000)), most_rows)
    names = [name for name, kind in KINDS.items() if writer in kind.writers]
    chosen = rng.choice(names, int(rng.integers(1, 6)), replace=False).tolist()
    table = {name: random_column(rng, name, rows) for name in chosen}
    if rng.random() < 0.4:
        table["row.no"] = TableColumn("int64", list(range(rows)), False)
    return table
