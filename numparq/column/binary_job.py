"""Jobs of column chunks of BYTE_ARRAY values, decoded into pieces: offsets and bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..kernels.tables import C_NULL_COUNT, C_ROW_START, C_ROW_STOP
from .binary import all_indices, decode_binary
from .buffer import BinaryPiece
from .job import Job
from .pages import Pages
from .parts import trimmed

__all__ = ["BinaryJob"]


@dataclass(eq=False, repr=False)
class BinaryJob(Job):
    """One chunk of BYTE_ARRAY values, decoded into pieces.

    Parameters
    ----------
    utf8 : bool
        Whether the values must be valid UTF-8.
    size_hint : int
        Bytes that they may take together; only a guess.
    """

    utf8: bool = field(kw_only=True)
    size_hint: int = field(kw_only=True)

    def __call__(self) -> None:
        """Decode the chunk into pieces."""
        dictionary: BinaryPiece | None = None
        rows = int(self.chunks[0, C_ROW_STOP] - self.chunks[0, C_ROW_START])
        for pages in self.windows():
            dictionary = self.binary_dictionary(pages, self.utf8) or dictionary
            self._decode(pages, dictionary, rows)

    def _decode(self, pages: Pages, dictionary: BinaryPiece | None, rows: int) -> None:
        made: dict[int, BinaryPiece] = {}

        def work(number: int, part: Pages) -> None:
            chunk = part.chunks[0]
            hint = self.size_hint * max(int(chunk[C_ROW_STOP] - chunk[C_ROW_START]), 0) // max(rows, 1)
            hint += hint // 16  # memory not touched costs nothing, a buffer that has to grow a copy
            with self.placing(part):
                made[number] = decode_binary(part, dictionary, hint, self.context.scratch)
            if self.utf8 and not all_indices(part):  # the strings of a dictionary are checked already
                self.check_utf8(made[number], part)

        narrowed = trimmed(pages)
        self.in_parts(narrowed, work)
        self.chunks[0, C_NULL_COUNT] += narrowed.chunks[0, C_NULL_COUNT]
        self.pieces.extend(made[number] for number in sorted(made))
