"""Rows on their way into the files of their partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...shred import TakenApart
from ...threads import Crew
from .frames import Stretch
from .parts import Part, Written

__all__ = ["Spread"]

_MOST_OPEN = 128  # files that stay open between frames


class Spread:
    """The files of all partitions, some of them open.

    Parameters
    ----------
    part_of : callable
        Makes the Part of a folder of the dataset, which is empty where there are no partitions.
    folder_of : callable
        Names the folder of a partition by its values.
    crew : Crew
        The threads that write, a partition each.
    """

    def __init__(self, part_of: Callable[[str], Part], folder_of: Callable[[Sequence[str | None]], str],
                 crew: Crew) -> None:  # fmt: skip
        self._part_of, self._folder_of, self._crew = part_of, folder_of, crew
        self._parts: dict[Any, Part] = {}

    def write(self, stretches: list[Stretch]) -> None:
        """Write rows of several partitions, side by side: those with most rows first."""
        jobs: list[tuple[int, Callable[[], None]]] = []
        open_now = sum(part.is_open for part in self._parts.values())
        for stretch in stretches:
            part = self._part(self._folder_of(stretch.values) if stretch.folder is None else stretch.folder)
            stays_open = part.is_open or open_now < _MOST_OPEN
            open_now += stays_open and not part.is_open
            jobs.append((stretch.taken.num_rows, partial(_write, part, stretch.taken, stays_open)))
        jobs.sort(key=lambda job: -job[0])
        self._crew.run([job for _, job in jobs])

    def _part(self, folder: str) -> Part:
        if folder not in self._parts:
            self._parts[folder] = self._part_of(folder)
        return self._parts[folder]

    def close(self) -> None:
        """Complete all files."""
        self._crew.run([part.close for part in self._parts.values() if part.is_open])

    @property
    def written(self) -> list[Written]:
        """The files that are complete."""
        return [written for part in self._parts.values() for written in part.written]

    @property
    def open_bytes(self) -> int:
        """Bytes that the open files have so far."""
        return sum(part.open_bytes for part in self._parts.values())

    def abort(self) -> None:
        """Drop the files that are open."""
        for part in self._parts.values():
            part.abort()


def _write(part: Part, taken: TakenApart, stays_open: bool) -> None:
    part.write(taken)
    if not stays_open:
        part.close()
