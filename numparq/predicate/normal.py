"""Normal form: negations only at the tests, nothing nested that need not be, no constants inside.

In this form nothing is above a test but AND and OR, in which unknown and false come to the same: a row is not wanted.
So whoever evaluates it, or skips by it, need not tell them apart. Comparisons are not negated by turning them round
(NOT x > 3 holds for NaN, x <= 3 does not): a negated test stays what it is, with a Not around it.
"""

from __future__ import annotations

from .expression import And, Constant, Expression, Not, Or, Test

# What is the same as another test negated, of nulls and NaNs too.
_POSITIVE = {"!=": "==", "not in": "in", "is not null": "is null"}


def normal_form(expression: Expression) -> Expression:
    """Bring an expression to its normal form.

    Parameters
    ----------
    expression : Expression
        Any.

    Returns
    -------
    Expression
        Of And, Or, Test and ``Not(Test)``, or a Constant; no test is ``!=``, ``not in`` or ``is not null``.
    """
    return _normal(expression, False)


def _normal(expression: Expression, negated: bool) -> Expression:
    if isinstance(expression, Not):
        return _normal(expression.part, not negated)
    if isinstance(expression, Constant):
        return Constant(expression.value != negated)
    if isinstance(expression, (And, Or)):
        together = all_of if isinstance(expression, And) != negated else any_of
        return together([_normal(part, negated) for part in expression.parts])
    assert isinstance(expression, Test)
    if expression.op in _POSITIVE:
        expression, negated = Test(expression.name, _POSITIVE[expression.op], expression.operand), not negated
    return Not(expression) if negated else expression


def all_of(parts: list) -> Expression:
    """Join parts by AND, without constants, and without ANDs within it."""
    return _joined(parts, And, Constant(True), Constant(False))


def any_of(parts: list) -> Expression:
    """Join parts by OR, as `all_of` does by AND."""
    return _joined(parts, Or, Constant(False), Constant(True))


def _joined(parts: list, kind: type[And] | type[Or], neutral: Constant, decisive: Constant) -> Expression:
    kept: list = []
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else [part]:
            if inner == decisive:
                return decisive
            if inner != neutral:
                kept.append(inner)
    return neutral if not kept else kept[0] if len(kept) == 1 else kind(tuple(kept))
