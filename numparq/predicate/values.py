"""Decoded leaves, as tests are asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class Values:
    """A decoded leaf, for `evaluate`.

    Parameters
    ----------
    values : numpy.ndarray
        Of a fixed size: an item a value, in the stored form or narrowed; FIXED_LEN_BYTE_ARRAY as ``V{n}``, or as uint8,
        n of them a value; INT96 as ``M8[ns]`` or ``M8[us]``. Of BYTE_ARRAY: the uint8 bytes that `offsets` tells of.
    offsets : int array or None
        Of BYTE_ARRAY: one more than there are values.
    validity : uint8 or bool array or None
        Where there is a value, an item a value; None: everywhere. What `values` holds at nulls does not count.
    levels : mapping of int to array
        Of what is around the leaf: by definition level, where it is there, an item a row; a level left out or None:
        everywhere.
    list_offsets : int array or None
        Of a leaf in lists: where in the values the list of each row begins, and where the last one ends.
    codes : int32 array or None
        Where it is not None, `values` and `offsets` are entries of a dictionary, and `codes` has an item a value: the
        number of its entry, -1 for a null. Entries are tested once, whatever the number of values.
    """

    values: np.ndarray
    offsets: np.ndarray | None = None
    validity: np.ndarray | None = None
    levels: Mapping[int, np.ndarray | None] = field(default_factory=dict)
    list_offsets: np.ndarray | None = None
    codes: np.ndarray | None = None
