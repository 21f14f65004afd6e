"""Open many files: footers fetched side by side, few descriptors and tails held."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.dataset.listing.files import DataFile
from numparq.errors import error_context
from numparq.format.bound_keys import bind_keys
from numparq.format.footer.tail import ENCRYPTED_MAGIC, MAGIC, TAIL_BYTES
from numparq.format.open_file import OpenFile
from numparq.io.file_pool import PooledFileSource
from numparq.io.open import open_filesystem_source
from numparq.io.remote_source import MAX_CONCURRENT_REQUESTS, read_ranges_of_files
from numparq.io.small_files import open_small_files
from numparq.io.source import Source, allocate_with_slack
from numparq.io.tail_source import TailSource
from numparq.util.worker_pool import WorkerPool

from .files import DatasetListing

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource
    from numparq.format.key_values.spark import SparkCalendar
    from numparq.io.coalesce import Coalescing
    from numparq.keys.part_keys import DatasetKeys

# Smaller remote files are fetched whole with their footer: another request takes longer than the bytes.
WHOLE_FILE_BYTES = 1 << 20
# Memory limit for the tails of all files; each file keeps at least MIN_TAIL_BYTES.
MAX_TAIL_BYTES = 256 << 20
# Memory limits for local files that are read whole, and for the tails of others, which are read once more at need.
MAX_SMALL_FILE_BYTES, MAX_LOCAL_TAIL_BYTES = 64 << 20, 4 << 20
MIN_TAIL_BYTES = 8 << 10
# Limits of one fetch call: files, and bytes.
_MANY, _MANY_BYTES = 256, 64 << 20


def open_files(
    listing: DatasetListing,
    files: Sequence[DataFile],
    *,
    calendar: SparkCalendar | None = None,
    keys: DatasetKeys | None = None,
) -> list[OpenFile]:
    """Open files of a dataset and read their footers; local files beyond `file_pool.MAX_OPEN_FILES` close until read.

    Keeps the order of ``files``; ``calendar`` is as of `OpenFile`.
    If one cannot be opened, closes all and raises ParquetError or OSError.
    """
    strict = replace(listing, named_paths=frozenset(file.path for file in files))
    opened = open_files_unless_empty(strict, files, calendar=calendar, keys=keys)
    return [file for file in opened if file is not None]


def open_files_unless_empty(
    listing: DatasetListing,
    files: Sequence[DataFile],
    *,
    coalescing: Coalescing | None = None,
    calendar: SparkCalendar | None = None,
    keys: DatasetKeys | None = None,
) -> list[OpenFile | None]:
    """Open files as `open_files` does; None for those of zero bytes that the listing found without their names."""
    opened: list[OpenFile | None] = []
    waiting: list[Source] = []
    sources = _local(files) if listing.filesystem is None else _remote(listing.filesystem, files)
    try:
        for file, source in zip(files, sources, strict=True):
            waiting.append(source)
            if source.size or file.path in listing.named_paths:
                own = None if keys is None else keys_of_file(keys, file, listing)
                opened.append(OpenFile.from_source(source, coalescing, calendar, own))
            else:
                source.close()
                opened.append(None)
    except BaseException:
        for source in waiting:
            source.close()
        sources.close()
        raise
    return opened


def keys_of_file(keys: DatasetKeys, file: DataFile, listing: DatasetListing) -> KeySource:
    """Return the keys of one file, which may find key material next to it."""
    path = file.committed_path(keys.is_local)  # key material is there as soon as the commit counts
    return bind_keys(keys.of(path), path, None, listing.filesystem)


def tail_lengths(sizes: Sequence[int], whole: int, most: int) -> list[int]:
    """Return how many bytes at the end of each file to fetch at once and keep, about ``most`` in all.

    Each gets TAIL_BYTES, or fewer if files are many; files of up to ``whole`` bytes are whole while there is room.
    """
    share = min(max(most // max(len(sizes), 1), MIN_TAIL_BYTES), TAIL_BYTES)
    lengths = [min(size, share) for size in sizes]
    room = most - sum(lengths)
    for place, size in enumerate(sizes):
        more = size - lengths[place]
        if 0 < more <= room and size <= whole:
            lengths[place] = size
            room -= more
    return lengths


def _local(files: Sequence[DataFile]) -> Generator[Source, None, None]:
    """Open local files: small ones are read whole, the tails of others on demand."""
    share = min(max(MAX_SMALL_FILE_BYTES // max(len(files), 1), MIN_TAIL_BYTES), TAIL_BYTES)
    room = MAX_LOCAL_TAIL_BYTES
    small = open_small_files([file.path for file in files], [file.name for file in files], share)
    for file, source in zip(files, small, strict=True):
        if source is not None:
            yield source
        else:
            large = PooledFileSource(file.path, file.name)
            length = min(large.size, share)
            room -= length
            yield TailSource(large, length) if room >= 0 else large


# --- remote files -----------------------------------------------------------------------------------------------------


def _remote(filesystem: Any, files: Sequence[DataFile]) -> Generator[Source, None, None]:
    """Open remote files and fetch their tails in batches."""
    sources = _sources(filesystem, files)
    given = 0
    try:
        lengths = tail_lengths([source.size for source in sources], WHOLE_FILE_BYTES, MAX_TAIL_BYTES)
        for start, stop in _batches(lengths):
            for tail in _with_tails(sources[start:stop], lengths[start:stop]):
                given += 1
                yield tail
    finally:
        for source in sources[given:]:
            source.close()


def _sources(filesystem: Any, files: Sequence[DataFile]) -> list[Source]:
    """Open remote files; concurrently if a size is unknown, because that costs a request per file."""
    sources: list[Source | None] = [None] * len(files)

    def opening(place: int) -> None:
        file = files[place]
        with error_context(file=file.name):
            sources[place] = open_filesystem_source(filesystem, file.path, file.name, file.size, file.version)

    is_known = hasattr(filesystem, "cat_file") and all(file.size is not None for file in files)
    jobs: list[Callable[[], None]] = [partial(opening, place) for place in range(len(files))]
    try:
        with WorkerPool(1 if is_known else max(1, min(MAX_CONCURRENT_REQUESTS, len(files)))) as crew:
            crew.run(jobs)
    except BaseException:
        for source in sources:
            if source is not None:
                source.close()
        raise
    return [source for source in sources if source is not None]


def _batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) ranges of files to fetch by one call; the end is exclusive."""
    start, num_bytes = 0, 0
    for place, length in enumerate(lengths):
        if place > start and (place - start == _MANY or num_bytes + length > _MANY_BYTES):
            yield start, place
            start, num_bytes = place, 0
        num_bytes += length
    if start < len(lengths):
        yield start, len(lengths)


def _with_tails(sources: Sequence[Source], lengths: Sequence[int]) -> list[TailSource]:
    """Fetch the tails of files, then the rest of longer footers while they fit ``_MANY_BYTES``."""
    wanted = [(source, source.size - length, source.size) for source, length in zip(sources, lengths, strict=True)]
    tails = read_ranges_of_files(wanted)
    missing, room = [], _MANY_BYTES
    for tail, one in zip(tails, wanted, strict=True):
        count = _missing(tail, *one)
        missing.append(count if count <= room else 0)
        room -= missing[-1]
    longer = [place for place, count in enumerate(missing) if count]
    more = read_ranges_of_files([(sources[at], wanted[at][1] - missing[at], wanted[at][1]) for at in longer])
    for at, front in zip(longer, more, strict=True):
        joined = allocate_with_slack(missing[at] + lengths[at])
        joined[: missing[at]] = front[: missing[at]]
        joined[missing[at] :] = tails[at]
        tails[at] = joined
    return [
        TailSource(source, length + count, tail)
        for source, length, count, tail in zip(sources, lengths, missing, tails, strict=True)
    ]


def _missing(tail: np.ndarray, source: Source, start: int, stop: int) -> int:
    """Return the number of footer bytes before the fetched tail; 0 without a valid footer, which fails later."""
    length = stop - start
    if length < 8 or tail[length - 4 : length].tobytes() not in (MAGIC, ENCRYPTED_MAGIC):
        return 0
    footer = int.from_bytes(tail[length - 8 : length - 4].tobytes(), "little") + 8
    return max(footer - length, 0) if footer <= source.size else 0
