"""What is wrong with a file: one `Deviation` each, gathered in `Findings`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .checks import CHECKS, ERROR, WARNING
from .known import check_of

__all__ = ["ERROR", "WARNING", "Deviation", "Findings", "Place"]

_MOST_OF_A_CHECK = 1000  # a hostile file deviates as often as it likes


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing in which a file differs from what the specification says.

    Attributes
    ----------
    severity : str
        ``"error"``: the specification is broken, or what is said of the data is wrong. ``"warning"``: legal but
        suspicious, a known habit of old writers, or something that could not be checked.
    check : str
        Which check found it: a key of `numparq.verifying.CHECKS`.
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


class Place(NamedTuple):
    """Where something is: as in `Deviation`."""

    row_group: int | None = None
    column: str | None = None
    page: int | None = None


NOWHERE = Place()


@dataclass
class Findings:
    """The deviations found so far, and what was looked at.

    Attributes
    ----------
    deviations : list of Deviation
        In the order in which they were found.
    left_out : int
        How many more there are of checks that found a thousand already.
    looked_at : Counter
        How many pages, bytes and the like were checked.
    notes : list of str
        What else there is to say: of a file that was cut off, what is left of it.
    created_by : str
        Who wrote the file, which tells whether faults are those that it is known for.
    """

    deviations: list[Deviation] = field(default_factory=list)
    left_out: int = 0
    looked_at: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    created_by: str = ""
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, check: str, message: str, place: Place = NOWHERE) -> None:
        """Note a deviation.

        Parameters
        ----------
        check : str
            A key of `CHECKS`, which has its severity. Of those that are known of some writers (`KNOWN`), others fail
            the one that is an error.
        message : str
            What is wrong.
        place : Place
            Where.
        """
        check, message = check_of(check, message, self.created_by)
        self._counts[check] += 1
        if self._counts[check] > _MOST_OF_A_CHECK:
            self.left_out += 1
            return
        self.deviations.append(Deviation(CHECKS[check].severity, check, message, *place))

    def add_all(self, noted: Iterable[tuple[str, str]], place: Place = NOWHERE) -> None:
        """Note several deviations of one place: checks and messages."""
        for check, message in noted:
            self.add(check, message, place)

    def count(self, severity: str) -> int:
        """Count the deviations of a severity, those left out too."""
        return sum(number for check, number in self._counts.items() if CHECKS[check].severity == severity)
