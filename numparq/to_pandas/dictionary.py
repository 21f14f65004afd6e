"""Dictionary-encoded columns: Categoricals from merged dictionaries, and objects built once per entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray, concat_binary
from numparq.column.read.take import ValueIndices, take_binary
from numparq.format.arrow_type import DictionaryIndex
from numparq.kernels.encodings.dictionary import ENTRY_FIELDS
from numparq.kernels.kernel_groups import object_kernels
from numparq.kernels.status import NO_DICTIONARY
from numparq.kernels.tables import SLACK
from numparq.types.output_type import UTF8_KINDS, OutputType, cast_stored

from .objects import bytes_object_array, take_objects
from .strings import binary_objects, string_array


def build_categorical(target: OutputType, pieces: list[BinaryArray | DictionaryArray]) -> pd.Categorical:
    """Return a Categorical of dictionary-encoded strings or bytes; a BinaryArray holds rows without a dictionary.

    Its categories are all dictionary entries, used or not, in order of first appearance.
    """
    codes, dictionary = _merge_pieces(
        [piece if isinstance(piece, DictionaryArray) else dictionary_encode(piece) for piece in pieces]
    )
    is_text = len(dictionary) > 0 and target.type.kind in UTF8_KINDS  # without categories: object dtype, as pyarrow
    values: Any = (
        string_array([dictionary], None) if is_text else binary_objects([dictionary], bytes_object_array, None)
    )
    return categorical_of(codes, pd.Index(values, copy=False), _is_ordered(target))


def restore_categorical(
    target: OutputType,
    pieces: list[BinaryArray | DictionaryArray],
    to_array: Callable[[OutputType, DecodedColumn, int], Any],
) -> pd.Categorical:
    """Return a Categorical with the written dtype and order of its categories; fixed-size values are stored as bytes.

    Values of chunks without a dictionary become categories too, which are then sorted if they were.
    """
    assert target.entry_type is not None
    encode_piece = dictionary_encode if target.entry_type.storage == "binary" else dictionary_encode_fixed
    coded = [piece if isinstance(piece, DictionaryArray) else encode_piece(piece) for piece in pieces]
    codes, dictionary = _merge_pieces(coded)
    values = to_array(target.entry_type, _dictionary_buffer(target.entry_type, dictionary), len(dictionary))
    index = pd.Index(values, dtype=values.dtype, copy=False)
    is_text = target.entry_type.array_kind in ("text", "text_objects")  # distinct bytes are distinct texts
    if not is_text and (index.hasnans or not index.is_unique):  # from several frames, such as 0.0 and -0.0
        renumbered, index = pd.factorize(index)
        codes = np.append(renumbered, -1)[codes]
    if target.cast_to.ascending and any(isinstance(piece, BinaryArray) for piece in pieces):
        order = index.argsort()
        codes = np.append(np.argsort(order), -1)[codes]
        index = index.take(order)
    return categorical_of(codes, index, target.cast_to.ordered)


def categorical_of(codes: np.ndarray, categories: pd.Index, ordered: bool) -> pd.Categorical:
    """Return a Categorical of distinct categories, which pandas would make objects and hash tables of to check."""
    dtype = pd.CategoricalDtype._from_fastpath(categories, ordered)
    codes = codes.astype(_code_dtype(len(categories)), copy=False)
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def _dictionary_buffer(entries: OutputType, dictionary: BinaryArray) -> DecodedColumn:
    """Return a dictionary as a decoded column."""
    if entries.storage == "binary":
        return DecodedColumn(arrays=[dictionary])
    return DecodedColumn(cast_stored(dictionary.data[: dictionary.offsets[-1]].copy(), entries))


def _merge_pieces(coded: list[DictionaryArray]) -> tuple[np.ndarray, BinaryArray]:
    """Return the codes of all rows and their merged dictionary."""
    remaps, dictionary = merge_dictionaries([piece.dictionary for piece in coded])
    codes = np.empty(sum(map(len, coded)), _code_dtype(len(dictionary)))
    start = 0
    for piece, remap in zip(coded, remaps, strict=True):
        # A null's code, -1, wraps to the last item of the table, which is -1 too.
        np.take(remap.astype(codes.dtype), piece.codes, out=codes[start : start + len(piece)], mode="wrap")
        start += len(piece)
    return codes, dictionary


def _is_ordered(target: OutputType) -> bool:
    return target.type.dictionary is not None and target.type.dictionary.ordered


def _code_dtype(num_categories: int) -> np.dtype:
    """Return the dtype of codes that pandas would choose."""
    for dtype in (np.int8, np.int16, np.int32):
        if num_categories < np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.int64)


def merge_dictionaries(dictionaries: list[Any]) -> tuple[list[np.ndarray], BinaryArray]:
    """Merge dictionaries, which may share or repeat values, into one in order of first appearance.

    The remap of each dictionary (int32) maps its codes to the merged ones and ends with -1.
    """
    distinct, place_of = list[BinaryArray](), list[int]()
    for dictionary in dictionaries:
        if not distinct or not _are_equal(dictionary, distinct[-1]):  # most writers repeat it in every row group
            distinct.append(dictionary)
        place_of.append(len(distinct) - 1)
    remaps, merged, waiting, size = list[np.ndarray](), from_byte_strings([]), list[BinaryArray](), 0
    for place, dictionary in enumerate(distinct, start=1):
        waiting.append(dictionary)
        size += int(dictionary.offsets[-1])
        if size >= merged.offsets[-1] or place == len(distinct):  # so neither copies nor memory add up
            encoded = dictionary_encode(concat_binary([merged, *waiting] if len(merged) else waiting))
            stops = [*accumulate(map(len, waiting), initial=len(merged))]
            remaps += [np.append(encoded.codes[start:stop], np.int32(-1)) for start, stop in pairwise(stops)]
            merged, waiting, size = encoded.dictionary, [], 0
    return [remaps[place] for place in place_of], merged


def _are_equal(first: BinaryArray, second: BinaryArray) -> bool:
    if first is second or not np.array_equal(first.offsets, second.offsets):
        return first is second
    size = int(first.offsets[-1])
    return np.array_equal(first.data[:size], second.data[:size])


def keep_order_if_common(target: OutputType, dictionaries: list[BinaryArray]) -> OutputType:
    """Return the output type of a Categorical of several files, unordered unless they agree on the order.

    `dictionaries` are the first dictionary of each file, with its categories in order.
    """
    is_ordered = _is_ordered(target) if target.cast_to is None else target.cast_to.ordered
    if not is_ordered or len(dictionaries) < 2:
        return target
    remaps, _ = merge_dictionaries(dictionaries)
    if all(bool((np.diff(remap[:-1]) > 0).all()) for remap in remaps):
        return target
    arrow_type = replace(target.type, dictionary=replace(target.type.dictionary or DictionaryIndex(), ordered=False))
    wanted = None if target.cast_to is None else replace(target.cast_to, ordered=False)
    return replace(target, type=arrow_type, cast_to=wanted)


def from_byte_strings(values: list[bytes]) -> BinaryArray:
    """Return bytes objects as a binary array."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return BinaryArray(offsets, np.frombuffer(b"".join(values), np.uint8))


def dictionary_encode(piece: BinaryArray) -> DictionaryArray:
    """Dictionary-encode a binary array: codes in order of first appearance, -1 at nulls."""
    places = None if piece.validity is None else np.flatnonzero(piece.validity).astype(np.int32)
    starts, ends = piece.offsets[:-1], piece.offsets[1:]
    if places is not None:
        starts, ends = starts[places], ends[places]
    firsts, codes = index_strings(piece.data, int(piece.offsets[-1]), starts, ends)
    if places is not None:
        firsts, there = places[firsts], codes
        codes = np.full(len(piece), -1, np.int32)
        codes[places] = there
    if len(firsts) == len(piece):
        return DictionaryArray(codes, piece)
    data = piece.data
    if len(data) < piece.offsets[-1] + SLACK:  # made of Python objects
        data = np.append(data, np.zeros(SLACK, np.uint8))
    return DictionaryArray(codes, take_binary(BinaryArray(piece.offsets, data), ValueIndices(firsts)))


def index_strings(data: np.ndarray, size: int, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first occurrence of each distinct value, and the code of every value (int32).

    The values lie in the first `size` bytes of `data` (uint8), from `starts` to `ends` (int64, exclusive).
    """
    count = len(starts)
    bits = (2 * count + 1).bit_length()
    codes, firsts = np.empty(count, np.int32), np.empty(count, np.int32)
    table, known = np.zeros(1 << bits, np.int32), np.empty(ENTRY_FIELDS * count, np.int64)
    room = (table, known, bits, count, 1 << 62, 0, 0)
    entries = object_kernels.index_binary(data, size, starts, ends, count, *room, firsts, codes)
    if entries == NO_DICTIONARY:  # values made to collide in the kernel's table
        content = data[:size].tobytes()
        values = [content[start:stop] for start, stop in zip(starts.tolist(), ends.tolist(), strict=True)]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        codes[:] = [numbers[value] for value in values]
        return np.unique(codes, return_index=True)[1].astype(np.int32), codes
    return firsts[:entries].copy(), codes


def dictionary_encode_fixed(piece: BinaryArray) -> DictionaryArray:
    """Dictionary-encode a binary array whose values all have the same size."""
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
    """Return an object for each value, none of them null, built once per dictionary entry and shared by its rows.

    `make` builds the objects of binary arrays.
    """
    if not any(isinstance(piece, DictionaryArray) for piece in pieces):
        return make([piece for piece in pieces if isinstance(piece, BinaryArray)])
    parts = []
    latest, table = None, np.empty(0, object)
    for piece in pieces:
        if isinstance(piece, BinaryArray):
            parts.append(make([piece]))
            continue
        if len(piece) < len(piece.dictionary):  # few selected rows
            piece = _used_entries(piece)
        if piece.dictionary is not latest:  # pieces of one chunk are adjacent
            latest, table = piece.dictionary, make([piece.dictionary])
        parts.append(take_objects(table, piece.codes))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def dictionary_decode(piece: BinaryArray | DictionaryArray) -> BinaryArray:
    """Return an array without nulls as a plain binary array."""
    if isinstance(piece, BinaryArray):
        return piece
    used = _used_entries(piece)
    items = _entry_bytes(used.dictionary, range(len(used.dictionary)))
    return from_byte_strings([items[code] for code in used.codes.tolist()])


def _used_entries(piece: DictionaryArray) -> DictionaryArray:
    """Drop the dictionary entries that no code refers to."""
    entries, codes = np.unique(piece.codes, return_inverse=True)
    return DictionaryArray(codes.astype(np.int32), from_byte_strings(_entry_bytes(piece.dictionary, entries.tolist())))


def _entry_bytes(dictionary: BinaryArray, places: Sequence[int]) -> list[bytes]:
    offsets = dictionary.offsets
    return [dictionary.data[offsets[place] : offsets[place + 1]].tobytes() for place in places]
