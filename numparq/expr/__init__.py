"""Expressions: col(), filter lists, binding to a schema, evaluation over decoded columns."""

from __future__ import annotations

from .column import col
from .dnf import from_dnf
from .expression import Expression
from .filters import as_expression

__all__ = ["Expression", "as_expression", "col", "from_dnf"]
