"""Output memory that columns are decoded into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from numparq.types.output_type import OutputType

NO_MASK = np.empty(0, np.uint8)


@dataclass(frozen=True)
class FixedOutput:
    """Memory of fixed-size values.

    Parameters
    ----------
    out : uint8 array
        The bytes of a block; C_OUT is the position in it of a chunk's first selected row.
    mask : uint8 array
        One byte a value of the block, for columns that keep their validity; else empty.
    """

    out: np.ndarray
    mask: np.ndarray


class OutputMemory(Protocol):
    """The memory that a frame's columns are decoded to; `numparq.to_pandas.frame.BlockLayout` is one."""

    num_rows: int
    targets: list[OutputType]
    values: list[np.ndarray | None]
    validity: list[np.ndarray | None]
    blocks: list[np.ndarray]
    block_of: list[int | None]
    row_of: list[int | None]


def fixed_output(memory: OutputMemory, column: int) -> FixedOutput:
    """Return the memory of a column of fixed storage: its block, or an array of its own."""
    block, values, validity = memory.block_of[column], memory.values[column], memory.validity[column]
    if block is not None:
        return FixedOutput(memory.blocks[block].reshape(-1).view(np.uint8), NO_MASK)
    assert values is not None
    return FixedOutput(values.view(np.uint8), NO_MASK if validity is None else validity)


class ReplaceableMemory(OutputMemory, Protocol):
    """Memory that can be replaced for a column with another output type."""

    def reallocate(self, position: int, target: OutputType) -> None:
        """Replace the memory of a column by that for another output type, without its values."""
