"""Reading one struct by the kernel, in an arena that grows until it is large enough."""

from __future__ import annotations

import numpy as np

from ..errors import NEED_ROOM, InvalidFileError, LimitError, check
from ..kernels import kernels
from ..kernels.compact_wire import S_PLACE, S_ROOM, S_TOP, STACK_WORDS
from .layout import Layout


def new_stack(top: int, room: int) -> np.ndarray:
    """Make what the kernels work in.

    Parameters
    ----------
    top : int
        The arena's first free word.
    room : int
        Its words.

    Returns
    -------
    int64 array
    """
    stack = np.empty(STACK_WORDS, np.int64)
    stack[S_TOP], stack[S_ROOM] = top, room
    return stack


def read_record(data: np.ndarray, length: int, wanted: Layout) -> np.ndarray:
    """Read a struct, and all in it that its layout wants.

    The arena is as large as the struct asks for: a list's elements have to fit in the bytes that are left before
    there is room made for them, so that a lying file gets at most a few dozen words for each of its bytes.

    Parameters
    ----------
    data : uint8 array
        The bytes.
    length : int
        How many of them may belong to it.
    wanted : Layout
        The struct, or a projection of it.

    Returns
    -------
    int64 array
        The arena: the root's record, then the elements of lists.

    Raises
    ------
    InvalidFileError
        When the bytes are not such a struct.
    LimitError
        When it takes more memory than there is.
    """
    room = wanted.words + length + 1024
    while True:
        try:
            arena = np.empty(room, np.int64)
        except MemoryError:
            raise LimitError("the metadata of the file takes more memory than there is") from None
        stack = new_stack(wanted.words, room)
        status = kernels.read_thrift(data, 0, length, wanted.table, arena, 0, stack)
        if status != NEED_ROOM:
            break
        room *= 2
    if status < 0:
        try:
            check(status, InvalidFileError)
        except InvalidFileError as error:
            error.message += f", at byte {stack[S_PLACE]:,} of {length:,}"
            raise
    return arena
