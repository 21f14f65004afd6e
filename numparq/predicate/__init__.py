"""Predicates: which rows are wanted, as plain data, without reading anything.

`col` and `as_expression` make expressions, `bind` holds one against a schema; `may_match` and `must_match` say what
statistics tell of it, `may_contain` what Bloom filters do, and `evaluate` which rows satisfy it.
"""

from __future__ import annotations

from .dnf import as_expression, from_dnf
from .expression import Expression, col

__all__ = ["Expression", "as_expression", "col", "from_dnf"]
