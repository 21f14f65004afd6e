"""Dictionary-encoded columns: Categoricals from merged dictionaries, and objects built once per entry."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.format.arrow_type import DictionaryIndex
from numparq.kernels.tables import NARROW
from numparq.types.output_type import UTF8_KINDS, OutputType

from .objects import bytes_object_array, take_objects
from .strings import binary_objects, string_array

__all__ = ["dictionary_decode", "objects_by_entry"]


def build_categorical(target: OutputType, pieces: list[BinaryArray | DictionaryArray]) -> pd.Categorical:
    """Make a Categorical of dictionary-encoded strings or bytes.

    Parameters
    ----------
    target : OutputType
        Of dictionary storage; its type says whether the order of the categories means something.
    pieces : list of DictionaryArray or BinaryArray
        The rows. A `BinaryArray` holds rows whose page had no dictionary.

    Returns
    -------
    pandas.Categorical
        Its categories are the values of the dictionaries, used or not, in the order of their first appearance.
    """
    codes, dictionary = _merge_pieces(
        [piece if isinstance(piece, DictionaryArray) else dictionary_encode(piece) for piece in pieces]
    )
    is_text = len(dictionary) > 0 and target.type.kind in UTF8_KINDS  # as in pyarrow, no categories are objects
    values: Any = (
        string_array([dictionary], None) if is_text else binary_objects([dictionary], bytes_object_array, None)
    )
    dtype = pd.CategoricalDtype(pd.Index(values, copy=False), ordered=_is_ordered(target))
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def restore_categorical(
    target: OutputType,
    pieces: list[BinaryArray | DictionaryArray],
    to_array: Callable[[OutputType, DecodedColumn, int], Any],
) -> pd.Categorical:
    """Make a Categorical that has its categories' dtype, and their order, as they were written.

    Parameters
    ----------
    target : OutputType
        Of dictionary storage, with `entries` and `wanted`.
    pieces : list of DictionaryArray or BinaryArray
        As in `build_categorical`; values of a fixed size are kept as bytes.
    to_array : callable
        `numparq.to_pandas.columns.to_array`.

    Returns
    -------
    pandas.Categorical
        Where a chunk had no dictionary, its values are added to the categories, and these are sorted if they were.
    """
    assert target.entries is not None
    encode_piece = dictionary_encode if target.entries.storage == "binary" else dictionary_encode_fixed
    coded = [piece if isinstance(piece, DictionaryArray) else encode_piece(piece) for piece in pieces]
    codes, dictionary = _merge_pieces(coded)
    values = to_array(target.entries, _dictionary_buffer(target.entries, dictionary), len(dictionary))
    index = pd.Index(values, dtype=values.dtype, copy=False)
    if index.hasnans or not index.is_unique:  # of several frames: 0.0 beside -0.0
        renumbered, index = pd.factorize(index)
        codes = np.append(renumbered, -1)[codes]
    if target.wanted.ascending and any(isinstance(piece, BinaryArray) for piece in pieces):
        order = index.argsort()
        codes = np.append(np.argsort(order), -1)[codes]
        index = index.take(order)
    dtype = pd.CategoricalDtype(index, ordered=target.wanted.ordered)
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def _dictionary_buffer(entries: OutputType, dictionary: BinaryArray) -> DecodedColumn:
    """Give a dictionary as a column of its own."""
    if entries.storage == "binary":
        return DecodedColumn(pieces=[dictionary])
    assert entries.dtype is not None
    stored = dictionary.data[: dictionary.offsets[-1]].copy()
    return DecodedColumn(
        stored.view("i4").astype(entries.dtype) if entries.conversion == NARROW else stored.view(entries.dtype)
    )


def _merge_pieces(coded: list[DictionaryArray]) -> tuple[np.ndarray, BinaryArray]:
    """Give the codes of all rows, and the dictionary that they are for."""
    remaps, dictionary = merge_dictionaries([piece.dictionary for piece in coded])
    codes = np.empty(sum(map(len, coded)), _code_dtype(len(dictionary)))
    start = 0
    for piece, remap in zip(coded, remaps, strict=True):
        # A null's code is -1: in "wrap" mode that is the last item of the table, which is -1 again.
        np.take(remap.astype(codes.dtype), piece.codes, out=codes[start : start + len(piece)], mode="wrap")
        start += len(piece)
    return codes, dictionary


def _is_ordered(target: OutputType) -> bool:
    return target.type.dictionary is not None and target.type.dictionary.ordered


def _code_dtype(num_categories: int) -> np.dtype:
    """Give the dtype of codes that pandas itself would choose."""
    for dtype in (np.int8, np.int16, np.int32):
        if num_categories < np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.int64)


def merge_dictionaries(dictionaries: list[Any]) -> tuple[list[np.ndarray], BinaryArray]:
    """Make one dictionary of several.

    Parameters
    ----------
    dictionaries : list of BinaryArray
        They may have values in common, or repeat one.

    Returns
    -------
    remaps : list of numpy.ndarray
        For each dictionary, int64: what each of its codes becomes, then -1.
    dictionary : BinaryArray
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
            remap = [codes.setdefault(key, len(codes)) for key in byte_strings(dictionary)]
            remaps[id(dictionary)] = np.array([*remap, -1], np.int64)
    if dictionaries and len(codes) == len(dictionaries[0]):
        return [remaps[id(dictionary)] for dictionary in dictionaries], dictionaries[0]
    return [remaps[id(dictionary)] for dictionary in dictionaries], from_byte_strings(list(codes))


def _are_equal(first: BinaryArray, second: BinaryArray) -> bool:
    if first is second or not np.array_equal(first.offsets, second.offsets):
        return first is second
    size = int(first.offsets[-1])
    return np.array_equal(first.data[:size], second.data[:size])


def keep_order_if_common(target: OutputType, dictionaries: list[BinaryArray]) -> OutputType:
    """Give a target under which a Categorical of several files is ordered only if these agree on the order.

    Parameters
    ----------
    target : OutputType
        Of dictionary storage.
    dictionaries : list of BinaryArray
        The first dictionary of each file, which has its categories in order.

    Returns
    -------
    OutputType
        The same, unless the values, in the order of their first appearance, are not in the order of one of the files.
    """
    is_ordered = _is_ordered(target) if target.wanted is None else target.wanted.ordered
    if not is_ordered or len(dictionaries) < 2:
        return target
    remaps, _ = merge_dictionaries(dictionaries)
    if all(bool((np.diff(remap[:-1]) > 0).all()) for remap in remaps):
        return target
    arrow_type = replace(target.type, dictionary=replace(target.type.dictionary or DictionaryIndex(), ordered=False))
    wanted = None if target.wanted is None else replace(target.wanted, ordered=False)
    return replace(target, type=arrow_type, wanted=wanted)


def byte_strings(piece: BinaryArray) -> list[bytes]:
    """Give the values of a piece as bytes; empty ones at nulls."""
    offsets = piece.offsets.tolist()
    data = piece.data[: offsets[-1]].tobytes()
    return [data[start:stop] for start, stop in itertools.pairwise(offsets)]


def from_byte_strings(values: list[bytes]) -> BinaryArray:
    """Make a piece of bytes objects."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return BinaryArray(offsets, np.frombuffer(b"".join(values), np.uint8))


def dictionary_encode(piece: BinaryArray) -> DictionaryArray:
    """Dictionary-encode a piece: codes in the order of first appearance, -1 at nulls."""
    found: dict[bytes, int] = {}
    present = np.ones(len(piece), bool) if piece.validity is None else piece.validity.view(bool)
    codes = [
        found.setdefault(key, len(found)) if there else -1
        for key, there in zip(byte_strings(piece), present.tolist(), strict=True)
    ]
    return DictionaryArray(np.array(codes, np.int32), from_byte_strings(list(found)))


def dictionary_encode_fixed(piece: BinaryArray) -> DictionaryArray:
    """Dictionary-encode a piece whose values are all of the same size, as bytes."""
    width = len(piece.data) // max(len(piece), 1)
    if width not in (4, 8):
        return dictionary_encode(piece)
    codes = np.full(len(piece), -1, np.int32)
    present = np.ones(len(piece), bool) if piece.validity is None else piece.validity.view(bool)
    found, distinct = pd.factorize(piece.data.view(f"i{width}")[present])
    codes[present] = found
    return DictionaryArray(codes, BinaryArray(np.arange(len(distinct) + 1) * width, distinct.view(np.uint8)))


def objects_by_entry(
    pieces: Sequence[BinaryArray | DictionaryArray], make: Callable[[list[BinaryArray]], np.ndarray]
) -> np.ndarray:
    """Make an object of each value, where there are no nulls.

    Parameters
    ----------
    pieces : sequence of BinaryArray or DictionaryArray
        The values.
    make : callable
        Gives an array of objects, one for each value of some pieces; objects that may be had in several places.

    Returns
    -------
    object, shape (n,)
    """
    if not any(isinstance(piece, DictionaryArray) for piece in pieces):
        return make([piece for piece in pieces if isinstance(piece, BinaryArray)])
    parts = []
    latest, table = None, np.empty(0, object)
    for piece in pieces:
        if isinstance(piece, BinaryArray):
            parts.append(make([piece]))
            continue
        if len(piece) < len(piece.dictionary):  # some rows of many
            piece = _used_entries(piece)
        if piece.dictionary is not latest:  # the pieces of a chunk are next to each other
            latest, table = piece.dictionary, make([piece.dictionary])
        parts.append(take_objects(table, piece.codes))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def dictionary_decode(piece: BinaryArray | DictionaryArray) -> BinaryArray:
    """Give a piece without nulls as one of byte strings."""
    if isinstance(piece, BinaryArray):
        return piece
    used = _used_entries(piece)
    items = _entry_bytes(used.dictionary, range(len(used.dictionary)))
    return from_byte_strings([items[code] for code in used.codes.tolist()])


def _used_entries(piece: DictionaryArray) -> DictionaryArray:
    """Leave those entries out that no code names."""
    entries, codes = np.unique(piece.codes, return_inverse=True)
    return DictionaryArray(codes.astype(np.int32), from_byte_strings(_entry_bytes(piece.dictionary, entries.tolist())))


def _entry_bytes(dictionary: BinaryArray, places: Sequence[int]) -> list[bytes]:
    offsets = dictionary.offsets
    return [dictionary.data[offsets[place] : offsets[place + 1]].tobytes() for place in places]
