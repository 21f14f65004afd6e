"""Prefetching source: fetches coming batches of byte ranges in the background, within a memory budget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from copy import copy
from functools import partial
from itertools import pairwise
from threading import Lock
from types import TracebackType

import numpy as np

from numparq.errors import ParquetError
from numparq.kernels.tables import SLACK
from numparq.util.background_threads import BackgroundThreads

from .coalesce import OBJECT_STORE_COALESCING, Coalescing, coalesce
from .source import ByteRanges, Source, allocate_with_slack, check_byte_ranges, read_missing_ranges

# Ranges larger than a request are split, but into no smaller requests than this, whatever `max_bytes` says.
MIN_REQUEST_BYTES = 256 << 10

# Bytes held at once, over all batches.
MAX_PREFETCHED_BYTES = 256 << 20
# Concurrent fetches: while the bytes of one arrive, the requests of the next are under way.
_MAX_FETCHES = 2
# Largest fetch, in requests of `max_bytes`: a reader of its first request waits for all of them.
_REQUESTS_PER_FETCH = 4


class PrefetchRequest:
    """A byte range (`stop` exclusive) fetched by one request.

    Attributes
    ----------
    future : Future or None
        Future of the fetch that it belongs to; None before it is submitted.
    is_done : bool
        Whether the request is over, so that `array` or `error` is set.
    array : uint8 array or None
        Its bytes, followed by SLACK readable bytes.
    bypassed : bool
        Whether it was needed before it was submitted; the reader then reads the bytes itself.
    released : bool
        Whether its bytes are no longer needed.
    """

    __slots__ = ("array", "bypassed", "error", "future", "is_done", "released", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.future: Future[None] | None = None
        self.is_done = False
        self.array: np.ndarray | None = None
        self.error: BaseException | None = None
        self.bypassed = False
        self.released = False

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.stop - self.start

    def wait(self) -> np.ndarray | None:
        """Wait for the bytes and return them, followed by SLACK readable ones; None if the fetch was cancelled."""
        assert self.future is not None
        try:
            self.future.result()
        except CancelledError:
            return None
        if isinstance(self.error, ParquetError):  # each reader adds a location to its own copy
            raise copy(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.array


class PrefetchBatch:
    """Requests of one batch of byte ranges, in file order, without overlap; ranges that the source lacks are dropped.

    A range larger than `coalescing.max_bytes` becomes several requests.
    """

    def __init__(self, ranges: np.ndarray, source: Source, coalescing: Coalescing) -> None:
        self.requests = [PrefetchRequest(start, stop) for start, stop in _requests(ranges, source, coalescing)]
        self._starts = [piece.start for piece in self.requests]
        self._num_seen = 0

    def pending(self) -> Iterator[PrefetchRequest]:
        """Yield the requests not yet submitted; one at which the caller stops is yielded again."""
        while self._num_seen < len(self.requests):
            piece = self.requests[self._num_seen]
            if not piece.bypassed:
                yield piece
            self._num_seen += 1

    def covering(self, start: int, stop: int) -> list[PrefetchRequest]:
        """Return the requests that together hold all of a byte range; none if part of it is missing."""
        first = place = bisect_right(self._starts, start) - 1
        if first < 0:
            return []
        while self.requests[place].stop < stop:
            place += 1
            if place == len(self.requests) or self.requests[place].start != self.requests[place - 1].stop:
                return []
        return self.requests[first : place + 1]


def _requests(ranges: np.ndarray, source: Source, coalescing: Coalescing) -> Iterator[tuple[int, int]]:
    """Yield start and end of each request: byte ranges coalesced, then split where they exceed a request."""
    ranges = np.asarray(ranges, np.int64).reshape(-1, 2)
    there = [(start, stop) for start, stop in ranges.tolist() if start < stop and source.contains(start, stop)]
    for start, stop in coalesce(np.array(there, np.int64).reshape(-1, 2), coalescing).requests.tolist():
        if not source.contains(start, stop):  # coalesced across two files
            continue
        count = -(-(stop - start) // max(coalescing.max_bytes, MIN_REQUEST_BYTES))
        edges = [start + (stop - start) * number // count for number in range(count + 1)]
        yield from pairwise(edges)


class PrefetchedSource:
    """A source that prefetches from another one; thread-safe.

    Errors of a fetch are raised where its bytes are read. The inner source stays open when this one is closed. Without
    threads, in a forked child and at the end of the interpreter, all bytes are read from the inner source.

    Attributes
    ----------
    batches : sequence of int64 array, (ranges, 2)
        Byte ranges (starts and exclusive ends) of each batch, the batches in the order of their use.
        Ranges that the file does not have are not fetched; reading them is an error.
    max_bytes : int
        Bytes held in memory. What exceeds them in a batch is not prefetched: it is read from the inner source.
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
        self._batches: dict[int, PrefetchBatch] = {}  # begun or prefetched
        self._begun: dict[int, PrefetchBatch] = {}
        self._ended: set[int] = set()
        self._ahead = 0  # first batch to prefetch that is not wholly submitted; 0 until one has begun
        self._threads = BackgroundThreads(_MAX_FETCHES, "numparq-fetch")

    @property
    def num_requests(self) -> int:
        """Number of reads of the inner source so far."""
        return self._source.num_requests

    @property
    def num_bytes(self) -> int:
        """Number of bytes read from the inner source so far."""
        return self._source.num_bytes

    # --- fetching ----------------------------------------------------------------------------------------------------

    def begin(self, batch: int) -> None:
        """Fetch the bytes of a batch (its ordinal) unless already fetched, then those of the batches after it.

        A batch may begin again, also after its end.
        """
        if self._threads.is_forked:
            return
        with self._lock:
            if self._closed:
                raise ValueError(f"{self.name} is closed: nothing more can be prefetched")
            self._ended.discard(batch)
            self._begun[batch] = self._batch(batch)
            self._ahead = max(self._ahead, batch + 1)
            self._submit_pending()

    def end(self, batch: int) -> None:
        """Release the bytes of a batch; one that has not begun is no longer prefetched."""
        if self._threads.is_forked:
            return
        with self._lock:
            self._ended.add(batch)
            self._begun.pop(batch, None)
            ended = self._batches.pop(batch, None)
            for piece in ended.requests if ended else ():
                self._release(piece)
            self._submit_pending()

    def _batch(self, number: int) -> PrefetchBatch:
        if number not in self._batches:
            self._batches[number] = PrefetchBatch(self._ranges[number], self._source, self._how)
        return self._batches[number]

    def _submit_pending(self) -> None:
        """Submit requests while memory allows, those of batches that have begun first."""
        if self._closed or not self._ahead:
            return
        for batch in self._begun.values():
            if not self._submit_batches([batch]):
                return
        self._submit_batches(self._upcoming_batches())

    def _upcoming_batches(self) -> Iterator[PrefetchBatch]:
        """Yield the batches to prefetch; one at which the caller stops is yielded again."""
        while self._ahead < len(self._ranges):
            if self._ahead not in self._ended:
                yield self._batch(self._ahead)
            self._ahead += 1

    def _submit_batches(self, batches: Iterable[PrefetchBatch]) -> bool:
        """Submit the requests of batches, small batches together; return whether memory sufficed for all."""
        load: list[PrefetchRequest] = []
        size = 0
        for batch in batches:
            if size >= self._how.max_bytes:
                load, size = self._submit(load), 0
            for piece in batch.pending():
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
        """Submit requests to be fetched together in the background; return an empty list for the next ones."""
        if load:
            future = self._threads.submit(partial(self._fetch, load))
            for piece in load:
                piece.future = future
                if future is None:
                    piece.bypassed = True
                    self._held -= piece.size
        return []

    def _fetch(self, load: list[PrefetchRequest]) -> None:
        """Fetch requests and store their bytes or errors; raises nothing."""
        try:
            arrays = self._source.read_ranges([(piece.start, piece.stop) for piece in load])
        except ParquetError as error:  # one of the requests is invalid: find it
            if len(load) > 1:
                for piece in load:
                    self._fetch([piece])
            else:
                self._finish_request(load[0], None, error)
        except BaseException as error:
            for piece in load:
                self._finish_request(piece, None, error)
        else:
            for piece, array in zip(load, arrays, strict=True):
                self._finish_request(piece, array, None)

    def _finish_request(self, piece: PrefetchRequest, array: np.ndarray | None, error: BaseException | None) -> None:
        with self._lock:
            piece.array, piece.error, piece.is_done = array, error, True
            if piece.released:
                self._release(piece)
                self._submit_pending()

    def _release(self, piece: PrefetchRequest) -> None:
        """Release the bytes of a request; if it is under way, once it is done."""
        piece.released = True
        if piece.is_done:
            piece.array = None
            self._held -= piece.size

    # --- reading -----------------------------------------------------------------------------------------------------

    def contains(self, start: int, stop: int) -> bool:
        """Whether bytes `start` to `stop` (exclusive) exist."""
        return self._source.contains(start, stop)

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return bytes of a batch that has begun, waiting for them if needed; None for any others.

        A view of the request's array, or a copy if the range spans several requests. `slack` is at most SLACK.
        """
        if self._threads.is_forked or slack > SLACK:
            return None
        with self._lock:
            pieces = self._requests_covering(position, position + length)
        if not pieces:
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
        """Return the requests that hold a byte range; none if one was not submitted yet, and mark it never to be."""
        for batch in self._begun.values():
            pieces = batch.covering(start, stop)
            missing = [piece for piece in pieces if piece.future is None]
            for piece in missing:
                piece.bypassed = True
            if pieces and not missing:
                return pieces
        return []

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` with prefetched bytes, else from the inner source."""
        kept = self.view(position, len(out), 0)
        if kept is None:
            self._source.read_into(position, out)
        else:
            out[:] = kept

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges: prefetched ones as they arrive, the others from the inner source."""
        wanted = check_byte_ranges(ranges, self)
        return read_missing_ranges(
            [self.view(start, stop - start, SLACK) for start, stop in wanted], wanted, self._source
        )

    def close(self) -> None:
        """Release all bytes; wait for requests under way and cancel the others."""
        if self._threads.is_forked:
            return
        with self._lock:
            self._closed = True
        self._threads.shutdown()
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
