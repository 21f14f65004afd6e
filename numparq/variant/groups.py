"""The groups that a VARIANT is stored in: what of them the specification allows (VariantShredding.md).

A VARIANT is a group of ``metadata`` and ``value``, ``typed_value``, or both. An element of a shredded array and a field
of a shredded object are such groups, too, without metadata.
"""

from __future__ import annotations

from ..column.shape import Shape
from ..errors import InvalidFileError, UnsupportedError
from ..schema import BYTE_ARRAY
from .encoding import VERSION
from .typed import shredded_type

__all__ = ["check_variant"]


def check_variant(shape: Shape) -> None:
    """Check the group of a VARIANT, and all that is in it.

    Parameters
    ----------
    shape : Shape
        The group.

    Raises
    ------
    InvalidFileError
        When it is not made as the specification says.
    UnsupportedError
        When it is of another version.
    """
    version = shape.logical.version if shape.logical is not None else None
    if version not in (None, VERSION):
        message = f"the VARIANT is of version {version} of its specification, where numparq reads {VERSION}"
        raise UnsupportedError(message, column=".".join(shape.path))
    parts = _parts(shape, ("metadata", "value", "typed_value"))
    metadata = parts.get("metadata")
    # Some writers make it optional, and DuckDB up to 1.5 the groups of shredded fields: what is null is missing.
    if metadata is None or not _is_binary(metadata):
        raise _invalid("a VARIANT needs a field metadata, and that to be binary", shape)
    _check_values(shape, parts)


def _check_values(shape: Shape, parts: dict[str, Shape]) -> None:
    """Check ``value`` and ``typed_value``."""
    value, typed = parts.get("value"), parts.get("typed_value")
    if value is None and typed is None:
        raise _invalid("there is neither value nor typed_value", shape)
    if value is not None and not _is_binary(value):
        raise _invalid("the field value must be binary", shape)
    if typed is not None:
        _CHECKS[typed.kind](typed)


def _is_binary(shape: Shape) -> bool:
    leaf = shape.leaf
    return leaf is not None and leaf.physical == BYTE_ARRAY and leaf.logical is None


def _parts(shape: Shape, known: tuple[str, ...]) -> dict[str, Shape]:
    """Give the fields of a group by their names."""
    parts = {child.name: child for child in shape.children}
    unknown = [name for name in parts if name not in known]
    if shape.kind != "struct" or unknown or len(parts) != len(shape.children):
        raise _invalid(f"a group of {', '.join(known)} is wanted, each once, and no others", shape)
    return parts


def _check_leaf(shape: Shape) -> None:
    assert shape.leaf is not None
    shredded_type(shape.leaf)


def _check_array(shape: Shape) -> None:
    (element,) = shape.children
    if element.nullable:
        raise _invalid("the elements of a shredded array must be required", element)
    _check_values(element, _parts(element, ("value", "typed_value")))


def _check_object(shape: Shape) -> None:
    names = [child.name for child in shape.children]
    if len(set(names)) != len(names):
        raise _invalid("two fields of a shredded object have one name", shape)
    for child in shape.children:
        if any("\ud800" <= letter <= "\udfff" for letter in child.name):
            raise _invalid("the name of a shredded field is not valid UTF-8", shape)
        parts = _parts(child, ("value", "typed_value"))
        _check_values(child, parts)


def _refuse_map(shape: Shape) -> None:
    raise _invalid("a VARIANT's values cannot be shredded as a MAP", shape)


_CHECKS = {"leaf": _check_leaf, "list": _check_array, "struct": _check_object, "map": _refuse_map}


def _invalid(message: str, shape: Shape) -> InvalidFileError:
    return InvalidFileError(message, column=".".join(shape.path))
