"""Dictionary-encoded columns as Categoricals: the dictionaries of all pieces become one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from ..column.buffer import BinaryPiece, DictionaryPiece
from ..kernels.objects import make_bytes_array
from ..targets import UTF8_KINDS, Target
from .objects import binary_objects
from .strings import text_array


def categorical(target: Target, pieces: list[BinaryPiece | DictionaryPiece]) -> pd.Categorical:
    """Make a Categorical of dictionary-encoded strings or bytes.

    Parameters
    ----------
    target : Target
        Of dictionary storage; its type says whether the order of the categories means something.
    pieces : list of DictionaryPiece or BinaryPiece
        The rows. A `BinaryPiece` holds rows whose page had no dictionary.

    Returns
    -------
    pandas.Categorical
        Its categories are the values of the dictionaries, used or not, in the order of their first appearance.
    """
    coded = [piece if isinstance(piece, DictionaryPiece) else encode(piece) for piece in pieces]
    remaps, dictionary = unify([piece.dictionary for piece in coded])
    codes = np.empty(sum(map(len, coded)), _code_dtype(len(dictionary)))
    start = 0
    for piece, remap in zip(coded, remaps, strict=True):
        # A null's code is -1: in "wrap" mode that is the last item of the table, which is -1 again.
        np.take(remap.astype(codes.dtype), piece.codes, out=codes[start : start + len(piece)], mode="wrap")
        start += len(piece)
    is_text = len(dictionary) > 0 and target.type.kind in UTF8_KINDS  # as in pyarrow, no categories are objects
    values: Any = text_array([dictionary], None) if is_text else binary_objects([dictionary], make_bytes_array, None)
    dtype = pd.CategoricalDtype(pd.Index(values, copy=False), ordered=_is_ordered(target))
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def _is_ordered(target: Target) -> bool:
    return target.type.dictionary is not None and target.type.dictionary.ordered


def _code_dtype(num_categories: int) -> np.dtype:
    """Give the dtype of codes that pandas itself would choose."""
    for dtype in (np.int8, np.int16, np.int32):
        if num_categories < np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.int64)


def unify(dictionaries: list[Any]) -> tuple[list[np.ndarray], BinaryPiece]:
    """Make one dictionary of several.

    Parameters
    ----------
    dictionaries : list of BinaryPiece
        They may have values in common, or repeat one.

    Returns
    -------
    remaps : list of numpy.ndarray
        For each dictionary, int64: what each of its codes becomes, then -1.
    dictionary : BinaryPiece
        The distinct values, in the order of their first appearance.
    """
    codes: dict[bytes, int] = {}
    remaps: dict[int, np.ndarray] = {}
    for dictionary in dictionaries:
        if id(dictionary) not in remaps:
            remap = [codes.setdefault(key, len(codes)) for key in keys(dictionary)]
            remaps[id(dictionary)] = np.array([*remap, -1], np.int64)
    if len(dictionaries) == 1 and len(codes) == len(dictionaries[0]):
        return [remaps[id(dictionaries[0])]], dictionaries[0]
    return [remaps[id(dictionary)] for dictionary in dictionaries], joined(list(codes))


def keys(piece: BinaryPiece) -> list[bytes]:
    """Give the values of a piece as bytes; empty ones at nulls."""
    offsets = piece.offsets.tolist()
    data = piece.data[: offsets[-1]].tobytes()
    return [data[start:stop] for start, stop in itertools.pairwise(offsets)]


def joined(values: list[bytes]) -> BinaryPiece:
    """Make a piece of bytes objects."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return BinaryPiece(offsets, np.frombuffer(b"".join(values), np.uint8))


def encode(piece: BinaryPiece) -> DictionaryPiece:
    """Dictionary-encode a piece: codes in the order of first appearance, -1 at nulls."""
    found: dict[bytes, int] = {}
    present = np.ones(len(piece), bool) if piece.validity is None else piece.validity.view(bool)
    codes = [
        found.setdefault(key, len(found)) if there else -1
        for key, there in zip(keys(piece), present.tolist(), strict=True)
    ]
    return DictionaryPiece(np.array(codes, np.int32), joined(list(found)))
