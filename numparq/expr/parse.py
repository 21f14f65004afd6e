"""Parse filter text close to the WHERE clause of SQL into an expression."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from numparq.errors import SchemaError
from numparq.format.schema import Schema

from .expression import Expression, col
from .resolve import resolve_column

__all__ = ["FilterSyntaxError", "parse_filter", "parse_filter_for_schema"]


class FilterSyntaxError(ValueError):
    """A filter text that cannot be parsed; the message says where."""


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


# A column is a name, with dots for fields of structs, or a name in double quotes or backticks. It is followed by one of
# = == != <> < <= > >=, [not] in (...), [not] between ... and ..., is [not] null, [not] like '...' [escape '.'],
# [not] startswith '...' or [not] contains ... Literals are numbers, true, false, and strings in single quotes, which
# also stand for dates, times and decimals.
_TOKENS = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    |(?P<word>[^\W\d]\w*(?:\.\w+)*)
    |(?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_COMPARED: dict[str, Callable[[Any, Any], Expression]] = {
    "=": lambda column, value: column == value,
    "==": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<>": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
_CONSTANTS = {"true": True, "false": False}
_WORDS = {"and", "or", "not", "in", "between", "is", "null", "like", "escape", "startswith", "contains", *_CONSTANTS}
_DEEPEST = 100


def parse_filter(text: str, is_decimal: Callable[[str], bool] = lambda name: False) -> Expression:
    """Parse filter text into an expression; raises FilterSyntaxError.

    `is_decimal` tells by column name whether numbers compared with it are decimals, not floats.
    """
    reader = _Parser(text, is_decimal)
    found = reader.any_of(0)
    reader.end()
    return found


def parse_filter_for_schema(text: str, schema: Callable[[], Schema]) -> Expression:
    """Parse filter text; numbers compared with DECIMAL columns of the schema are decimals.

    `schema` is only called if the text has such a number. Raises FilterSyntaxError.
    """

    def is_decimal(name: str) -> bool:
        try:
            leaf = resolve_column(schema(), name).leaf
        except SchemaError:
            return False  # binding raises a better error
        return leaf.logical is not None and leaf.logical.kind == "DECIMAL"

    return parse_filter(text, is_decimal)


class _Parser:
    """Recursive descent parser of one filter text."""

    def __init__(self, text: str, is_decimal: Callable[[str], bool]) -> None:
        self._text = text
        self._is_decimal = is_decimal
        self._tokens = self._split()
        self._place = 0

    def _split(self) -> list[_Token]:
        tokens, place = [], 0
        end = len(self._text.rstrip())
        while place < end:
            match = _TOKENS.match(self._text, place)
            if match is None or match.lastgroup is None:
                place += len(self._text[place:]) - len(self._text[place:].lstrip())
                self._fail(f"{self._text[place]!r} is not expected", place)
            tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            place = match.end()
        return tokens

    # --- tokens ------------------------------------------------------------------------------------------------------

    def _fail(self, message: str, place: int) -> NoReturn:
        raise FilterSyntaxError(f"the filter cannot be parsed: {message}, at character {place + 1} of {self._text!r}")

    @property
    def _next(self) -> _Token:
        if self._place < len(self._tokens):
            return self._tokens[self._place]
        return _Token("end", "", len(self._text))

    def _take(self) -> _Token:
        token = self._next
        self._place += 1
        return token

    def _is_next(self, *texts: str) -> bool:
        return self._next.kind in ("word", "sign") and self._next.text.lower() in texts

    def _skip(self, text: str) -> bool:
        """Consume a word or sign if it is next; return whether it was."""
        if self._is_next(text):
            self._place += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            self._fail(f"{text!r} is missing", self._next.position)

    def end(self) -> None:
        """Raise FilterSyntaxError if any token is left."""
        if self._next.kind != "end":
            self._fail(f"{self._next.text!r} is not expected", self._next.position)

    # --- predicates ---------------------------------------------------------------------------------------------------

    def any_of(self, depth: int) -> Expression:
        """Parse predicates joined by `or`."""
        found = self._all_of(depth)
        while self._skip("or"):
            found = found | self._all_of(depth)
        return found

    def _all_of(self, depth: int) -> Expression:
        found = self._one(depth)
        while self._skip("and"):
            found = found & self._one(depth)
        return found

    def _one(self, depth: int) -> Expression:
        if depth > _DEEPEST:
            self._fail(f"it is nested more than {_DEEPEST} levels deep", self._next.position)
        if self._skip("not"):
            return ~self._one(depth + 1)
        if self._skip("("):
            found = self.any_of(depth + 1)
            self._expect(")")
            return found
        return self._test()

    def _test(self) -> Expression:
        name = self._name()
        if self._next.text in _COMPARED:
            return _COMPARED[self._take().text](col(name), self._literal(name))
        if self._skip("is"):
            negated = self._skip("not")
            self._expect("null")
            return col(name).is_not_null() if negated else col(name).is_null()
        negated = self._skip("not")
        operator = self._next.text.lower() if self._next.kind == "word" else ""
        if operator not in _OPERATORS:
            self._fail("an operator is missing", self._next.position)
        self._place += 1
        found = _OPERATORS[operator](self, name)
        return ~found if negated else found

    def _in(self, name: str) -> Expression:
        self._expect("(")
        values = [self._literal(name)]
        while self._skip(","):
            values.append(self._literal(name))
        self._expect(")")
        return col(name).isin(values)

    def _between(self, name: str) -> Expression:
        low = self._literal(name)
        self._expect("and")
        return col(name).between(low, self._literal(name))

    def _like(self, name: str) -> Expression:
        pattern = self._literal(name)
        if self._skip("escape"):
            return col(name).like(pattern, escape=self._literal(name))
        return col(name).like(pattern)

    def _startswith(self, name: str) -> Expression:
        return col(name).startswith(self._literal(name))

    def _contains(self, name: str) -> Expression:
        return col(name).contains(self._literal(name))

    # --- names and literals ------------------------------------------------------------------------------------------

    def _name(self) -> str:
        token = self._take()
        if token.kind == "quoted":
            return _unquoted(token.text)
        if token.kind != "word" or token.text.lower() in _WORDS:
            self._fail("a column name is missing", token.position)
        return token.text

    def _literal(self, name: str) -> Any:
        token = self._take()
        if token.kind in ("string", "quoted"):
            return _unquoted(token.text)
        if token.kind == "number":
            if re.fullmatch(r"[-+]?\d+", token.text):
                return int(token.text)
            return Decimal(token.text) if self._is_decimal(name) else float(token.text)
        if token.kind == "word" and token.text.lower() in _CONSTANTS:
            return _CONSTANTS[token.text.lower()]
        self._fail("a number, true, false or a string in single quotes is missing", token.position)


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])


_OPERATORS: dict[str, Callable[[_Parser, str], Expression]] = {
    "in": _Parser._in,
    "between": _Parser._between,
    "like": _Parser._like,
    "startswith": _Parser._startswith,
    "contains": _Parser._contains,
}
