"""Leaf columns of nothing but nulls, whose type is open: their levels are kept until values come."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from numparq.errors import SchemaError
from numparq.format.schema import OPTIONAL, Leaf
from numparq.format.schema_node import SchemaNode

MAX_BYTES = 1 << 26  # compressed levels that are kept of a file
_LEVEL = 1  # of zlib: levels of equal rows shrink as well by the fastest


def is_null_leaf(node: SchemaNode) -> bool:
    """Whether a leaf has only nulls, so that its type is not known yet."""
    return node.repetition == OPTIONAL and node.logical is not None and node.logical.kind == "UNKNOWN"


def nested_null_leaves(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the leaves of nested columns that have only nulls."""
    return [leaf for leaf in leaves if leaf.logical is not None and leaf.logical.kind == "UNKNOWN" and leaf.is_nested]


def retyped_leaves(before: Sequence[SchemaNode], after: Sequence[SchemaNode]) -> dict[int, SchemaNode]:
    """Return by index the leaves that are null leaves before, and the node that each is afterwards."""
    retyped: dict[int, SchemaNode] = {}
    _compare(before, after, 0, retyped)
    return retyped


def _compare(
    before: Sequence[SchemaNode], after: Sequence[SchemaNode], leaf: int, retyped: dict[int, SchemaNode]
) -> int:
    """Add the retyped leaves below some nodes, the first of which has the index `leaf`; return the next index."""
    for old, new in zip(before, after, strict=True):
        if old.physical is None:
            leaf = _compare(old.children, new.children, leaf, retyped)
            continue
        if old is not new and is_null_leaf(old) and not is_null_leaf(new):
            retyped[leaf] = new
        leaf += 1
    return leaf


def moved_leaf(leaf: int, counts: Mapping[int, int]) -> int:
    """Return the index of a leaf, or of the first that it became, after leaves, by index, became so many."""
    return leaf + sum(count - 1 for other, count in counts.items() if other < leaf)


class NullLevels:
    """Levels of null leaves by leaf and row group, compressed; those that were not added are 0."""

    def __init__(self) -> None:
        self._levels: dict[int, dict[int, tuple[bytes, bytes]]] = {}
        self._num_bytes = 0

    def add(self, leaf: int, row_group: int, definition: np.ndarray, repetition: np.ndarray | None) -> None:
        """Add the levels of a chunk."""
        packed = zlib.compress(definition.tobytes(), _LEVEL), b""
        if repetition is not None:
            packed = packed[0], zlib.compress(repetition.tobytes(), _LEVEL)
        self._num_bytes += sum(map(len, packed))
        if self._num_bytes > MAX_BYTES:
            self._levels.clear()
        else:
            self._levels.setdefault(leaf, {})[row_group] = packed

    def check(self, column: str) -> None:
        """Raise SchemaError if there were too many levels to keep them."""
        if self._num_bytes > MAX_BYTES:
            raise SchemaError(
                "the column has only nulls in too many rows so far, to which no lists or dicts can be added; "
                "begin the file with schema=, or with rows that have values",
                column=column,
            )

    def read(self, leaf: int, row_group: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return definition and repetition levels of a chunk."""
        packed = self._levels.get(leaf, {}).get(row_group)
        if packed is None:
            return np.zeros(num_rows, np.uint8), np.zeros(num_rows, np.uint8)
        definition = np.frombuffer(zlib.decompress(packed[0]), np.uint8)
        repetition = np.frombuffer(zlib.decompress(packed[1]), np.uint8) if packed[1] else np.zeros_like(definition)
        return definition, repetition

    def replace_leaves(self, counts: Mapping[int, int]) -> None:
        """Move to the indices after leaves, by index, became so many leaves, which have the same levels."""
        self._levels = {
            each: levels
            for leaf, levels in self._levels.items()
            for each in range(moved_leaf(leaf, counts), moved_leaf(leaf, counts) + counts.get(leaf, 1))
        }
