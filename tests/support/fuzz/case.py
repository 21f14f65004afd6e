"""A fuzz case: a file derived from a valid one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FuzzCase:
    """A file to be read, and what is known of it.

    Parameters
    ----------
    what : str
        The sample, and what was done to it.
    sample : str
        The name of the sample.
    data : bytes
        The file.
    sound : bytes, optional
        The file before bytes under a checksum were changed: what is read is to be the same, or nothing.
    """

    what: str
    sample: str
    data: bytes
    sound: bytes | None = None
