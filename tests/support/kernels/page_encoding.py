"""Values of one page encoded by the kernel of pages."""

from __future__ import annotations

import numpy as np

from numparq.kernels import page_writing
from numparq.kernels.enums import DELTA_BINARY_PACKED

_NOTHING = {dtype: np.empty(0, dtype) for dtype in ("u1", "i4", "i8")}


def encode_delta(engine, values: np.ndarray, start: int, stop: int, out: np.ndarray) -> int:
    """Encode int32 or int64 values `start` to `stop` as DELTA_BINARY_PACKED; return the end."""
    page = np.zeros(page_writing.W_FIELDS, np.int64)
    page[[page_writing.W_FIRST_VALUE, page_writing.W_LAST_VALUE]] = start, stop
    page[page_writing.W_ENCODING] = DELTA_BINARY_PACKED
    numbers = [values if values.dtype == dtype else _NOTHING[dtype] for dtype in ("i4", "i8")]
    levels, offsets, codes = (_NOTHING["u1"], 0) * 2, (_NOTHING["i8"],) * 2, _NOTHING["i4"]
    data = (values.view("u1"), values.nbytes, values.itemsize)
    return engine.encode_pages(page, 0, 1, 1, *levels, *data, *offsets, *numbers, codes, out)
