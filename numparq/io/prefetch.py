"""Prefetching source: fetches coming batches of byte ranges in the background, within a memory budget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from threading import Lock
from types import TracebackType

import numpy as np

from numparq.errors import ParquetError
from numparq.kernels.tables import SLACK

from .coalesce import OBJECT_STORE_COALESCING, Coalescing, coalesce
from .source import ByteRanges, Source, allocate_with_slack, check_byte_ranges, read_missing_ranges

__all__ = ["MAX_PREFETCHED_BYTES", "PrefetchBatch", "PrefetchRequest", "PrefetchedSource"]

# What is larger than a request is cut, but not into pieces that are smaller than this, whatever is asked for.
MIN_REQUEST_BYTES = 256 << 10

# Held at once, of all batches.
MAX_PREFETCHED_BYTES = 256 << 20
# Loads under way at once: while the bytes of one come, the next one's requests are on their way.
_MAX_FETCHES = 2
# A load has the bytes of so many of the largest requests at most: who waits for the first of them waits for all.
_REQUESTS_PER_FETCH = 4


class PrefetchRequest:
    """A byte range that is fetched by one request.

    Parameters
    ----------
    start, stop : int
        First byte in the file, and the byte behind the last.

    Attributes
    ----------
    load : Future or None
        What is done with once the piece is settled; None until it has been asked for.
    is_done : bool
        Whether its request is over, so that one of the following is there.
    array : uint8 array or None
        Its bytes, and SLACK readable ones behind them.
    error : BaseException or None
        What went wrong.
    passed : bool
        Whether somebody needed it before it was asked for; he reads it himself, and it never is.
    dropped : bool
        Whether nobody needs it any more.
    """

    __slots__ = ("array", "dropped", "error", "is_done", "load", "passed", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.load: Future[None] | None = None
        self.is_done = False
        self.array: np.ndarray | None = None
        self.error: BaseException | None = None
        self.passed = False
        self.dropped = False

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.stop - self.start

    def wait(self) -> np.ndarray | None:
        """Give its bytes and SLACK behind them when they are there; None when they never will be."""
        assert self.load is not None
        try:
            self.load.result()
        except CancelledError:
            return None
        if isinstance(self.error, ParquetError):  # each who is told of it adds his own place
            raise copy(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.array


class PrefetchBatch:
    """The pieces of a batch, in the order of the file, none of which overlap.

    Parameters
    ----------
    ranges : int64 array, (n, 2)
        The byte ranges that are needed.
    source : Source
        The file; what it does not have is left out, for memory is taken for what is here.
    coalescing : Coalescing
        Which of them are fetched together. A range that is larger than its ``max_bytes`` becomes several pieces.
    """

    def __init__(self, ranges: np.ndarray, source: Source, coalescing: Coalescing) -> None:
        self.pieces = [PrefetchRequest(start, stop) for start, stop in _requests(ranges, source, coalescing)]
        self._starts = [piece.start for piece in self.pieces]
        self._num_seen = 0

    def waiting(self) -> Iterator[PrefetchRequest]:
        """Go over the pieces that have not been asked for; one that the caller stops at comes again."""
        while self._num_seen < len(self.pieces):
            piece = self.pieces[self._num_seen]
            if not piece.passed:
                yield piece
            self._num_seen += 1

    def covering(self, start: int, stop: int) -> list[PrefetchRequest]:
        """Find the pieces that have all of a byte range; none where it is not all there."""
        first = place = bisect_right(self._starts, start) - 1
        if first < 0:
            return []
        while self.pieces[place].stop < stop:
            place += 1
            if place == len(self.pieces) or self.pieces[place].start != self.pieces[place - 1].stop:
                return []
        return self.pieces[first : place + 1]


def _requests(ranges: np.ndarray, source: Source, coalescing: Coalescing) -> Iterator[tuple[int, int]]:
    """Put byte ranges together, and cut what is larger than a request."""
    ranges = np.asarray(ranges, np.int64).reshape(-1, 2)
    there = [(start, stop) for start, stop in ranges.tolist() if start < stop and source.has(start, stop)]
    for start, stop in coalesce(np.array(there, np.int64).reshape(-1, 2), coalescing).requests.tolist():
        if not source.has(start, stop):  # it goes from one file to another
            continue
        count = -(-(stop - start) // max(coalescing.max_bytes, MIN_REQUEST_BYTES))
        edges = [start + (stop - start) * number // count for number in range(count + 1)]
        yield from pairwise(edges)


class PrefetchedSource:
    """A source in front of another, that fetches ahead.

    Parameters
    ----------
    source : Source
        The file; it stays open when this is closed.
    batches : sequence of int64 array, (n, 2)
        What will be needed, in the order in which it will be: first byte, and the byte behind the last, in any order.
        Ranges that the file does not have are not fetched, and are an error for who reads them.
    coalescing : Coalescing
        Which of them are fetched together.
    max_bytes : int
        Held in memory at once. Where a batch has more, the rest of it is not fetched ahead: who needs it reads it from
        the source behind.

    Notes
    -----
    All methods may be called by several threads at once. Errors that come up while bytes are fetched are raised where
    these are asked for.
    """

    def __init__(
        self,
        source: Source,
        batches: Sequence[np.ndarray],
        coalescing: Coalescing = OBJECT_STORE_COALESCING,
        max_bytes: int = MAX_PREFETCHED_BYTES,
    ) -> None:
        self._source = source
        self.name = source.name
        self.size = source.size
        self.is_remote = source.is_remote
        self._ranges = batches
        self._how = coalescing
        self._most_bytes = max_bytes
        self._lock = Lock()
        self._held = 0
        self._closed = False
        self._batches: dict[int, PrefetchBatch] = {}  # those begun, and those that are fetched ahead
        self._begun: dict[int, PrefetchBatch] = {}
        self._ended: set[int] = set()
        self._ahead = 0  # the first to fetch ahead that has not been asked for to its end; 0 until one has begun
        self._pool = ThreadPoolExecutor(_MAX_FETCHES, "numparq-fetch")

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
                self._release(piece)
            self._ask()

    def _made(self, number: int) -> PrefetchBatch:
        if number not in self._batches:
            self._batches[number] = PrefetchBatch(self._ranges[number], self._source, self._how)
        return self._batches[number]

    def _ask(self) -> None:
        """Ask for pieces as long as there is room: first for those of batches that have begun."""
        if self._closed or not self._ahead:
            return
        for batch in self._begun.values():
            if not self._submit_batches([batch]):
                return
        self._submit_batches(self._upcoming_batches())

    def _upcoming_batches(self) -> Iterator[PrefetchBatch]:
        """Go over the batches that are fetched ahead; one that the caller stops at comes again."""
        while self._ahead < len(self._ranges):
            if self._ahead not in self._ended:
                yield self._made(self._ahead)
            self._ahead += 1

    def _submit_batches(self, batches: Iterable[PrefetchBatch]) -> bool:
        """Ask for the pieces of batches, small batches together; says whether there was room for all."""
        load: list[PrefetchRequest] = []
        size = 0
        for batch in batches:
            if size >= self._how.max_bytes:
                load, size = self._submit(load), 0
            for piece in batch.waiting():
                if self._held + piece.size > self._most_bytes:
                    self._submit(load)
                    return False
                if load and size + piece.size > _REQUESTS_PER_FETCH * self._how.max_bytes:
                    load, size = self._submit(load), 0
                load.append(piece)
                size += piece.size
                self._held += piece.size
        self._submit(load)
        return True

    def _submit(self, load: list[PrefetchRequest]) -> list[PrefetchRequest]:
        """Have pieces fetched in the background; gives an empty list, for the next ones."""
        if load:
            future = self._pool.submit(self._fetch, load)
            for piece in load:
                piece.load = future
        return []

    def _fetch(self, load: list[PrefetchRequest]) -> None:
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

    def _settle(self, piece: PrefetchRequest, array: np.ndarray | None, error: BaseException | None) -> None:
        with self._lock:
            piece.array, piece.error, piece.is_done = array, error, True
            if piece.dropped:
                self._release(piece)
                self._ask()

    def _release(self, piece: PrefetchRequest) -> None:
        """Let go of a piece; of one that is on its way, when it is there."""
        piece.dropped = True
        if piece.is_done:
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
            pieces = self._requests_covering(position, position + length)
        if not pieces or slack > SLACK:
            return None
        arrays = [piece.wait() for piece in pieces]
        if len(arrays) == 1 and arrays[0] is not None:
            return arrays[0][position - pieces[0].start :][: length + slack]
        joined, done = allocate_with_slack(length), 0
        for piece, array in zip(pieces, arrays, strict=True):
            if array is None:
                return None
            part = array[position + done - piece.start : piece.size][: length - done]
            joined[done : done + len(part)] = part
            done += len(part)
        return joined[: length + slack]

    def _requests_covering(self, start: int, stop: int) -> list[PrefetchRequest]:
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

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges: those of batches as they come, the others from the source behind."""
        wanted = check_byte_ranges(ranges, self)
        return read_missing_ranges(
            [self.view(start, stop - start, SLACK) for start, stop in wanted], wanted, self._source
        )

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
