"""What to say when the system cannot write."""

from __future__ import annotations

import errno
import os

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space, or write to another one",
    errno.EDQUOT: "the quota is used up: remove something, or write to another place",
    errno.EFBIG: "files as large as this are not allowed there (by the file system, or a limit of the process)",
    errno.EIO: "the device fails: check it, and write to another one",
    errno.EROFS: "the file system is read-only: write to another place",
}


def write_trouble(error: OSError, name: str, position: int) -> OSError:
    """Make an error that says more than the system's.

    Parameters
    ----------
    error : OSError
        The system's.
    name : str
        The file's.
    position : int
        Bytes written before it.

    Returns
    -------
    OSError
        Of the same errno, and so of the same class.
    """
    number = error.errno
    if number is None:
        return type(error)(f"{name} could not be written, after {position:,} bytes: {error}")
    reason = error.strerror or os.strerror(number)
    advice = f"; {_ADVICE[number]}" if number in _ADVICE else ""
    return OSError(number, f"{reason}, after {position:,} bytes{advice}", name)
