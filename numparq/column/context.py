"""What all jobs of one read share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..io.source import Source
from ..kernels.tables import BIT_PACKED, P_DEFINITION_ENCODING
from ..threads import Crew
from .pages import Pages, PageWalk, verify_crcs
from .scratch import Scratch, ThreadScratch

__all__ = ["Context"]

GAP_BYTES = 32 << 10


@dataclass(eq=False, repr=False)
class Context:
    """What all jobs of one read share.

    Parameters
    ----------
    source : Source
        The file.
    names : list of str
        The columns read, for messages.
    crew : Crew
        The threads.
    verify_crc : bool
        Whether pages with a CRC are held against it.
    local : ThreadScratch
        The buffers of each thread.
    bit_packed : int
        How this writer's levels in the encoding BIT_PACKED lie, as `writers.Faults` has it.
    gap : int
        Chunks are read together over at most so many bytes that nobody wants. Of a remote file no more than were
        fetched along: else all of it would be fetched once more.
    """

    source: Source
    names: list[str]
    crew: Crew
    verify_crc: bool
    local: ThreadScratch = field(default_factory=ThreadScratch)
    bit_packed: int = BIT_PACKED
    gap: int = GAP_BYTES

    @property
    def scratch(self) -> Scratch:
        """The buffers of the calling thread."""
        return self.local.get()

    def walk(self, chunks: np.ndarray) -> PageWalk:
        """Give what walks over the pages of column chunks."""
        return PageWalk(self.source, chunks)

    def check(self, row_group: int, columns: list[int], pages: Pages) -> None:
        """Check pages before they are decoded; PageFailure. `columns` are those of the rows of the chunk table."""
        if self.bit_packed != BIT_PACKED:
            encodings = pages.pages[:, P_DEFINITION_ENCODING]
            encodings[encodings == BIT_PACKED] = self.bit_packed
        if self.verify_crc:
            verify_crcs(pages)

    def close(self) -> None:
        """End the read: the crew is done."""
        self.local.close()
