"""Schemas that a consumer of a stream asks for, as far as they are granted."""

from __future__ import annotations

from typing import Any

from ..arrow import pyarrow

__all__ = ["granted"]


def granted(schema: Any, requested: Any) -> Any:
    """Give a schema as it was asked for, where that is but another width of offsets.

    Parameters
    ----------
    schema : pyarrow.Schema
        What there is.
    requested : PyCapsule
        What is asked for. The fields are told by their names and order; a schema of other ones is not granted.

    Returns
    -------
    pyarrow.Schema
        `schema`, its strings and bytes with offsets as wide as they are asked for.
    """
    pa = pyarrow()
    wanted = pa.Schema._import_from_c_capsule(requested)
    if wanted.names != schema.names:
        return schema
    families = [[getattr(pa, name)(), getattr(pa, f"large_{name}")()] for name in ("string", "binary")]
    fields = []
    for field, other in zip(schema, wanted, strict=True):
        free = any(field.type in family and other.type in family for family in families)
        fields.append(field.with_type(other.type) if free else field)
    return pa.schema(fields, schema.metadata)
