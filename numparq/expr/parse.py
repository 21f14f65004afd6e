"""Parse filter text close to the WHERE clause of SQL into an expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn

from .column import ColumnReference, col
from .expression import ColumnName, Expression, LiteralError, as_condition
from .literals import NumberText
from .normalize import all_of, any_of
from .temporal import parse_date, parse_timestamp


class Token(NamedTuple):
    """Token of filter text; its kind is a group of the parser's pattern, or ``end``."""

    kind: str
    text: str
    position: int


# The grammar is that of docs/filtering.md, "Write text".
_TOKENS = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    |(?P<word>[^\W\d]\w*(?:\.\w+)*)
    |(?P<foreign>=>|=<|&&?|\|\|?|~|!(?!=))
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
_OPERATORS = ("in", "between", "like", "startswith", "endswith", "contains")
_WORDS = {"and", "or", "not", "is", "null", "escape", *_OPERATORS, *_CONSTANTS}
_TYPED: dict[str, Callable[[str], Any]] = {"date": parse_date, "timestamp": parse_timestamp}
# Operators of other languages -> what to write instead.
_ADVICE = {
    **dict.fromkeys(("&", "&&"), "write 'and'"),
    **dict.fromkeys(("|", "||"), "write 'or'"),
    **dict.fromkeys(("~", "!"), "write 'not'"),
    "=>": "write >=",
    "=<": "write <=",
}
INTEGER = re.compile(r"[-+]?\d+")
_DEEPEST = 100


def parse_filter(text: str) -> Expression:
    """Parse filter text into an expression; raises ValueError."""
    return FilterParser(text).parse()


class FilterParser:
    """Recursive descent parser of one filter text; a dialect overrides its tables and literals.

    Attributes
    ----------
    tokens : re.Pattern
        Pattern of a token, with a group for each kind.
    comparisons : mapping
        Predicate of a column and its operand, by operator.
    default_escape : str or None
        Escape character of LIKE without ``escape``.
    """

    tokens: ClassVar[re.Pattern[str]] = _TOKENS
    comparisons: ClassVar[Mapping[str, Callable[[Any, Any], Expression]]] = _COMPARED
    default_escape: ClassVar[str | None] = None

    def parse(self) -> Expression:
        """Parse the whole text."""
        found = self._any_of(0)
        if self._next.kind != "end":
            self.fail(f"{self._next.text!r} is not expected", self._next.position)
        return found

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._place = 0

    def _split(self) -> list[Token]:
        tokens, place = [], 0
        end = len(self._text.rstrip())
        while place < end:
            match = self.tokens.match(self._text, place)
            if match is None or match.lastgroup is None:
                place += len(self._text[place:]) - len(self._text[place:].lstrip())
                self.fail(f"{self._text[place]!r} is not expected", place)
            if match.lastgroup == "foreign":
                sign = match["foreign"]
                self.fail(f"{sign!r} is not expected; {_ADVICE[sign]}", match.start("foreign"))
            tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            place = match.end()
        return tokens

    # --- tokens ------------------------------------------------------------------------------------------------------

    def fail(self, message: str, place: int) -> NoReturn:
        """Raise ValueError with the position of a character."""
        raise ValueError(f"the filter cannot be parsed: {message}, at character {place + 1} of {self._text!r}")

    @property
    def _next(self) -> Token:
        if self._place < len(self._tokens):
            return self._tokens[self._place]
        return Token("end", "", len(self._text))

    def _take(self) -> Token:
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
            self.fail(f"{text!r} is missing", self._next.position)

    # --- predicates ---------------------------------------------------------------------------------------------------

    def _any_of(self, depth: int) -> Expression:
        """Parse predicates joined by `or`."""
        parts = [self._all_of(depth)]
        while self._skip("or"):
            parts.append(self._all_of(depth))
        return any_of(parts)

    def _all_of(self, depth: int) -> Expression:
        parts = [self._one(depth)]
        while self._skip("and"):
            parts.append(self._one(depth))
        return all_of(parts)

    def _one(self, depth: int) -> Expression:
        if depth > _DEEPEST:
            self.fail(f"it is nested more than {_DEEPEST} levels deep", self._next.position)
        if self._skip("not"):
            return ~self._one(depth + 1)
        if self._skip("("):
            found = self._any_of(depth + 1)
            self._expect(")")
            return found
        return self._test()

    def _test(self) -> Expression:
        name = self._name()
        if self._next.text in self.comparisons:
            return self.comparisons[self._take().text](col(name), self._operand())
        if self._skip("is"):
            return self._is(col(name))
        if self._next.kind == "end" or self._is_next(")", "and", "or"):
            return as_condition(col(name))
        negated = self._skip("not")
        operator = self._next
        if not self._is_word(operator, *_OPERATORS):
            known = " ".join((*self.comparisons, "is", *_OPERATORS))
            self.fail(f"an operator is missing: {known}", operator.position)
        self._place += 1
        try:
            found: Expression = getattr(self, f"_{operator.text.lower()}")(col(name))
        except TypeError as error:  # a literal that the operator does not take
            self.fail(str(error), operator.position)
        return ~found if negated else found

    def _is(self, column: ColumnReference) -> Expression:
        """Parse what follows `is`."""
        negated = self._skip("not")
        test = self._take()
        if negated and self._is_word(test, "null"):
            return column.is_not_null()
        if not self._is_word(test, *_STATES):
            self.fail("'null', 'nan', 'true' or 'false' is missing", test.position)
        found = _STATES[test.text.lower()](column)
        return ~found if negated else found

    def _is_word(self, token: Token, *words: str) -> bool:
        return token.kind == "word" and token.text.lower() in words

    def _in(self, column: ColumnReference) -> Expression:
        self._expect("(")
        values = [self._literal()]
        while self._skip(","):
            values.append(self._literal())
        self._expect(")")
        return self.in_list(column, values)

    def _between(self, column: ColumnReference) -> Expression:
        low = self._operand()
        self._expect("and")
        return self.comparisons[">="](column, low) & self.comparisons["<="](column, self._operand())

    def _like(self, column: ColumnReference) -> Expression:
        pattern = self._literal()
        if not self._skip("escape"):
            return column.like(pattern, self.default_escape)
        place, escape = self._next.position, self._literal()
        try:
            return column.like(pattern, escape)
        except ValueError as error:
            self.fail(str(error), place)

    def _startswith(self, column: ColumnReference) -> Expression:
        return column.startswith(self._literal())

    def _endswith(self, column: ColumnReference) -> Expression:
        return column.endswith(self._literal())

    def _contains(self, column: ColumnReference) -> Expression:
        return column.contains(self._literal())

    # --- names and literals ------------------------------------------------------------------------------------------

    def _name(self) -> ColumnName:
        token = self._take()
        if token.kind not in ("quoted", "word") or token.text.lower() in _WORDS:
            self.fail("a column name is missing", token.position)
        return self.column_name(token)

    def _operand(self) -> Any:
        """Parse what a column is compared with: a literal, or a column by its name or in backticks."""
        token = self._next
        is_name = token.kind == "word" and token.text.lower() not in _WORDS and not self._is_typed_literal()
        return col(self._name()) if is_name or token.text.startswith("`") else self._literal("a column, ")

    def _is_typed_literal(self) -> bool:
        """Whether a literal such as ``DATE '2024-01-31'`` is next."""
        after = self._tokens[self._place + 1 : self._place + 2]
        return self._next.text.lower() in _TYPED and bool(after) and after[0].kind == "string"

    def _literal(self, others: str = "") -> Any:
        is_typed = self._is_typed_literal()
        token = self._take()
        if is_typed:
            return self.typed_literal(token, self._take())
        if token.kind in ("string", "quoted"):
            return self.text(token)
        if token.kind == "number":
            return self.number(token)
        if token.kind == "word" and token.text.lower() in _CONSTANTS:
            return _CONSTANTS[token.text.lower()]
        if token.text.lower() == "null":
            self.fail("nothing equals null, write 'is null'", token.position)
        self.fail(f"{others}a number, true, false or a string in single quotes is missing", token.position)

    # --- what a dialect overrides -------------------------------------------------------------------------------------

    def column_name(self, token: Token) -> ColumnName:
        """Return the column that a name means."""
        return unquote(token.text) if token.kind == "quoted" else token.text

    def text(self, token: Token) -> str:
        """Return a string."""
        return unquote(token.text)

    def typed_literal(self, kind: Token, token: Token) -> Any:
        """Return the date or timestamp of a string after its type."""
        try:
            return _TYPED[kind.text.lower()](self.text(token))
        except LiteralError as error:
            self.fail(f"{kind.text} {token.text}: {error}", kind.position)

    def number(self, token: Token) -> Any:
        """Return a number: exact, but a plain float beside floats."""
        return int(token.text) if INTEGER.fullmatch(token.text) else NumberText(token.text)

    def in_list(self, column: ColumnReference, values: list[Any]) -> Expression:
        """Return the predicate of an IN list."""
        return column.isin(values)


def unquote(text: str) -> str:
    """Return quoted text without its quotes."""
    return text[1:-1].replace(text[0] * 2, text[0])


# Tests after `is`. As in SQL, a null is neither true nor false.
_STATES: dict[str, Callable[[ColumnReference], Expression]] = {
    "null": lambda column: column.is_null(),
    "nan": lambda column: column.is_nan(),
    "true": lambda column: column.is_not_null() & column,
    "false": lambda column: column.is_not_null() & ~column,
}
