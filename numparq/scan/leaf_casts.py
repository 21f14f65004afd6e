"""Casts of a file's leaves: which of them a projected leaf is made of, and how their levels become its levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numparq.column.nested.levels import NestedLeaf
from numparq.column.nested.nested_type import NestedType, is_variant, iter_leaves
from numparq.column.projection import NestedProjection
from numparq.format.schema import Leaf


@dataclass(frozen=True, slots=True)
class LeafCast:
    """How a projected leaf is made of a file's column.

    Attributes
    ----------
    leaves : sequence of int
        Positions of the file's leaves among those of the column: the first has the levels, and the values if
        `has_values`; of a shredded VARIANT all.
    levels : bytes
        Definition level of the projected leaf by that of the file's; empty for flat leaves.
    most_repetition : int
        Highest repetition level of the entries that count; deeper ones are of lists that the projected leaf is not in.
    variant : NestedType or None
        For the values of an unshredded VARIANT: the file's, which is shredded.
    """

    leaves: Sequence[int]
    has_values: bool = True
    levels: bytes = b""
    most_repetition: int = 0
    variant: NestedType | None = None

    def cast_levels(self, piece: NestedLeaf, leaf: Leaf) -> NestedLeaf:
        """Return the entries of the projected leaf by those of the file's, without values."""
        count, definition, repetition = piece.num_entries, piece.definition, piece.repetition
        chosen: Any = slice(count)
        if repetition is not None and self.most_repetition < repetition[:count].max(initial=0):
            chosen = np.flatnonzero(repetition[:count] <= self.most_repetition)
        definition = (np.zeros(count, np.uint8) if definition is None else definition)[chosen]
        count = len(definition)
        own = np.frombuffer(self.levels, np.uint8)[definition] if leaf.max_definition_level else None
        depth = None
        if leaf.max_repetition_level:
            depth = np.zeros(count, np.uint8) if repetition is None else repetition[chosen]
        return NestedLeaf(own, depth, count, None, piece.row_group, piece.file)


def map_leaves(target: Leaf | NestedProjection, stored: Leaf | NestedProjection) -> list[LeafCast]:
    """Return how each leaf of a projected column is made of a file's column, whose fields have the same names."""
    if isinstance(target, Leaf) or isinstance(stored, Leaf):
        return [LeafCast([0])]
    mapper = _LeafMapper(target.leaves, stored.leaves)
    mapper.visit(target.full_type, stored.full_type, [])
    return [mapper.casts[leaf.index] for leaf in target.leaves]


class _LeafMapper:
    """Walks a projected column and a file's in parallel; `casts` by ordinal of the projected leaf.

    Events are pairs of definition levels, the file's and the projected column's, from which on the same node is there.
    """

    def __init__(self, leaves: Sequence[Leaf], stored: Sequence[Leaf]) -> None:
        self.casts: dict[int, LeafCast] = {}
        self._wanted = {leaf.index for leaf in leaves}
        self._positions = {leaf.index: at for at, leaf in enumerate(stored)}

    def visit(self, node: NestedType, stored: NestedType, events: list[tuple[int, int]]) -> None:
        """Add the leaves of a node that both have."""
        if stored.leaf is not None and (node.leaf is None or _is_null(stored.leaf)):
            self._add_missing(node, stored, events)
            return
        events = [*events, (stored.definition_level, node.definition_level)]
        if node.leaf is not None:
            self._add(node.leaf, stored, events)
            return
        if node.kind != "struct":
            events.append((stored.element_level, node.element_level))
            for child, other in zip(node.children, stored.children, strict=True):
                self.visit(child, other, events)
            return
        known = {child.name: child for child in stored.children}
        if is_variant(node):
            from numparq.to_pandas.variant.shredding import check_variant_group  # few files have VARIANTs

            check_variant_group(stored)
        is_shredded = is_variant(node) and not known.keys() <= {child.name for child in node.children}
        for child in node.children:
            if is_shredded and child.name == "value":
                self._add_variant(child, stored, known["metadata"], events)
            elif child.name in known:
                self.visit(child, known[child.name], events)
            else:
                self._add_missing(child, stored, events)

    def _add(
        self, leaf: Leaf | None, carrier: NestedType, events: list[tuple[int, int]], *, has_values: bool = True
    ) -> None:
        """Add a leaf with the levels of a leaf within `carrier`, the innermost node that the file has."""
        assert leaf is not None
        if leaf.index in self._wanted:
            inside = [one for one in iter_leaves(carrier) if one.index in self._positions]
            of = min(inside, key=lambda one: one.max_repetition_level)
            levels = bytes(
                max((there for here, there in events if here <= level), default=0)
                for level in range(of.max_definition_level + 1)
            )
            self.casts[leaf.index] = LeafCast([self._positions[of.index]], has_values, levels, carrier.repetition_level)

    def _add_missing(self, node: NestedType, carrier: NestedType, events: list[tuple[int, int]]) -> None:
        for leaf in iter_leaves(node):
            self._add(leaf, carrier, events, has_values=False)

    def _add_variant(
        self, value: NestedType, stored: NestedType, metadata: NestedType, events: list[tuple[int, int]]
    ) -> None:
        """Add the values of a VARIANT that the file shreds: one in each that is there."""
        self._add(value.leaf, metadata, [*events, (stored.definition_level, value.definition_level)])
        assert value.leaf is not None
        if value.leaf.index in self.casts:
            cast = self.casts[value.leaf.index]
            others = [self._positions[leaf.index] for leaf in iter_leaves(stored)]
            leaves = [*cast.leaves, *(at for at in others if at not in cast.leaves)]
            self.casts[value.leaf.index] = replace(cast, leaves=leaves, variant=stored)


def _is_null(leaf: Leaf) -> bool:
    return leaf.logical is not None and leaf.logical.kind == "UNKNOWN"
