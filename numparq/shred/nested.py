"""Nested columns of a frame: lists, structs and maps, of Python objects or of Arrow data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import located
from ..leaves import LeafValues, Node
from .fields import field_of
from .nested_fields import node_of
from .nested_levels import shred
from .nested_tree import NestedArray
from .source import ArrowField

__all__ = ["NestedColumn", "source_column"]

Take = Callable[[int, int], list[NestedArray]]


class NestedColumn:
    """A nested column of the file: a `numparq.leaves.SourceColumn`.

    Parameters
    ----------
    field : ArrowField
        Its type.
    node : Node
        Its schema.
    take : callable
        Gives rows `start` to `stop` as nested arrays, one or more of them, one behind the other.
    """

    def __init__(self, field: ArrowField, node: Node, take: Take) -> None:
        self.field = field
        self.node = node
        self._take = take

    def leaves(self, start: int, stop: int) -> list[LeafValues]:
        """Give the values of rows `start` to `stop`, as `numparq.leaves.SourceColumn.leaves` says."""
        with located(column=self.node.name):
            parts = [shred(self.node, array) for array in self._take(start, stop)]
            return [_joined(list(leaves)) for leaves in zip(*parts, strict=True)]


def source_column(name: str, data: Any, wanted: Node | ArrowField | None = None) -> NestedColumn:
    """Make a nested column of the file.

    Parameters
    ----------
    name : str
        Its name.
    data : numpy.ndarray, pandas.api.extensions.ExtensionArray, pyarrow.Array or pyarrow.ChunkedArray
        Objects (lists, tuples, sets, NumPy arrays and dicts, with None, NaN, NaT or NA for nulls), or Arrow data of a
        nested type.
    wanted : Node, ArrowField or None
        What to write them as, whatever its name. None: objects as what is inferred, once, of all of them, and Arrow
        data as its type says.

    Returns
    -------
    NestedColumn

    Raises
    ------
    SchemaError
        When the column has no type that could be written, or has not the type that the schema says.
    """
    with located(column=name):
        node = replace(wanted, name=name) if isinstance(wanted, Node) else None
        field = replace(wanted, name=name) if isinstance(wanted, ArrowField) else None
        if node is not None:
            field = field_of(node)
        if hasattr(data, "__arrow_array__") and not isinstance(data, np.ndarray):
            data = data.__arrow_array__()
        if hasattr(data, "buffers") or hasattr(data, "chunks"):
            field, take = _of_arrow(name, data, field)
        else:
            field, take = _of_objects(name, np.asarray(data, object), field)
        return NestedColumn(field, node or node_of(field), take)


def _of_arrow(name: str, data: Any, field: ArrowField | None) -> tuple[ArrowField, Take]:
    from .nested_arrow import arrow_field, arrow_nested, converted, one_dictionary

    known = arrow_field(name, data.type)
    data = one_dictionary(data, known)
    as_it_is = field is None or replace(field, nullable=True) == known
    convert = arrow_nested if field is None or as_it_is else converted(field, data.type)

    def take(start: int, stop: int) -> list[NestedArray]:
        rows = data.slice(start, stop - start)
        chunks = [chunk for chunk in getattr(rows, "chunks", (rows,)) if len(chunk)]
        return [convert(chunk) for chunk in chunks or [_empty(data.type)]]

    return field or known, take


def _empty(data_type: Any) -> Any:
    import pyarrow as pa

    return pa.nulls(0, data_type)


def _of_objects(name: str, values: np.ndarray, field: ArrowField | None) -> tuple[ArrowField, Take]:
    from .nested_infer import inferred
    from .nested_objects import nested_array

    known = inferred(name, values) if field is None else field
    return known, lambda start, stop: [nested_array(values[start:stop], known, (name,))]


def _joined(parts: list[LeafValues]) -> LeafValues:
    """Put the pieces of a shredded leaf one behind the other; dictionaries are the same in all that have values."""
    if len(parts) == 1:
        return parts[0]
    definition, repetition = ([getattr(part, name) for part in parts] for name in ("definition", "repetition"))
    levels: dict[str, Any] = {
        "definition": None if definition[0] is None else np.concatenate(definition),
        "repetition": None if repetition[0] is None else np.concatenate(repetition),
    }
    if parts[0].codes is not None:
        codes = np.concatenate([part.codes for part in parts])  # type: ignore[arg-type]
        return LeafValues(parts[0].values, parts[0].starts, parts[0].ends, codes=codes, **levels)
    if parts[0].starts is None:
        return LeafValues(np.concatenate([part.values for part in parts]), **levels)
    return LeafValues(*_joined_texts(parts), **levels)


def _joined_texts(parts: list[LeafValues]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put byte arrays one behind the other: the data that there is between the first and the last of each piece."""
    data, starts, ends, room = [], [], [], 0
    for part in parts:
        assert part.starts is not None and part.ends is not None
        if not len(part.starts):
            continue
        first, last = int(part.starts.min()), int(part.ends.max())
        data.append(part.values[first:last])
        starts.append(part.starts + (room - first))
        ends.append(part.ends + (room - first))
        room += last - first
    if not data:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(data), np.concatenate(starts), np.concatenate(ends)
