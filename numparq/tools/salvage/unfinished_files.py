"""Recover the temporary file of a killed writer up to its last checkpoint."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from typing import TYPE_CHECKING

from numparq.format.footer.checkpoints import find_last_footer
from numparq.io.copy import copy_prefix
from numparq.io.file_lock import boot_id, try_lock
from numparq.io.local_sink import TEMPORARY_SUFFIX, temporary_prefix
from numparq.io.open import open_sink
from numparq.util.regular_file import open_regular

if TYPE_CHECKING:
    from numparq.format.footer.checkpoints import Checkpoint


def recover(path: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> Checkpoint:
    """Restore a complete file from a temporary file that a killed writer left.

    Parameters
    ----------
    path : str or os.PathLike
        Temporary file, as `leftovers` lists it.
    output : str or os.PathLike, optional
        File to write. By default `path` itself is truncated after its last complete footer.

    Returns
    -------
    Checkpoint
        What was saved.

    Raises
    ------
    InvalidFileError
        If the file has no complete footer.
    BlockingIOError
        If a process is still writing the file.
    """
    with open(path, "rb" if output is not None else "r+b", buffering=0, opener=open_regular) as file:
        if try_lock(file.fileno()) is False:
            raise BlockingIOError(errno.EAGAIN, "the file is still being written", os.fspath(path))
        found = find_last_footer(path)
        if output is not None:
            with open_sink(output) as sink:
                copy_prefix(file.fileno(), sink, found.end)
        else:
            file.truncate(found.end)
            os.fsync(file.fileno())
    return found


def leftovers(path: str | os.PathLike[str], *, of_other_systems: bool = False) -> list[str]:
    """Return the temporary files that killed writers of a file left in its directory, the latest first.

    A writer locks its temporary file, and the system releases the lock when the process ends. A file without a lock
    therefore has no writer, and may be recovered or removed.

    Parameters
    ----------
    path : str or os.PathLike
        File that was being written.
    of_other_systems : bool, default False
        Whether to list also files from before a restart or of another machine. This system may not see their locks, so
        make sure that no process still writes them.

    Returns
    -------
    list of str
    """
    target = os.path.realpath(os.path.expanduser(os.fspath(path)))
    folder = os.path.dirname(target)
    ours = boot_id() if not of_other_systems else r"\w+"
    form = re.compile(re.escape(temporary_prefix(target)) + ours + r"-[0-9a-f]{12}" + re.escape(TEMPORARY_SUFFIX))
    names = [os.path.join(folder, name) for name in os.listdir(folder) if form.fullmatch(name)]
    found = [(os.stat(name).st_mtime_ns, name) for name in names if _is_unlocked(name)]
    return [name for _, name in sorted(found, reverse=True)]


def _is_unlocked(name: str) -> bool:
    with contextlib.suppress(OSError), open(name, "rb", opener=open_regular) as file:
        return try_lock(file.fileno()) is True
    return False
