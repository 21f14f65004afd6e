"""The schema: a tree of columns, from the list of SchemaElements that a footer has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .errors import InvalidFileError
from .metadata.footer import Footer
from .metadata.layout import RecordLayout

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)
PHYSICAL_NAMES = ("boolean", "int32", "int64", "int96", "float", "double", "binary", "fixed_len_byte_array")
REQUIRED, OPTIONAL, REPEATED = range(3)
REPETITION_NAMES = ("required", "optional", "repeated")
MAX_DEPTH = 255  # levels beyond that do not occur, and must not make us recurse


@dataclass(frozen=True, slots=True)
class LogicalType:
    """What the values of a column mean (LogicalTypes.md); parameters that a kind does not have are None.

    Parameters
    ----------
    kind : str
        The name in the LogicalType union; INTERVAL besides, which is only a ConvertedType.
    bit_width, signed
        Of INTEGER.
    unit : str
        MILLIS, MICROS or NANOS, of TIME and TIMESTAMP.
    utc : bool
        Whether TIME and TIMESTAMP are adjusted to UTC.
    precision, scale : int
        Of DECIMAL.
    crs, algorithm
        Of GEOMETRY and GEOGRAPHY.
    """

    kind: str
    bit_width: int | None = None
    signed: bool | None = None
    unit: str | None = None
    utc: bool | None = None
    precision: int | None = None
    scale: int | None = None
    crs: str | None = None
    algorithm: int | None = None

    def __str__(self) -> str:
        parameters = {
            "INTEGER": (self.bit_width, "signed" if self.signed else "unsigned"),
            "DECIMAL": (self.precision, self.scale),
            "TIME": (self.unit, "utc" if self.utc else "local"),
            "TIMESTAMP": (self.unit, "utc" if self.utc else "local"),
        }.get(self.kind, tuple(item for item in (self.crs,) if item))
        return f"{self.kind}({', '.join(map(str, parameters))})" if parameters else self.kind


def _integer(bit_width: int, signed: bool) -> LogicalType:
    return LogicalType("INTEGER", bit_width=bit_width, signed=signed)


# ConvertedType -> LogicalType; DECIMAL (5) takes its parameters from the SchemaElement.
_CONVERTED: dict[int, LogicalType] = {
    0: LogicalType("STRING"), 1: LogicalType("MAP"), 2: LogicalType("MAP_KEY_VALUE"), 3: LogicalType("LIST"),
    4: LogicalType("ENUM"), 6: LogicalType("DATE"),
    7: LogicalType("TIME", unit="MILLIS", utc=True), 8: LogicalType("TIME", unit="MICROS", utc=True),
    9: LogicalType("TIMESTAMP", unit="MILLIS", utc=True), 10: LogicalType("TIMESTAMP", unit="MICROS", utc=True),
    11: _integer(8, False), 12: _integer(16, False), 13: _integer(32, False), 14: _integer(64, False),
    15: _integer(8, True), 16: _integer(16, True), 17: _integer(32, True), 18: _integer(64, True),
    19: LogicalType("JSON"), 20: LogicalType("BSON"), 21: LogicalType("INTERVAL"),
}  # fmt: skip
_CONVERTED_DECIMAL = 5


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that holds values.

    Parameters
    ----------
    index : int
        Its ordinal among the leaves, which is that of its column chunks in a row group.
    column : int
        The ordinal of the top-level column that it is, or belongs to.
    path : tuple of str
        The names from the top down.
    physical : int
        The physical type, 0 (BOOLEAN) to 7 (FIXED_LEN_BYTE_ARRAY).
    type_length : int or None
        Bytes of a value, of FIXED_LEN_BYTE_ARRAY.
    logical : LogicalType or None
        None where there is none, or one that this version does not know.
    max_definition_level, max_repetition_level : int
        The largest levels that its values can have.
    """

    index: int
    column: int
    path: tuple[str, ...]
    physical: int
    type_length: int | None
    logical: LogicalType | None
    max_definition_level: int
    max_repetition_level: int

    @property
    def name(self) -> str:
        """The names joined by dots."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Node:
    """An element of the schema: its place in the list, its depth (1: top level), and the ordinal of its first leaf."""

    element: int
    depth: int
    first_leaf: int
    children: int


class Schema:
    """The columns of a file.

    Parameters
    ----------
    footer : Footer
        The file's.

    Attributes
    ----------
    columns : list of str
        The names of the top-level columns.
    num_leaves : int
        Columns that hold values.

    Raises
    ------
    InvalidFileError
        When the list of SchemaElements is no tree.
    """

    def __init__(self, footer: Footer) -> None:
        self._footer = footer
        self._records = footer.schema_records
        self._slots = _slots(footer.schema_layout)
        children = self._records[:, self._slots["num_children"]]
        self.num_leaves = int((children[1:] <= 0).sum())
        self._top = _top_level(children)
        word = self._slots["name"]
        places = self._records[[element for element, _ in self._top], word : word + 2].tolist() if self._top else []
        self.columns = [footer.text(position, length) for position, length in places]

    def flat_leaf(self, position: int) -> Leaf | None:
        """Give a top-level column that holds values itself; None for a nested one.

        Raises
        ------
        InvalidFileError
            When its SchemaElement has no physical type, or one that there is not.
        """
        element, leaf = self._top[position]
        words = self._words(element)
        if words["num_children"] > 0 or words["repetition_type"] == REPEATED:
            return None
        return self._leaf(words, leaf, position, (self.columns[position],))

    def _leaf(self, words: dict[str, int], leaf: int, position: int, path: tuple[str, ...]) -> Leaf:
        if not 0 <= words["type"] <= FIXED_LEN_BYTE_ARRAY:
            raise InvalidFileError("the column has no physical type of this format", column=".".join(path))
        length = words["type_length"] if words["type"] == FIXED_LEN_BYTE_ARRAY else None
        if length is not None and length < 0:
            raise InvalidFileError("a FIXED_LEN_BYTE_ARRAY column must say how long its values are", column=".".join(path))
        optional = int(words["repetition_type"] == OPTIONAL)
        return Leaf(leaf, position, path, words["type"], length, self._logical(words), optional, 0)

    def _words(self, element: int) -> dict[str, int]:
        record = self._records[element].tolist()
        return {name: record[slot] for name, slot in self._slots.items()}

    def _logical(self, words: dict[str, int]) -> LogicalType | None:
        if words["logicalType"] > 0:
            found = _LOGICAL.get(words["logicalType"].bit_length() - 1)
            return found(words, self._footer) if found else None
        if words["converted_type"] == _CONVERTED_DECIMAL:
            return LogicalType("DECIMAL", precision=words["precision"], scale=max(words["scale"], 0))
        return _CONVERTED.get(words["converted_type"])

    @cached_property
    def nodes(self) -> list[Node]:
        """All elements but the root, in order."""
        return _walk(self._records[:, self._slots["num_children"]])

    def __str__(self) -> str:
        lines = ["schema {"]
        closing: list[int] = []
        for node in self.nodes:
            while closing and closing[-1] >= node.depth:
                lines.append("  " * closing.pop() + "}")
            lines.append("  " * node.depth + self._line(node))
            if node.children:
                closing.append(node.depth)
        lines += ["  " * depth + "}" for depth in reversed(closing)]
        return "\n".join([*lines, "}"])

    def _line(self, node: Node) -> str:
        words = self._words(node.element)
        known = 0 <= words["repetition_type"] < len(REPETITION_NAMES)
        repetition = REPETITION_NAMES[words["repetition_type"]] if known else "?"
        name = self._footer.text(words["name"], words["name_length"])
        logical = self._logical(words)
        meaning = f" ({logical})" if logical else ""
        if node.children:
            return f"{repetition} group {name}{meaning} {{"
        physical = PHYSICAL_NAMES[words["type"]] if 0 <= words["type"] < len(PHYSICAL_NAMES) else "?"
        length = f"({words['type_length']})" if words["type"] == FIXED_LEN_BYTE_ARRAY else ""
        return f"{repetition} {physical}{length} {name}{meaning};"

    def __repr__(self) -> str:
        return f"<Schema of {len(self.columns)} columns>\n{self}"


@lru_cache(maxsize=4)
def _slots(record: RecordLayout) -> dict[str, int]:
    """Give the words of a SchemaElement's fields, those of the logical types' parameters among them."""
    names = ("type", "type_length", "repetition_type", "name", "num_children", "converted_type", "scale", "precision")
    slots = {name: record.slots[name].word for name in names}
    slots["name_length"] = slots["name"] + 1
    union = record.slots["logicalType"]
    slots["logicalType"] = union.word
    assert union.record is not None
    for kind, slot in union.record.slots.items():
        if slot.record is not None:
            for name, inner in slot.record.slots.items():
                slots[f"{kind}.{name}"] = union.word + slot.word + inner.word
    return slots


def _decimal(words: dict[str, int], footer: Footer) -> LogicalType:
    return LogicalType("DECIMAL", precision=words["DECIMAL.precision"], scale=words["DECIMAL.scale"])


def _temporal(kind: str) -> Any:
    def make(words: dict[str, int], footer: Footer) -> LogicalType:
        units = {1 << 1: "MILLIS", 1 << 2: "MICROS", 1 << 3: "NANOS"}
        return LogicalType(kind, unit=units.get(words[f"{kind}.unit"]), utc=bool(words[f"{kind}.isAdjustedToUTC"]))

    return make


def _int_type(words: dict[str, int], footer: Footer) -> LogicalType:
    return _integer(words["INTEGER.bitWidth"], bool(words["INTEGER.isSigned"]))


def _geometry(words: dict[str, int], footer: Footer) -> LogicalType:
    return LogicalType("GEOMETRY", crs=footer.text(words["GEOMETRY.crs"], footer.length) or None)


def _plain(kind: str) -> Any:
    return lambda words, footer: LogicalType(kind)


# Field id in the LogicalType union -> what makes the LogicalType.
_LOGICAL: dict[int, Any] = {
    1: _plain("STRING"), 2: _plain("MAP"), 3: _plain("LIST"), 4: _plain("ENUM"), 5: _decimal, 6: _plain("DATE"),
    7: _temporal("TIME"), 8: _temporal("TIMESTAMP"), 10: _int_type, 11: _plain("UNKNOWN"), 12: _plain("JSON"),
    13: _plain("BSON"), 14: _plain("UUID"), 15: _plain("FLOAT16"), 16: _plain("VARIANT"), 17: _plain("GEOMETRY"),
    18: _plain("GEOGRAPHY"), 19: _plain("FILE"),
}  # fmt: skip


def _top_level(children: np.ndarray) -> list[tuple[int, int]]:
    """Find the top-level columns: for each its element and the ordinal of its first leaf."""
    if not len(children):
        raise InvalidFileError("the schema is empty")
    if not (children[1:] > 0).any():
        if max(int(children[0]), 0) != len(children) - 1:
            raise InvalidFileError("the schema's root has another number of columns than there are")
        return list(zip(range(1, len(children)), range(len(children) - 1), strict=True))
    return [(node.element, node.first_leaf) for node in _walk(children) if node.depth == 1]


def _walk(children: np.ndarray) -> list[Node]:
    """Walk over the elements, which stand in depth-first order."""
    counts = np.maximum(children, 0).tolist()
    open_groups = [counts[0]]
    nodes: list[Node] = []
    leaves = 0
    for element, count in enumerate(counts[1:], start=1):
        while open_groups and open_groups[-1] == 0:
            open_groups.pop()
        if not open_groups:
            raise InvalidFileError("the schema has more elements than its groups have children")
        if len(open_groups) > MAX_DEPTH:
            raise InvalidFileError(f"the schema is nested more than {MAX_DEPTH} deep")
        open_groups[-1] -= 1
        nodes.append(Node(element, len(open_groups), leaves, count))
        leaves += count == 0
        open_groups.append(count)
    if any(open_groups):
        raise InvalidFileError("the schema ends before all groups have their children")
    return nodes
