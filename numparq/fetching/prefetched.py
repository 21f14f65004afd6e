"""Bytes fetched ahead of their use: a source that has in memory, or on its way, what will be asked of it next.

What is needed is told in batches, mostly one a row group. While one is decoded the next ones are under way, as many as
the room for them allows. Batches are cut into pieces, one request each; pieces are fetched in loads, by one call of the
source behind, which asks for them side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from types import TracebackType

import numpy as np

from ..errors import ParquetError
from ..io.ranges import Ranges, checked_ranges, completed, room_for
from ..io.source import Source
from ..kernels.tables import SLACK
from ..plan.byte_ranges import OBJECT_STORE, Coalescing
from .pieces import Batch, Piece

__all__ = ["MOST_BYTES", "PrefetchedSource"]

# Held at once, of all batches.
MOST_BYTES = 256 << 20
# Loads under way at once: while the bytes of one come, the next one's requests are on their way.
_SIDE_BY_SIDE = 2
# A load has the bytes of so many of the largest requests at most: who waits for the first of them waits for all.
_REQUESTS = 4


class PrefetchedSource:
    """A source in front of another, that fetches ahead.

    Parameters
    ----------
    source : Source
        The file; it stays open when this is closed.
    batches : sequence of int64 array, (n, 2)
        What will be needed, in the order in which it will be: first byte, and the byte behind the last, in any order.
        Ranges that the file does not have are not fetched, and are an error for who reads them.
    how : Coalescing
        Which of them are fetched together.
    most_bytes : int
        Held in memory at once. Where a batch has more, the rest of it is not fetched ahead: who needs it reads it from
        the source behind.

    Notes
    -----
    All methods may be called by several threads at once. Errors that come up while bytes are fetched are raised where
    these are asked for.
    """

    def __init__(
        self, source: Source, batches: Sequence[np.ndarray], how: Coalescing = OBJECT_STORE,
        most_bytes: int = MOST_BYTES,
    ) -> None:  # fmt: skip
        self._source = source
        self.name = source.name
        self.size = source.size
        self.is_remote = source.is_remote
        self._ranges = batches
        self._how = how
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._held = 0
        self._closed = False
        self._batches: dict[int, Batch] = {}  # those begun, and those that are fetched ahead
        self._begun: dict[int, Batch] = {}
        self._ended: set[int] = set()
        self._ahead = 0  # the first to fetch ahead that has not been asked for to its end; 0 until one has begun
        self._pool = ThreadPoolExecutor(_SIDE_BY_SIDE, "numparq-fetch")

    @property
    def num_requests(self) -> int:
        """Reads so far of the source behind."""
        return self._source.num_requests

    @property
    def num_bytes(self) -> int:
        """The bytes that they brought."""
        return self._source.num_bytes

    @property
    def held(self) -> int:
        """The bytes in memory, and those for which memory is taken."""
        return self._held

    # --- what is fetched ---------------------------------------------------------------------------------------------

    def begin(self, batch: int) -> None:
        """Have the bytes of a batch fetched, unless they are already, and those of the ones behind it.

        Parameters
        ----------
        batch : int
            Its place among the batches. It may have begun, and it may have ended, before.
        """
        with self._lock:
            if self._closed:
                raise ValueError(f"{self.name}: nothing more is fetched ahead of what was closed")
            self._ended.discard(batch)
            self._begun[batch] = self._made(batch)
            self._ahead = max(self._ahead, batch + 1)
            self._ask()

    def end(self, batch: int) -> None:
        """Let go of the bytes of a batch; one that has not begun is not fetched any more."""
        with self._lock:
            self._ended.add(batch)
            self._begun.pop(batch, None)
            ended = self._batches.pop(batch, None)
            for piece in ended.pieces if ended else ():
                self._drop(piece)
            self._ask()

    def _made(self, number: int) -> Batch:
        if number not in self._batches:
            self._batches[number] = Batch(self._ranges[number], self._source, self._how)
        return self._batches[number]

    def _ask(self) -> None:
        """Ask for pieces as long as there is room: first for those of batches that have begun."""
        if self._closed or not self._ahead:
            return
        for batch in self._begun.values():
            if not self._ask_for([batch]):
                return
        self._ask_for(self._next_ones())

    def _next_ones(self) -> Iterator[Batch]:
        """Go over the batches that are fetched ahead; one that the caller stops at comes again."""
        while self._ahead < len(self._ranges):
            if self._ahead not in self._ended:
                yield self._made(self._ahead)
            self._ahead += 1

    def _ask_for(self, batches: Iterable[Batch]) -> bool:
        """Ask for the pieces of batches, small batches together; says whether there was room for all."""
        load: list[Piece] = []
        size = 0
        for batch in batches:
            if size >= self._how.max_bytes:
                load, size = self._submit(load), 0
            for piece in batch.waiting():
                if self._held + piece.size > self._most_bytes:
                    self._submit(load)
                    return False
                if load and size + piece.size > _REQUESTS * self._how.max_bytes:
                    load, size = self._submit(load), 0
                load.append(piece)
                size += piece.size
                self._held += piece.size
        self._submit(load)
        return True

    def _submit(self, load: list[Piece]) -> list[Piece]:
        """Have pieces fetched in the background; gives an empty list, for the next ones."""
        if load:
            future = self._pool.submit(self._fetch, load)
            for piece in load:
                piece.load = future
        return []

    def _fetch(self, load: list[Piece]) -> None:
        """Fetch pieces, and raise nothing."""
        try:
            arrays = self._source.read_ranges([(piece.start, piece.stop) for piece in load])
        except ParquetError as error:  # it is about one of them
            if len(load) > 1:
                for piece in load:
                    self._fetch([piece])
            else:
                self._settle(load[0], None, error)
        except BaseException as error:
            for piece in load:
                self._settle(piece, None, error)
        else:
            for piece, array in zip(load, arrays, strict=True):
                self._settle(piece, array, None)

    def _settle(self, piece: Piece, array: np.ndarray | None, error: BaseException | None) -> None:
        with self._lock:
            piece.array, piece.error, piece.is_settled = array, error, True
            if piece.dropped:
                self._drop(piece)
                self._ask()

    def _drop(self, piece: Piece) -> None:
        """Let go of a piece; of one that is on its way, when it is there."""
        piece.dropped = True
        if piece.is_settled:
            piece.array = None
            self._held -= piece.size

    # --- what is given -----------------------------------------------------------------------------------------------

    def has(self, start: int, stop: int) -> bool:
        """Whether there are such bytes."""
        return self._source.has(start, stop)

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes of a batch that has begun, waiting for them if need be; None for any others.

        Parameters
        ----------
        position, length : int
            First byte, and how many.
        slack : int
            Readable bytes behind them, up to SLACK.

        Returns
        -------
        uint8 array or None
        """
        with self._lock:
            pieces = self._pieces(position, position + length)
        if not pieces or slack > SLACK:
            return None
        arrays = [piece.wait() for piece in pieces]
        if len(arrays) == 1 and arrays[0] is not None:
            return arrays[0][position - pieces[0].start :][: length + slack]
        joined, done = room_for(length), 0
        for piece, array in zip(pieces, arrays, strict=True):
            if array is None:
                return None
            part = array[position + done - piece.start : piece.size][: length - done]
            joined[done : done + len(part)] = part
            done += len(part)
        return joined[: length + slack]

    def _pieces(self, start: int, stop: int) -> list[Piece]:
        """Find the pieces that have a byte range; none where one was not asked for yet, and now never will be."""
        for batch in self._begun.values():
            pieces = batch.covering(start, stop)
            missing = [piece for piece in pieces if piece.load is None]
            for piece in missing:
                piece.passed = True
            if pieces and not missing:
                return pieces
        return []

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` with bytes of a batch, or else from the source behind."""
        kept = self.view(position, len(out), 0)
        if kept is None:
            self._source.read_into(position, out)
        else:
            out[:] = kept

    def read_ranges(self, ranges: Ranges) -> list[np.ndarray]:
        """Read byte ranges: those of batches as they come, the others from the source behind."""
        wanted = checked_ranges(ranges, self)
        return completed([self.view(start, stop - start, SLACK) for start, stop in wanted], wanted, self._source)

    def close(self) -> None:
        """Let go of all bytes; requests under way are waited for, those that are not are given up."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            self._begun.clear()
            self._batches.clear()
            self._held = 0

    def __enter__(self) -> PrefetchedSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
