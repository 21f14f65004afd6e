"""Context of one read: source, threads, scratch buffers, checks of pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.scratch import ThreadScratch
from numparq.format.module_reader import ModuleReader
from numparq.kernels.enums import BIT_PACKED
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.tables import P_DEFINITION_ENCODING, P_REPETITION_ENCODING
from numparq.util.progress import ProgressShare
from numparq.util.worker_pool import WorkerPool

from .page_decryption import open_pages
from .pages import PageFailure, Pages

if TYPE_CHECKING:
    from numparq.format.open_file import OpenFile


@dataclass(eq=False, repr=False)
class ReadContext:
    """Context of one read, shared by its tasks.

    Parameters
    ----------
    reader : ModuleReader
        Reader of the file.
    column_names : list of str
        The columns read, for messages.
    pool : WorkerPool
        The threads.
    verify_crc : bool
        Whether to verify page checksums.
    local : ThreadScratch
        The buffers of each thread.
    bit_packed : int
        Layout of levels in the encoding BIT_PACKED by this file's writer, as in `PageQuirks`.
    progress : ProgressShare or None
        Counts the bytes decoded.
    file : OpenFile or None
        The file whose entry of the cache keeps dictionaries; None: nothing is cached.
    header_check : callable or None
        Further check of page headers, with the arguments of `check_pages`.

    Attributes
    ----------
    doubts_indexes : bool
        Whether pages that an index locates could not be read: the index may be wrong, or the pages damaged.
    """

    reader: ModuleReader
    column_names: list[str]
    pool: WorkerPool
    verify_crc: bool
    local: ThreadScratch = field(default_factory=ThreadScratch)
    bit_packed: int = BIT_PACKED
    progress: ProgressShare | None = None
    file: OpenFile | None = None
    header_check: Callable[[Sequence[int], Sequence[int], Pages], None] | None = None
    doubts_indexes: bool = field(default=False, init=False)

    def check_pages(self, row_groups: Sequence[int], columns: Sequence[int], pages: Pages) -> None:
        """Check pages before they are decoded, and decrypt encrypted ones in place; raise PageFailure.

        `row_groups` and `columns` are those of the rows of the chunk table.
        """
        if self.header_check is not None:
            self.header_check(row_groups, columns, pages)
        if self.bit_packed != BIT_PACKED:
            for column in (P_DEFINITION_ENCODING, P_REPETITION_ENCODING):
                encodings = pages.pages[:, column]
                encodings[encodings == BIT_PACKED] = self.bit_packed
        if self.verify_crc:
            state = np.zeros(1, np.int64)
            status = kernels.check_page_crcs(pages.pages.reshape(-1), 0, len(pages.pages), pages.raw, state)
            if status < 0:
                raise PageFailure(int(state[0]), status)
        if self.reader.keys is not None:
            open_pages(self.reader.keys, pages)

    def close(self) -> None:
        """Return the threads' buffers."""
        self.local.close()
