"""What is fetched ahead: batches of byte ranges, cut into pieces, each of which is one request."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from copy import copy
from itertools import pairwise

import numpy as np

from ..errors import ParquetError
from ..io.source import Source
from ..plan.byte_ranges import Coalescing, coalesce

__all__ = ["Batch", "Piece"]

# What is larger than a request is cut, but not into pieces that are smaller than this, whatever is asked for.
SMALLEST_CUT = 256 << 10


class Piece:
    """A byte range that is fetched by one request.

    Parameters
    ----------
    start, stop : int
        First byte in the file, and the byte behind the last.

    Attributes
    ----------
    load : Future or None
        What is done with once the piece is settled; None until it has been asked for.
    is_settled : bool
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

    __slots__ = ("array", "dropped", "error", "is_settled", "load", "passed", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.load: Future[None] | None = None
        self.is_settled = False
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


class Batch:
    """The pieces of a batch, in the order of the file, none of which overlap.

    Parameters
    ----------
    ranges : int64 array, (n, 2)
        The byte ranges that are needed.
    source : Source
        The file; what it does not have is left out, for memory is taken for what is here.
    how : Coalescing
        Which of them are fetched together. A range that is larger than its ``max_bytes`` becomes several pieces.
    """

    def __init__(self, ranges: np.ndarray, source: Source, how: Coalescing) -> None:
        self.pieces = [Piece(start, stop) for start, stop in _requests(ranges, source, how)]
        self._starts = [piece.start for piece in self.pieces]
        self._num_seen = 0

    def waiting(self) -> Iterator[Piece]:
        """Go over the pieces that have not been asked for; one that the caller stops at comes again."""
        while self._num_seen < len(self.pieces):
            piece = self.pieces[self._num_seen]
            if not piece.passed:
                yield piece
            self._num_seen += 1

    def covering(self, start: int, stop: int) -> list[Piece]:
        """Find the pieces that have all of a byte range; none where it is not all there."""
        first = place = bisect_right(self._starts, start) - 1
        if first < 0:
            return []
        while self.pieces[place].stop < stop:
            place += 1
            if place == len(self.pieces) or self.pieces[place].start != self.pieces[place - 1].stop:
                return []
        return self.pieces[first : place + 1]


def _requests(ranges: np.ndarray, source: Source, how: Coalescing) -> Iterator[tuple[int, int]]:
    """Put byte ranges together, and cut what is larger than a request."""
    ranges = np.asarray(ranges, np.int64).reshape(-1, 2)
    there = [(start, stop) for start, stop in ranges.tolist() if start < stop and source.has(start, stop)]
    for start, stop in coalesce(np.array(there, np.int64).reshape(-1, 2), how).blobs.tolist():
        if not source.has(start, stop):  # it goes from one file to another
            continue
        count = -(-(stop - start) // max(how.max_bytes, SMALLEST_CUT))
        edges = [start + (stop - start) * number // count for number in range(count + 1)]
        yield from pairwise(edges)
