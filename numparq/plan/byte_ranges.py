"""Byte ranges that lie near each other are fetched together: fewer requests, for some bytes that nobody wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["LOCAL", "OBJECT_STORE", "Coalescing", "Fetches", "coalesce"]


@dataclass(frozen=True, slots=True)
class Coalescing:
    """How much is fetched at once.

    Parameters
    ----------
    gap : int
        Bytes that nobody wants: at most so many between two wanted ranges are fetched along. 0 joins ranges that touch.
    max_bytes : int
        A request is for no more, unless for a single range that is larger by itself.

    Notes
    -----
    A gap is worth fetching as long as its bytes take no longer than the request that it saves: latency times
    bandwidth, over the number of requests that wait side by side. A request should be large enough for its latency not
    to matter, and no larger, for then it only keeps others from running side by side, and decoding waiting.
    """

    gap: int
    max_bytes: int

    def __post_init__(self) -> None:
        if self.gap < 0 or self.max_bytes < 1:
            raise ValueError(f"a gap is 0 bytes or more, max_bytes at least 1; got {self.gap} and {self.max_bytes}")


# To read two ranges of a cached local file instead of one costs 2 us, which nobody notices; and so no byte is fetched
# that nobody wants. A read takes 1 us more for each 16 to 20 KiB; from 1 MiB on, only bytes count.
LOCAL = Coalescing(gap=0, max_bytes=4 << 20)
# Of 50 ms a request and 100 MB/s, five requests side by side: 1 MB takes 10 ms. 16 MiB take 160 ms, three latencies.
OBJECT_STORE = Coalescing(gap=1 << 20, max_bytes=16 << 20)


@dataclass(frozen=True, slots=True, eq=False)
class Fetches:
    """What to fetch, and where each wanted range is in it.

    Parameters
    ----------
    blobs : int64 array, (blobs, 2)
        First byte, and the byte behind the last, of each request; in the order of the file, without overlap.
    blob_of, position, size : int64 array, (ranges,)
        Of each wanted range, as they were given: the blob that it is in, where in the blob it begins, and its bytes.
    """

    blobs: np.ndarray
    blob_of: np.ndarray
    position: np.ndarray
    size: np.ndarray

    @property
    def num_bytes(self) -> int:
        """How many bytes are fetched."""
        return int((self.blobs[:, 1] - self.blobs[:, 0]).sum())

    def piece(self, fetched: Sequence[np.ndarray], wanted: int) -> np.ndarray:
        """Give the bytes of a wanted range.

        Parameters
        ----------
        fetched : sequence of uint8 array
            The bytes of each blob.
        wanted : int
            Which range.

        Returns
        -------
        uint8 array
            A view.
        """
        start = int(self.position[wanted])
        return fetched[self.blob_of[wanted]][start : start + int(self.size[wanted])]


def coalesce(wanted: np.ndarray, how: Coalescing = LOCAL) -> Fetches:
    """Put byte ranges together to requests.

    No byte is fetched twice: ranges that overlap are always in one blob.

    Parameters
    ----------
    wanted : int array, (ranges, 2)
        First byte, and the byte behind the last; in any order, none empty.
    how : Coalescing
        The largest gap and request.

    Returns
    -------
    Fetches

    Raises
    ------
    ValueError
        When a range begins below 0, or is empty.
    """
    wanted = np.asarray(wanted, np.int64).reshape(-1, 2)
    if np.count_nonzero((wanted[:, 0] < 0) | (wanted[:, 0] >= wanted[:, 1])):
        raise ValueError("a byte range begins below 0, or has no bytes")
    order = wanted[:, 0].argsort(kind="stable")
    starts, reach = wanted[order, 0], np.maximum.accumulate(wanted[order, 1])
    gaps = np.zeros(len(order), np.int64)  # in front of each range; negative where it overlaps one before
    gaps[1:] = starts[1:] - reach[:-1]
    # Ranges that overlap are one span: requests are cut between spans only.
    apart = gaps >= 0
    spans = apart.nonzero()[0]
    span_starts, span_stops = starts[spans], reach[_lasts(spans, len(order))]
    begins = gaps[spans] > how.gap
    begins[:1] = True
    _cut_large(begins, span_starts, span_stops, how.max_bytes)
    first = begins.nonzero()[0]
    blobs = np.empty((len(first), 2), np.int64)
    blobs[:, 0], blobs[:, 1] = span_starts[first], span_stops[_lasts(first, len(spans))]
    blob_of = np.empty(len(order), np.int64)
    blob_of[order] = (begins.cumsum() - 1)[apart.cumsum() - 1]
    return Fetches(blobs, blob_of, wanted[:, 0] - blobs[blob_of, 0], wanted[:, 1] - wanted[:, 0])


def _lasts(firsts: np.ndarray, count: int) -> np.ndarray:
    """Give the last item of each run of items, by the first ones; `count` items in all."""
    found = np.empty_like(firsts)
    found[:-1], found[-1:] = firsts[1:] - 1, count - 1
    return found


def _cut_large(begins: np.ndarray, starts: np.ndarray, stops: np.ndarray, max_bytes: int) -> None:
    """Mark more of some spans as the first of a request, so that those that are too large are cut up."""
    if not len(begins) or stops[-1] - starts[0] <= max_bytes:
        return
    first = np.flatnonzero(begins)
    ends = np.append(first[1:], len(begins))
    large = stops[ends - 1] - starts[first] > max_bytes
    for place, end in zip(first[large].tolist(), ends[large].tolist(), strict=True):
        while stops[end - 1] - starts[place] > max_bytes:
            fits = int(np.searchsorted(stops, starts[place] + max_bytes, side="right"))
            place = max(fits, place + 1)
            if place >= end:
                break
            begins[place] = True
