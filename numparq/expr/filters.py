"""The `filters` argument of every read, in each form that it takes, as an expression."""

from __future__ import annotations

from .dnf import from_dnf
from .expression import Expression, Operand, as_condition
from .parse import parse_filter
from .pyarrow_expression import from_pyarrow, is_pyarrow_expression


def as_expression(filters: object) -> Expression:
    """Return the `filters` argument as an expression.

    It is an Expression, a column of booleans, text, a pyarrow expression, a tuple, or a list in disjunctive normal
    form. Raises TypeError for other types. Raises ValueError for empty lists, tuples without three items, unknown
    operators, text that cannot be parsed, and pyarrow functions without an exact counterpart.
    """
    if isinstance(filters, Operand):
        return as_condition(filters)
    if isinstance(filters, str):
        return parse_filter(filters)
    if is_pyarrow_expression(filters):
        return from_pyarrow(filters)
    return from_dnf(filters)
