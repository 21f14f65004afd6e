"""Dictionary-encoded columns as Categoricals: the dictionaries of all pieces become one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..arrow_schema import DictionaryIndex
from ..column.buffer import BinaryPiece, ColumnBuffer, DictionaryPiece
from ..kernels.objects import make_bytes_array
from ..kernels.tables import NARROW
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
    codes, dictionary = _merged([piece if isinstance(piece, DictionaryPiece) else encode(piece) for piece in pieces])
    is_text = len(dictionary) > 0 and target.type.kind in UTF8_KINDS  # as in pyarrow, no categories are objects
    values: Any = text_array([dictionary], None) if is_text else binary_objects([dictionary], make_bytes_array, None)
    dtype = pd.CategoricalDtype(pd.Index(values, copy=False), ordered=_is_ordered(target))
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def restored_categorical(
    target: Target, pieces: list[BinaryPiece | DictionaryPiece], finish: Callable[[Target, ColumnBuffer, int], Any]
) -> pd.Categorical:
    """Make a Categorical that has its categories' dtype, and their order, as they were written.

    Parameters
    ----------
    target : Target
        Of dictionary storage, with `entries` and `wanted`.
    pieces : list of DictionaryPiece or BinaryPiece
        As in `categorical`; values of a fixed size are kept as bytes.
    finish : callable
        `numparq.frame.finish.finish`.

    Returns
    -------
    pandas.Categorical
        Where a chunk had no dictionary, its values are added to the categories, and these are sorted if they were.
    """
    assert target.entries is not None
    encode_piece = encode if target.entries.storage == "binary" else encode_fixed
    coded = [piece if isinstance(piece, DictionaryPiece) else encode_piece(piece) for piece in pieces]
    codes, dictionary = _merged(coded)
    values = finish(target.entries, _entries(target.entries, dictionary), len(dictionary))
    index = pd.Index(values, dtype=values.dtype, copy=False)
    if index.hasnans or not index.is_unique:  # of several frames: 0.0 beside -0.0
        renumbered, index = pd.factorize(index)
        codes = np.append(renumbered, -1)[codes]
    if target.wanted.ascending and any(isinstance(piece, BinaryPiece) for piece in pieces):
        order = index.argsort()
        codes = np.append(np.argsort(order), -1)[codes]
        index = index.take(order)
    dtype = pd.CategoricalDtype(index, ordered=target.wanted.ordered)
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def _entries(entries: Target, dictionary: BinaryPiece) -> ColumnBuffer:
    """Give a dictionary as a column of its own."""
    if entries.storage == "binary":
        return ColumnBuffer(pieces=[dictionary])
    assert entries.dtype is not None
    stored = dictionary.data[: dictionary.offsets[-1]].copy()
    return ColumnBuffer(stored.view("i4").astype(entries.dtype) if entries.conversion == NARROW
                        else stored.view(entries.dtype))  # fmt: skip


def _merged(coded: list[DictionaryPiece]) -> tuple[np.ndarray, BinaryPiece]:
    """Give the codes of all rows, and the dictionary that they are for."""
    remaps, dictionary = unify([piece.dictionary for piece in coded])
    codes = np.empty(sum(map(len, coded)), _code_dtype(len(dictionary)))
    start = 0
    for piece, remap in zip(coded, remaps, strict=True):
        # A null's code is -1: in "wrap" mode that is the last item of the table, which is -1 again.
        np.take(remap.astype(codes.dtype), piece.codes, out=codes[start : start + len(piece)], mode="wrap")
        start += len(piece)
    return codes, dictionary


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
    latest = None
    for dictionary in dictionaries:
        if latest is not None and _are_equal(dictionary, latest):  # most writers repeat it in each row group
            remaps[id(dictionary)] = remaps[id(latest)]
        latest = dictionary
        if id(dictionary) not in remaps:
            remap = [codes.setdefault(key, len(codes)) for key in keys(dictionary)]
            remaps[id(dictionary)] = np.array([*remap, -1], np.int64)
    if dictionaries and len(codes) == len(dictionaries[0]):
        return [remaps[id(dictionary)] for dictionary in dictionaries], dictionaries[0]
    return [remaps[id(dictionary)] for dictionary in dictionaries], joined(list(codes))


def _are_equal(first: BinaryPiece, second: BinaryPiece) -> bool:
    if first is second or not np.array_equal(first.offsets, second.offsets):
        return first is second
    size = int(first.offsets[-1])
    return np.array_equal(first.data[:size], second.data[:size])


def ordered_as(target: Target, dictionaries: list[BinaryPiece]) -> Target:
    """Give a target under which a Categorical of several files is ordered only if these agree on the order.

    Parameters
    ----------
    target : Target
        Of dictionary storage.
    dictionaries : list of BinaryPiece
        The first dictionary of each file, which has its categories in order.

    Returns
    -------
    Target
        The same, unless the values, in the order of their first appearance, are not in the order of one of the files.
    """
    is_ordered = _is_ordered(target) if target.wanted is None else target.wanted.ordered
    if not is_ordered or len(dictionaries) < 2:
        return target
    remaps, _ = unify(dictionaries)
    if all(bool((np.diff(remap[:-1]) > 0).all()) for remap in remaps):
        return target
    arrow_type = replace(target.type, dictionary=replace(target.type.dictionary or DictionaryIndex(), ordered=False))
    wanted = None if target.wanted is None else replace(target.wanted, ordered=False)
    return replace(target, type=arrow_type, wanted=wanted)


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


def encode_fixed(piece: BinaryPiece) -> DictionaryPiece:
    """Dictionary-encode a piece whose values are all of the same size, as bytes."""
    width = len(piece.data) // max(len(piece), 1)
    if width not in (4, 8):
        return encode(piece)
    codes = np.full(len(piece), -1, np.int32)
    present = np.ones(len(piece), bool) if piece.validity is None else piece.validity.view(bool)
    found, distinct = pd.factorize(piece.data.view(f"i{width}")[present])
    codes[present] = found
    return DictionaryPiece(codes, BinaryPiece(np.arange(len(distinct) + 1) * width, distinct.view(np.uint8)))
