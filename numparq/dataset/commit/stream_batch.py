"""Batch of a stream: its write's id, and the mark by which a dataset knows that it has been committed."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from numparq.errors import InvalidFileError

_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_MAX_NUMBER = 10**12 - 1  # 12 digits


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """Batch of a stream that is written exactly once, however often it is repeated.

    Attributes
    ----------
    stream : str
        Unique id of the stream: letters, digits, ``_`` and ``-``.
    number : int
        Number of the batch; the batches of a stream are committed in increasing order.
    """

    stream: str
    number: int

    def __post_init__(self) -> None:
        if not _STREAM.fullmatch(self.stream):
            raise ValueError(f"the id of a stream has letters, digits, '_' and '-' only, unlike {self.stream!r}")
        if not 0 <= self.number <= _MAX_NUMBER:
            raise ValueError(f"the number of a batch must be between 0 and {_MAX_NUMBER}, not {self.number}")

    @property
    def job(self) -> str:
        """Id of the write, the same for all attempts; the ids of a stream sort by batch."""
        digest = hashlib.sha256(self.stream.encode()).hexdigest()
        return f"{int(digest[:12], 16) % 10**8:08}T{self.number:012}-{digest[-6:]}"

    def is_earlier(self, job: str) -> bool:
        """Whether a write is of an earlier batch of this stream."""
        start, end = self.job[:9], self.job[21:]
        return job[:9] == start and job[21:] == end and job < self.job

    @property
    def mark(self) -> str:
        """Name of the mark: a hidden file in the dataset that names the latest batch of the stream."""
        return f"_numparq_stream-{self.stream}.json"

    @property
    def mark_text(self) -> str:
        """Content of the mark once this batch is committed."""
        return json.dumps({"stream": self.stream, "batch": self.number})

    def is_committed(self, mark: bytes, base: str) -> bool:
        """Whether a mark says that this batch, or a later one, is committed; InvalidFileError if it is damaged."""
        try:
            found = json.loads(mark)
            stream, number = found["stream"], found["batch"]
        except (ValueError, KeyError, TypeError, RecursionError):
            stream, number = None, None
        if stream != self.stream or type(number) is not int:
            raise InvalidFileError(
                "the mark of a stream is damaged; restore it, or remove it if its latest batch is not in the folder",
                file=f"{base.rstrip('/')}/{self.mark}",
            )
        return number >= self.number
