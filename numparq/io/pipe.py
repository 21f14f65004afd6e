"""Named pipes (FIFOs), which wait for their other end only for a bounded time."""

from __future__ import annotations

import errno
import os
import select
import stat
import time

WAIT_SECONDS = 10.0  # for the other end of a FIFO
_STEP_SECONDS = 0.05
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


def open_for_reading(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a FIFO (an `opener` of `open`)."""
    return os.open(path, flags | _NONBLOCK | _CLOEXEC)


def await_writer(descriptor: int, path: str) -> bytes:
    """Wait until somebody writes to a pipe from `open_for_reading`, and make it blocking; return bytes already read.

    An empty FIFO without a writer reads as ended, one with a writer as not ready. TimeoutError if no writer comes.
    """
    begun, first = time.monotonic(), b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(_STEP_SECONDS * 1000):  # neither bytes nor a writer that came and left
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:
            break
        if first:
            break
        if time.monotonic() - begun > WAIT_SECONDS:
            raise _timeout(path, "nothing writes to the FIFO", "start its writer first")
    os.set_blocking(descriptor, True)
    return first


def open_for_writing(path: str) -> int:
    """Open a device or pipe for writing; TimeoutError if nothing reads from a FIFO."""
    begun = time.monotonic()
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | _NONBLOCK | _CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
        else:
            break
        if time.monotonic() - begun > WAIT_SECONDS:
            raise _timeout(path, "nothing reads from the FIFO", "start its reader first")
        time.sleep(_STEP_SECONDS)
    if _NONBLOCK:
        os.set_blocking(descriptor, True)
    return descriptor


def _timeout(path: str, problem: str, remedy: str) -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, f"{problem} within {WAIT_SECONDS:g} s; {remedy}, or use a regular file", path)
