"""Binary arrays: concatenation of slices, with and without nulls."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from numparq.column.buffers import BinaryArray, concat_binary
from numparq.kernels.tables import SLACK


def binary(values: list[bytes | None], before: bytes = b"", has_validity: bool = False) -> BinaryArray:
    """Return an array whose data begins with bytes that are no value's."""
    sizes = [len(value or b"") for value in values]
    data = np.frombuffer(before + b"".join(value or b"" for value in values) + b"more", np.uint8)
    validity = np.array([value is not None for value in values], np.uint8) if has_validity else None
    return BinaryArray(np.cumsum([len(before), *sizes]), data, validity)


def values_of(array: BinaryArray) -> list[bytes | None]:
    ends = array.offsets.tolist()
    present = [1] * len(array) if array.validity is None else array.validity.tolist()
    items = [array.data[start:end].tobytes() for start, end in itertools.pairwise(ends)]
    return [item if there else None for item, there in zip(items, present, strict=True)]


@pytest.mark.parametrize("has_validity", [False, True])
@pytest.mark.parametrize("before", [b"", b"some other bytes"])
def test_pieces_are_concatenated(before, has_validity):
    pieces = [binary([b"a", b"", b"bcd"], before), binary([]), binary([b"ef", b"", b"g"], before, has_validity)]
    one = concat_binary(pieces)
    assert values_of(one) == [b"a", b"", b"bcd", b"ef", b"", b"g"]
    assert one.offsets[0] == 0
    assert len(one.data) >= one.offsets[-1] + SLACK
    assert (one.validity is None) == (not has_validity)


def test_nulls_of_some_pieces():
    one = concat_binary([binary([b"a"]), binary([None, b"b", None], b"x", True), binary([b"c"], b"yz")])
    assert values_of(one) == [b"a", None, b"b", None, b"c"]


def test_no_pieces():
    assert values_of(concat_binary([])) == []


def test_single_piece_is_not_copied():
    piece = binary([b"a"], b"xyz")
    assert concat_binary([piece]) is piece
