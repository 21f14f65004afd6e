"""Random cases (table, file, predicate, read) drawn by seed, checked, and minimized on failure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numparq import ParquetFile
from support.files.forged_metadata import forge, random_forgeries, spoils_null_counts

from .literals import pick
from .predicates import AllOf, AnyOf
from .random_predicates import random_predicate, random_runtime_filter
from .reads import assert_frames_equal, expected_frame, filtered_frame, random_read, resolve_row_groups, rows_selected
from .tables import RandomTable, TableColumn, filter_targets, num_rows, random_table
from .writers import has_statistics, random_options, write_table


@dataclass(frozen=True)
class FilterCase:
    """A stored table, its write options, a predicate and a read."""

    table: RandomTable = field(repr=False)
    writer: str
    options: dict[str, Any]
    forgeries: tuple[str, ...]
    predicate: Any
    read: dict[str, Any]

    def data(self) -> bytes:
        return forge(write_table(self.table, self.writer, self.options), self.forgeries)

    def check(self, data: bytes | None = None) -> None:
        """Compare the filtered read with a full read filtered in Python."""
        data = self.data() if data is None else data
        with ParquetFile(data) as file:
            group_rows = [group.num_rows for group in file.metadata.row_groups]
        read = resolve_row_groups(self.read, group_rows)
        asked = {target.name: target for target in filter_targets(self.table)}
        predicate = AllOf((self.predicate, *self.read.get("runtime", ())))
        worths = {name: asked[name].worths(self.table) for name in predicate.names}
        truths = predicate.truths(worths)
        expected = expected_frame(data, read, rows_selected(read, group_rows), truths)
        got = filtered_frame(data, read, self.predicate.expression())
        assert_frames_equal(got, expected, loose=self.is_loose)

    @property
    def is_loose(self) -> bool:
        """Whether dtypes may follow from the rows read instead of from the file."""
        if not has_statistics(self.writer, self.options) or spoils_null_counts(self.forgeries):
            return True
        if "row_range" in self.read:  # of a part of a row group nothing is said
            return True
        return any(map(_follows_from_values, self.table.values()))

    def __str__(self) -> str:
        columns = "\n".join(
            f"    {name!r}: {column.kind}, nullable={column.nullable}, {_shown(column.values)}"
            for name, column in self.table.items()
        )
        return (
            f"{num_rows(self.table)} rows by {self.writer} {self.options}, forged: {self.forgeries}\n{columns}\n"
            f"  filters={self.predicate.expression()!r}\n  read: {self.read}"
        )


def _shown(values: Any) -> str:
    return repr(list(values)) if len(values) <= 12 else f"{list(values[:12])!r} ... of {len(values)}"


def _follows_from_values(column: TableColumn) -> bool:
    """Whether a dtype depends on values: integers beyond float64 beside nulls, or sub-microsecond times."""
    values = [value for value in column.values if value is not None]
    if column.kind == "clockns":
        return any(value % 1000 for value in values)
    return (
        column.kind in ("int64", "uint64")
        and len(values) < len(column.values)
        and any(abs(value) > 2**53 for value in values)
    )


# --- by seed ----------------------------------------------------------------------------------------------------------


def random_cases(
    seed: int, writers: tuple[str, ...], asks: int = 6, forging: bool = False, forgeries: tuple[str, ...] = ()
) -> Iterator[FilterCase]:
    """Draw a stored table, and several predicates and reads of it."""
    rng = np.random.default_rng([seed, 5])
    writer = pick(rng, *writers)
    table = random_table(rng, writer)
    options = random_options(rng, table, writer)
    if forgeries and forgeries[0].startswith("parquet-cpp version"):
        options["data_page_version"] = "1.0"  # theirs of version 2 are to be read otherwise
    if forging:
        forgeries = random_forgeries(rng, options)
    for _ in range(asks):
        predicate, read = random_predicate(rng, table), random_read(rng, table)
        if rng.random() < 0.15:
            read["runtime"] = random_runtime_filter(rng, table)
        yield FilterCase(table, writer, options, forgeries, predicate, read)


def check_seed(seed: int, writers: tuple[str, ...], **drawn: Any) -> None:
    """Check the cases of a seed; report the smallest case that fails like the first failure."""
    data = None
    for number, case in enumerate(random_cases(seed, writers, **drawn)):
        try:
            data = case.data() if data is None else data
            case.check(data)
        except Exception as error:
            small = minimize(case)
            error.add_note(f"seed {seed}, case {number}\n{small}")
            raise


# --- smaller ones -----------------------------------------------------------------------------------------------------


def minimize(case: FilterCase, most: int = 300) -> FilterCase:
    """Shrink a case as long as it fails with any exception."""
    left = most
    found = True
    while found and left > 0:
        found = False
        for smaller in _smaller(case):
            left -= 1
            if _fails(smaller):
                case, found = smaller, True
                break
            if left <= 0:
                break
    return case


def _fails(case: FilterCase) -> bool:
    try:
        data = case.data()
    except Exception:
        return False
    try:
        case.check(data)
    except KeyError:  # something is gone that the predicate asks for
        return False
    except Exception:
        return True
    return False


def _smaller(case: FilterCase) -> Iterator[FilterCase]:
    for part in case.predicate.parts:
        yield replace(case, predicate=part)
    if len(case.predicate.parts) > 1 and isinstance(case.predicate, AllOf | AnyOf):
        for gone in range(len(case.predicate.parts)):
            parts = case.predicate.parts[:gone] + case.predicate.parts[gone + 1 :]
            yield replace(case, predicate=type(case.predicate)(parts))
    for name in case.read:
        yield replace(case, read={key: value for key, value in case.read.items() if key != name})
    for number in range(len(case.forgeries)):
        yield replace(case, forgeries=case.forgeries[:number] + case.forgeries[number + 1 :])
    for name in case.table:
        if len(case.table) > 1 and not _mentions(case, name):
            rest = {key: column for key, column in case.table.items() if key != name}
            yield replace(case, table=rest)
    rows = num_rows(case.table)
    for start, stop in ((0, rows // 2), (rows // 2, rows), (0, rows - 1), (1, rows)) if rows > 1 else ():
        yield replace(
            case,
            table={
                name: replace(column, values=list(column.values)[start:stop]) for name, column in case.table.items()
            },
        )
    for name in case.options:
        if name not in ("arrow_dtypes", "index"):
            yield replace(case, options={key: value for key, value in case.options.items() if key != name})


def _mentions(case: FilterCase, name: str) -> bool:
    """Whether options or the read name a column."""
    return any(
        name == item
        or (isinstance(item, tuple) and name in item)
        or (
            isinstance(item, (list, dict))
            and any(name == part or (isinstance(part, tuple) and name in part) for part in item)
        )
        for item in (*case.options.values(), *case.read.values())
    )
