"""What reading and writing ALP (AlpEncoding.md, ALP = 10) share: the sizes of its parts and its powers of ten."""

from __future__ import annotations

import numpy as np

HEADER = 7  # bytes: compression mode, integer encoding, log2 of the vector size, number of values
OFFSET = 4  # bytes of an offset
VECTOR_HEADER = 5  # bytes in front of a vector, less those of its frame of reference: a value's

# Tables of floats: item k is 10**k, item INVERSE + k is 10**-k, each the nearest that there is of its type.
INVERSE = 19
WHOLE = 38  # the item from which on every float of the type is an integer
BEYOND = 39  # the item that is the first power of two beyond the integers of the same size
LARGEST_EXPONENT4, LARGEST_EXPONENT8 = 10, 18


def _scales(dtype: type, mantissa: int) -> np.ndarray:
    powers = [float(f"1e{k}") for k in range(INVERSE)] + [float(f"1e-{k}") for k in range(INVERSE)]
    integers = np.dtype(dtype).itemsize * 8
    return np.array([*powers, 2.0**mantissa, 2.0 ** (integers - 1)], dtype)


SCALES4 = _scales(np.float32, 23)
SCALES8 = _scales(np.float64, 52)
