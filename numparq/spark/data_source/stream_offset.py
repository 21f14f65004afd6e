"""Offset of a file stream: the files of its latest batch, and which files it has read. Needs no log of its own."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import xxhash

# Files that an offset remembers one by one, with about 14 bytes each.
MAX_SEEN_FILES = 5000
_VERSION = 1
_ENTRY = np.dtype([("modified", "<i8"), ("digest", "<u8")])
_MAX_BYTES = 1 << 28
_BEGINNING = (-(1 << 63), 0)


class StreamFile(NamedTuple):
    """File of a stream's source: name in the source, modification time in microseconds since 1970, size in bytes."""

    name: str
    modified: int
    size: int

    @property
    def key(self) -> tuple[int, int]:
        """Order of files in a stream: modification time, then a digest of the name."""
        return self.modified, xxhash.xxh3_64_intdigest(self.name.encode(errors="surrogatepass"))


@dataclass(frozen=True)
class StreamOffset:
    """Position of a stream.

    Attributes
    ----------
    files : tuple of str
        Names of the files of the batch that ends here.
    until : tuple of int
        Key of a file: files up to it have been read, or will not be.
    seen : frozenset of tuple of int
        Keys of the files after `until` that have been read.
    """

    files: tuple[str, ...] = ()
    until: tuple[int, int] = _BEGINNING
    seen: frozenset[tuple[int, int]] = frozenset()
    _digests: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_digests", frozenset(digest for _, digest in self.seen))

    def unread(self, files: Iterable[StreamFile]) -> list[StreamFile]:
        """Return the files that have not been read, oldest first; files of zero bytes are still being written."""
        keys = ((file.key, file) for file in files if file.size)
        return [file for key, file in sorted(keys) if key > self.until and key[1] not in self._digests]

    def advance(self, unread: Sequence[StreamFile], count: int, max_age: int, now: int) -> StreamOffset:
        """Return the offset after a batch of the first `count` unread files.

        Files older than the newest one read by `max_age` microseconds will not be read. `now` bounds the newest time.
        """
        seen = sorted({*self.seen, *(file.key for file in unread[:count])})
        closed = seen[-MAX_SEEN_FILES - 1] if len(seen) > MAX_SEEN_FILES else self.until
        until = max(self.until, closed, (min(seen[-1][0], now) - max_age, 0))
        if len(unread) > count:  # the backlog is read, however old
            until = min(until, max(self.until, _key_before(unread[count].key)))
        names = tuple(file.name for file in unread[:count])
        return StreamOffset(names, until, frozenset(key for key in seen if key > until))

    def encode(self) -> dict[str, Any]:
        """Return the offset as Spark stores it, as JSON."""
        entries = np.array(sorted(self.seen), _ENTRY)
        entries["modified"][1:] = np.diff(entries["modified"])
        data = entries["modified"].tobytes() + entries["digest"].tobytes()
        return {
            "version": _VERSION,
            "files": list(self.files),
            "until": list(self.until),
            "seen": base64.b64encode(zlib.compress(data)).decode(),
        }

    @classmethod
    def decode(cls, offset: Mapping[str, Any]) -> StreamOffset:
        """Decode an offset; ValueError if it is none."""
        try:
            if offset["version"] != _VERSION:
                raise ValueError(f"version {offset['version']!r} is not {_VERSION}")
            files, (modified, digest) = offset["files"], offset["until"]
            if not (isinstance(files, list) and all(isinstance(name, str) for name in files)):
                raise ValueError("files is not a list of names")
            return cls(tuple(files), (int(modified), int(digest)), _decode_seen(offset["seen"]))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise ValueError(
                f"the checkpoint's offset is not that of a numparq stream ({error}); was the source of the query "
                "another one? Start the query with a new checkpoint"
            ) from None


def _key_before(key: tuple[int, int]) -> tuple[int, int]:
    """Return the largest key below another."""
    return (key[0], key[1] - 1) if key[1] else (key[0] - 1, (1 << 64) - 1)


def _decode_seen(text: str) -> frozenset[tuple[int, int]]:
    data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
    count, rest = divmod(len(data), _ENTRY.itemsize)
    if rest or len(data) == _MAX_BYTES:
        raise ValueError("seen has a wrong length")
    modified = np.cumsum(np.frombuffer(data, "<i8", count)).tolist()
    return frozenset(zip(modified, np.frombuffer(data, "<u8", count, 8 * count).tolist(), strict=True))


def limit_batch(unread: Sequence[StreamFile], max_files: int | None, max_bytes: int | None) -> int:
    """Return the number of files of the next batch: at least one, if there is one."""
    if max_files is not None:
        return min(max_files, len(unread))
    if max_bytes is None:
        return len(unread)
    room = max_bytes
    for count, file in enumerate(unread):
        room -= file.size
        if room < 0:
            return max(count, 1)
    return len(unread)
