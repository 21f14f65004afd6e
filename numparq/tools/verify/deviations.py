"""Deviations from the specification, their locations, and the findings that collect them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from numparq.format.writer_quirks import resolve_check

from .checks import CHECKS, IGNORED_BY_READERS

_MAX_DEVIATIONS_PER_CHECK = 1000  # a hostile file could have any number


@dataclass(frozen=True, slots=True)
class Deviation:
    """Deviation of a file from the specification.

    Attributes
    ----------
    severity : {"error", "warning"}
        ``"error"``: the file breaks the specification, or its metadata contradicts its data. ``"warning"``: legal but
        suspicious, a known quirk of a writer, or something that could not be checked.
    check : str
        Check that found it, a key of `numparq.tools.verify.CHECKS`.
    message : str
        Description in words.
    row_group : int or None
        Ordinal of the row group.
    column : str or None
        Dotted path of the leaf column.
    page : int or None
        Ordinal of the page within its column chunk, dictionary page included.
    """

    severity: str
    check: str
    message: str
    row_group: int | None = None
    column: str | None = None
    page: int | None = None

    @property
    def location(self) -> str:
        """Row group, column and page in words; empty if the whole file is meant."""
        parts = []
        if self.row_group is not None:
            parts.append(f"row group {self.row_group}")
        if self.column is not None:
            parts.append(f"column {self.column!r}")
        if self.page is not None:
            parts.append(f"page {self.page}")
        return ", ".join(parts)

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{self.severity}: {place}{self.message} [{self.check}]"


class Location(NamedTuple):
    """Location of a deviation, as in `Deviation`."""

    row_group: int | None = None
    column: str | None = None
    page: int | None = None


WHOLE_FILE = Location()


@dataclass
class Findings:
    """Deviations found so far, and counts of what was checked.

    Attributes
    ----------
    num_omitted : int
        Deviations beyond the first thousand of a check.
    checked_counts : Counter
        Number of pages, checksums and so on that were checked.
    notes : list of str
        Other lines for the report, such as what remains of a truncated file.
    created_by : str
        Writer of the file; decides whether a defect is one of its known quirks.
    encrypted_columns : set of str
        Leaf columns whose values no message may quote.
    """

    deviations: list[Deviation] = field(default_factory=list)
    num_omitted: int = 0
    checked_counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    created_by: str = ""
    encrypted_columns: set[str] = field(default_factory=set)
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, check: str, message: str, location: Location = WHOLE_FILE) -> None:
        """Add a deviation; the check of a known writer quirk becomes an error for any other writer."""
        check, message = resolve_check(check, message, self.created_by)
        if check in IGNORED_BY_READERS:
            message += f"; the writer is {self.created_by or 'unknown'}, and reading is not affected"
        self._counts[check] += 1
        if self._counts[check] > _MAX_DEVIATIONS_PER_CHECK:
            self.num_omitted += 1
            return
        self.deviations.append(Deviation(CHECKS[check].severity, check, message, *location))

    def may_quote(self, location: Location) -> bool:
        """Whether a message about a location may quote values."""
        return location.column not in self.encrypted_columns

    def add_all(self, noted: Iterable[tuple[str, str]], location: Location = WHOLE_FILE) -> None:
        """Add several deviations, pairs of check and message, at one location."""
        for check, message in noted:
            self.add(check, message, location)

    def count(self, severity: str) -> int:
        """Count the deviations of a severity, including omitted ones."""
        return sum(number for check, number in self._counts.items() if CHECKS[check].severity == severity)
