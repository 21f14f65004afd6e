"""Expressions: col(), filter lists, binding to a schema, evaluation over decoded columns."""

from __future__ import annotations

from .dnf import as_expression, from_dnf
from .expression import Expression, col

__all__ = ["Expression", "as_expression", "col", "from_dnf"]
