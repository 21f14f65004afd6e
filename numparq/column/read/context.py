"""Context of one read: source, threads, scratch buffers, checks of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.scratch import ThreadScratch
from numparq.format.module_reader import ModuleReader
from numparq.kernels import kernels
from numparq.kernels.enums import BIT_PACKED
from numparq.kernels.tables import P_DEFINITION_ENCODING, P_REPETITION_ENCODING
from numparq.util.progress import ProgressShare
from numparq.util.worker_pool import WorkerPool

from .page_walk import PageWalk
from .pages import PageFailure, Pages

if TYPE_CHECKING:
    from numparq.format.open_file import OpenFile

__all__ = ["ReadContext"]


@dataclass(eq=False, repr=False)
class ReadContext:
    """What all jobs of one read share.

    Parameters
    ----------
    reader : ModuleReader
        Reader of the file.
    column_names : list of str
        The columns read, for messages.
    pool : WorkerPool
        The threads.
    verify_crc : bool
        Whether pages with a CRC are held against it.
    local : ThreadScratch
        The buffers of each thread.
    bit_packed : int
        How this writer's levels in the encoding BIT_PACKED lie, as `writers.Faults` has it.
    progress : ProgressShare or None
        Counts the bytes decoded.
    file : OpenFile or None
        The file whose entry of the cache keeps dictionaries; None: nothing is kept.
    """

    reader: ModuleReader
    column_names: list[str]
    pool: WorkerPool
    verify_crc: bool
    local: ThreadScratch = field(default_factory=ThreadScratch)
    bit_packed: int = BIT_PACKED
    progress: ProgressShare | None = None
    file: OpenFile | None = None

    def walk_pages(self, chunks: np.ndarray, row_groups: Sequence[int]) -> PageWalk:
        """Return the walk over the pages of column chunks."""
        return PageWalk(self.reader, chunks, row_groups)

    def check_pages(self, row_groups: Sequence[int], columns: Sequence[int], pages: Pages) -> None:
        """Check pages before they are decoded; PageFailure.

        `row_groups` and `columns` are those of the rows of the chunk table.
        """
        if self.bit_packed != BIT_PACKED:
            for column in (P_DEFINITION_ENCODING, P_REPETITION_ENCODING):
                encodings = pages.pages[:, column]
                encodings[encodings == BIT_PACKED] = self.bit_packed
        if self.verify_crc:
            state = np.zeros(1, np.int64)
            status = kernels.check_page_crcs(pages.pages.reshape(-1), 0, len(pages.pages), pages.raw, state)
            if status < 0:
                raise PageFailure(int(state[0]), status)

    def close(self) -> None:
        """End the read: the crew is done."""
        self.local.close()
