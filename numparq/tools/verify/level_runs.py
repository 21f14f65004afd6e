"""Long runs of equal levels, shortened before they are decoded: verification only counts them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

LONG_RUN = 1 << 16  # entries
_KEPT = 2  # entries of a long run: one after the run before it, and one after itself


class RemovedEntries(NamedTuple):
    """Equal entries that were removed from a page: their number and levels."""

    number: int
    definition: int
    repetition: int


@dataclass
class _Run:
    start: int  # ordinal of its first level
    end: int  # exclusive
    stored: bytes
    value: bytes = b""  # of an RLE run
    level: int | None = None  # None: bit-packed
    removed: int = 0

    def encoded(self) -> bytes:
        """Return the run without the removed levels."""
        is_shorter = self.removed and self.value
        return _uleb((self.end - self.start - self.removed) << 1) + self.value if is_shorter else self.stored


@dataclass
class LevelRuns:
    """Runs of an RLE / bit-packed section of levels; `rest` is what follows, or cannot be parsed."""

    runs: list[_Run] = field(default_factory=list)
    rest: bytes = b""

    @classmethod
    def parse(cls, section: bytes, count: int, width: int) -> LevelRuns:
        """Parse a section of `count` levels of `width` bits; without a width they are all 0."""
        if not width:
            return cls([_Run(0, count, b"", level=0)], section)
        found, position, done = cls(), 0, 0
        while done < count:
            header, at = _header(section, position)
            size = (header >> 1) * width if header & 1 else (width + 7) >> 3
            entries = (header >> 1) * (8 if header & 1 else 1)
            if not entries or at + size > len(section):
                break
            stored, value = section[position : at + size], section[at : at + size]
            if header & 1:
                found.runs.append(_Run(done, min(done + entries, count), stored))
            else:
                found.runs.append(_Run(done, done + entries, stored, value, int.from_bytes(value, "little")))
            position, done = at + size, done + entries
        found.rest = section[position:]
        return found

    def num_excess(self, count: int) -> int:
        """Return by how many levels the last run is longer than `count` levels; bit-packed ones are always padded."""
        last = self.runs[-1] if self.runs else None
        return 0 if last is None or last.level is None else max(last.end - count, 0)

    def encoded(self) -> bytes:
        """Return the section without the removed levels."""
        return b"".join(run.encoded() for run in self.runs) + self.rest


def shorten_runs(definition: LevelRuns, repetition: LevelRuns, most: int) -> list[RemovedEntries]:
    """Mark entries as removed where both sections have long runs; return what was removed, in order.

    Entries with a value, whose definition level is `most`, stay: the value takes more memory than its levels.
    """
    removed: list[RemovedEntries] = []
    mine, other = iter(definition.runs), iter(repetition.runs)
    one, two = next(mine, None), next(other, None)
    while one is not None and two is not None:
        count = min(one.end, two.end) - max(one.start, two.start) - _KEPT
        if one.level not in (None, most) and two.level is not None and count > LONG_RUN:
            one.removed += count
            two.removed += count
            removed.append(RemovedEntries(count, one.level, two.level))
        if one.end <= two.end:
            one = next(mine, None)
        else:
            two = next(other, None)
    return removed


def _header(section: bytes, position: int) -> tuple[int, int]:
    """Return a run's ULEB128 header and the position after it; 0 if it is cut off or too long."""
    header = 0
    for at in range(position, min(position + 5, len(section))):
        header |= (section[at] & 0x7F) << 7 * (at - position)
        if section[at] < 0x80:
            return header, at + 1
    return 0, position


def _uleb(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
