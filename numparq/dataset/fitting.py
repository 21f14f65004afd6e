"""Whether the columns of a file fit a schema that the caller gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..schema import INT96
from .fields import Field, described, special_of
from .labelling import Labels, labelled
from .widening import common_type, value_type

__all__ = ["fitted_columns"]


def fitted_columns(wanted: Sequence[Field], file: str, fields: Sequence[Field | None], labels: Labels) -> list[Field]:
    """Check that the columns of a file are those of a schema, or widen to them.

    Parameters
    ----------
    wanted : sequence of Field
        The schema's.
    file : str
        The name of the file.
    fields : sequence of Field or None
        Its columns. Those that are not of the schema do not count.
    labels : callable
        Tells columns apart.

    Returns
    -------
    list of Field
        Those wanted; nullable where the file's are, or where it lacks them.

    Raises
    ------
    SchemaError
        When a value could be lost; it names file and column, and both types.
    """
    return _members(wanted, file, fields, labels, ())


def _members(
    wanted: Sequence[Field], file: str, fields: Sequence[Field | None], labels: Labels, path: tuple[str, ...]
) -> list[Field]:
    have = dict(zip(labelled(fields, labels, file, path), fields, strict=True))
    made = []
    for label, field in zip(labelled(wanted, labels, file, path), wanted, strict=True):
        known = have.get(label)
        made.append(replace(field, nullable=True) if known is None else _fitted(field, known, file, labels, path))
    return made


def _fitted(wanted: Field, known: Field, file: str, labels: Labels, above: tuple[str, ...]) -> Field:
    nullable = wanted.nullable or known.nullable or known.is_null
    path = (*above, wanted.name)
    if known.is_null:
        return replace(wanted, nullable=nullable)
    if known.kind != wanted.kind or not _KINDS[wanted.kind](wanted, known) or (above and _other_unit(wanted, known)):
        raise SchemaError(f"the column is {described(known)} here, which does not become the {described(wanted)} of "
                          "the schema without a loss", file=file, column=".".join(path))  # fmt: skip
    if wanted.kind == "leaf" or wanted.is_variant:
        return replace(wanted, nullable=nullable)
    if wanted.kind == "struct":
        children = _members(wanted.children, file, known.children, labels, path)
    else:
        pairs = zip(wanted.children, known.children, strict=True)
        children = [_fitted(inner, theirs, file, labels, path) for inner, theirs in pairs]
    return replace(wanted, nullable=nullable, children=tuple(children))


def _other_unit(wanted: Field, known: Field) -> bool:
    """Say whether these are durations of two units, which within other types cannot be converted."""
    return wanted.kind == "leaf" and _values(wanted).kind == "duration" and _values(wanted) != _values(known)


def _leaf_fits(wanted: Field, known: Field) -> bool:
    asked, have = _values(wanted), _values(known)
    if known.stored is not None and known.stored.physical == INT96 and asked.timezone:
        have = replace(have, timezone="UTC")  # INT96 does not say what it is, and the schema does
    special = special_of(wanted)
    return (special is None or special == special_of(known)) and common_type(frozenset((asked, have))) == asked


def _values(field: Field) -> ArrowType:
    assert field.type is not None
    return value_type(field.type)


_KINDS: dict[str, Callable[[Field, Field], bool]] = {
    "leaf": _leaf_fits,
    "struct": lambda wanted, known: wanted.is_variant == known.is_variant,
    "list": lambda wanted, known: True,
    "map": lambda wanted, known: True,
}
