"""Which columns of two files are the same one: those of one name, at one place, or of one number.

That is `resolve=`, the ways of Impala's query option PARQUET_FALLBACK_SCHEMA_RESOLUTION and of table formats.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ..errors import SchemaError
from .fields import Field

__all__ = ["Labels", "labelled", "labels_by"]

# Gives for each of some fields that stand beside each other what tells it from the others.
Labels = Callable[[Sequence[Field | None]], list[Hashable]]


def labels_by(resolve: str) -> Labels:
    """Find what tells fields apart.

    Parameters
    ----------
    resolve : {"name", "position", "field_id"}
        As in `numparq.dataset.resolution.DatasetSchema.of`.
    """
    if resolve not in _LABELS:
        raise ValueError(f"resolve is one of {', '.join(map(repr, _LABELS))}, not {resolve!r}")
    return _LABELS[resolve]


def _by_name(fields: Sequence[Field | None]) -> list[Hashable]:
    names: list[Hashable] = [field.name if field is not None else None for field in fields]
    known: set[Hashable] = set()
    for name in names:
        if name is not None and name in known:
            raise SchemaError(f"there are two columns called {name!r}, which are not to be told apart by their names: "
                              "resolve='position' does that", column=name)  # fmt: skip
        known.add(name)
    return names


def _by_position(fields: Sequence[Field | None]) -> list[Hashable]:
    return list(range(len(fields)))


def _by_id(fields: Sequence[Field | None]) -> list[Hashable]:
    ids: list[Hashable] = []
    for field in fields:
        if field is not None and field.field_id is None:
            raise SchemaError("the column has no field id, by which resolve='field_id' would find it",
                              column=field.name)  # fmt: skip
        if field is not None and field.field_id in ids:
            raise SchemaError(f"there are two columns with the field id {field.field_id}", column=field.name)
        ids.append(None if field is None else field.field_id)
    return ids


_LABELS: dict[str, Labels] = {"name": _by_name, "position": _by_position, "field_id": _by_id}


def labelled(fields: Sequence[Field | None], labels: Labels, file: str, path: tuple[str, ...]) -> list[Hashable]:
    """Give what tells fields apart; an error names the file, and all that the column is in."""
    try:
        return labels(fields)
    except SchemaError as error:
        column = (*path, str(error.where["column"]))
        raise SchemaError(error.message, file=file, column=".".join(column)) from None
