"""Casts of leaf values between output types."""

from __future__ import annotations

import numpy as np
import pytest

from numparq.column.buffers import BinaryArray
from numparq.format.arrow_type import ArrowType
from numparq.scan.cast_values import cast_values
from numparq.types.output_type import OutputType


def fixed(dtype: str, kind: str, **more: int | str) -> OutputType:
    return OutputType("fixed", "", ArrowType(kind, **more), np.dtype(dtype))


def number(dtype: str) -> OutputType:
    kind = {"i": "int", "u": "int", "f": "float"}[np.dtype(dtype).kind]
    return fixed(dtype, kind, bit_width=8 * np.dtype(dtype).itemsize, signed=dtype[0] != "u")


INEXACT = [
    ("i8", "f8", [2**53 + 1, 2**63 - 1, -(2**53) - 1], [2**53, -(2**53), 0]),
    ("u8", "f8", [2**53 + 1, 2**64 - 1], [2**53]),
    ("i8", "f4", [2**24 + 1], [2**24, -(2**24)]),
    ("i8", "i1", [300, -129], [127, -128]),
    ("i8", "u8", [-1], [2**63 - 1]),
    ("u8", "i8", [2**63], [2**63 - 1]),
    ("f8", "f4", [1e300, 0.1], [0.5, np.inf]),
    ("f8", "i8", [0.5, np.nan, np.inf, 2.0**63, 1e300], [-(2.0**63), 2.0**53, -0.0]),
    ("f8", "u8", [-1.0, 2.0**64, np.nan], [2.0**64 - 2048]),
    ("f4", "i4", [2.0**31, 0.25], [-(2.0**31)]),
]


@pytest.mark.parametrize(("source", "target", "unfit", "fit"), INEXACT)
def test_numbers_that_change_are_unfit(source: str, target: str, unfit: list[float], fit: list[float]) -> None:
    values = np.array([0, *unfit, *fit], source)
    cast = cast_values(values, number(source), number(target))
    assert cast.unfit is not None
    assert cast.unfit.tolist() == list(range(1, 1 + len(unfit)))
    assert f" {values[1]} cannot be stored as " in cast.message
    fine = cast_values(np.array(fit, source), number(source), number(target))
    assert fine.unfit is None
    assert fine.values.tolist() == fit


def test_floats_become_decimals_if_they_are_exactly_such() -> None:
    target = OutputType("fixed", "", ArrowType("decimal", 128, precision=4, scale=2), np.dtype("i4"))
    values = np.array([1.5, -0.25, 0.1, 99.75, 100.0, np.nan, -np.inf])
    cast, unfit, message = cast_values(values, number("f8"), target)
    assert unfit.tolist() == [2, 4, 5, 6]
    assert cast[[0, 1, 3]].tolist() == [150, -25, 9975]
    assert message.startswith("number 0.1 is not exactly a decimal(4, 2)")


@pytest.mark.parametrize(("dtype", "value", "nat"), [("M8[ns]", np.iinfo("i8").min, True), ("i8", 0, False)])
def test_nat_is_a_value_beside_a_validity_mask(dtype: str, value: int, nat: bool) -> None:
    """Where nulls are NaT, a stored NaT stays one."""
    values = np.array([np.iinfo("i8").min, 1, 2**62, -(2**62)], "i8")
    cast = cast_values(values, fixed("i8", "timestamp", unit="us"), fixed(dtype, "timestamp", unit="ns"))
    assert cast.unfit.tolist() == ([2, 3] if nat else [0, 2, 3])
    assert cast.values.view("i8")[1] == 1000
    assert not nat or cast.values.view("i8")[0] == value


def big_endian(values: list[int], width: int) -> np.ndarray:
    return np.frombuffer(b"".join(value.to_bytes(width, "big", signed=True) for value in values), f"V{width}")


@pytest.mark.parametrize("largest", [9, 2**31 - 1, 10**16, 2**62, 2**75])
@pytest.mark.parametrize(("scale", "factor"), [(0, 1), (3, 1000)])
def test_decimals_are_rescaled_or_unfit(largest: int, scale: int, factor: int) -> None:
    """Compare every pair of physical types that holds the values with integers of Python."""
    values = [largest, -largest, 0, -1]
    target_type = ArrowType("decimal", 128, precision=30, scale=scale)
    forms = {width: big_endian(values, width) for width in (1, 3, 4, 7, 8, 9, 16) if largest < 1 << (8 * width - 1)}
    sources = [(array, array.dtype) for array in forms.values()]
    sources += [(np.array(values, dtype), dtype) for dtype in ("i4", "i8") if largest <= np.iinfo(dtype).max]
    widest = forms[16].view(np.uint8)
    sources.append((BinaryArray(np.arange(5, dtype=np.int64) * 16, widest), None))
    wanted = [value * factor for value in values]
    for array, dtype in sources:
        source = OutputType("", "", ArrowType("decimal", 128), None if dtype is None else np.dtype(dtype))
        for target in ("i4", "i8", "V3", "V8", "V12", "V20", None):
            cast, unfit, _ = cast_values(array, source, OutputType("", "", target_type, target and np.dtype(target)))
            if target is None:
                items = [
                    cast.data[start:end].tobytes() for start, end in zip(cast.offsets, cast.offsets[1:], strict=False)
                ]
                assert [int.from_bytes(item, "big", signed=True) for item in items] == wanted
                continue
            bits = 8 * np.dtype(target).itemsize - 1
            outside = [at for at, value in enumerate(wanted) if not -(1 << bits) <= value < 1 << bits]
            assert ([] if unfit is None else unfit.tolist()) == outside
            found = cast.tolist()
            found = [int.from_bytes(item, "big", signed=True) for item in found] if target[0] == "V" else found
            assert found == [0 if at in outside else value for at, value in enumerate(wanted)]
