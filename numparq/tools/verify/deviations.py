"""Deviations from the specification, their locations, and the findings that collect them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from numparq.format.writer_quirks import resolve_check

from .checks import CHECKS

__all__ = ["Deviation", "Findings", "Location"]

_MAX_DEVIATIONS_PER_CHECK = 1000  # a hostile file deviates as often as it likes


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing in which a file differs from what the specification says.

    Attributes
    ----------
    severity : str
        ``"error"``: the specification is broken, or what is said of the data is wrong. ``"warning"``: legal but
        suspicious, a known habit of old writers, or something that could not be checked.
    check : str
        Which check found it: a key of `numparq.tools.verify.checks.CHECKS`.
    message : str
        What is wrong, in words.
    row_group, column, page : int, str, int or None
        Where; pages are counted within their column chunk, dictionary pages among them.
    """

    severity: str
    check: str
    message: str
    row_group: int | None = None
    column: str | None = None
    page: int | None = None

    @property
    def place(self) -> str:
        """Where it is, in words; empty for what concerns the whole file."""
        parts = []
        if self.row_group is not None:
            parts.append(f"row group {self.row_group}")
        if self.column is not None:
            parts.append(f"column {self.column!r}")
        if self.page is not None:
            parts.append(f"page {self.page}")
        return ", ".join(parts)

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{self.severity}: {place}{self.message} [{self.check}]"


class Location(NamedTuple):
    """Where something is: as in `Deviation`."""

    row_group: int | None = None
    column: str | None = None
    page: int | None = None


WHOLE_FILE = Location()


@dataclass
class Findings:
    """The deviations found so far, and what was looked at.

    Attributes
    ----------
    deviations : list of Deviation
        In the order in which they were found.
    num_omitted : int
        How many more there are of checks that found a thousand already.
    checked_counts : Counter
        How many pages, bytes and the like were checked.
    notes : list of str
        What else there is to say: of a file that was cut off, what is left of it.
    created_by : str
        Who wrote the file, which tells whether faults are those that it is known for.
    """

    deviations: list[Deviation] = field(default_factory=list)
    num_omitted: int = 0
    checked_counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    created_by: str = ""
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, check: str, message: str, location: Location = WHOLE_FILE) -> None:
        """Note a deviation.

        Parameters
        ----------
        check : str
            A key of `CHECKS`, which has its severity. Of those that are known of some writers (`TOLERATED_DEFECTS`),
            others fail
            the one that is an error.
        message : str
            What is wrong.
        location : Location
            Where.
        """
        check, message = resolve_check(check, message, self.created_by)
        self._counts[check] += 1
        if self._counts[check] > _MAX_DEVIATIONS_PER_CHECK:
            self.num_omitted += 1
            return
        self.deviations.append(Deviation(CHECKS[check].severity, check, message, *location))

    def add_all(self, noted: Iterable[tuple[str, str]], location: Location = WHOLE_FILE) -> None:
        """Note several deviations of one place: checks and messages."""
        for check, message in noted:
            self.add(check, message, location)

    def count(self, severity: str) -> int:
        """Count the deviations of a severity, those left out too."""
        return sum(number for check, number in self._counts.items() if CHECKS[check].severity == severity)
