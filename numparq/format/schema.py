"""The schema of a file: columns and leaf columns with their levels, from the footer's schema elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from numparq.errors import InvalidFileError
from numparq.util.bounded_cache import BoundedCache
from numparq.util.pluralize import agree_noun

from .column_names import column_positions, read_names
from .footer.file_metadata import Footer, SchemaElements
from .key_values.spark import TODAYS_CALENDAR, SparkCalendar
from .legacy_calendar import Rebase
from .logical_type import LogicalType, LogicalTypeReader
from .physical_type import FIXED_LEN_BYTE_ARRAY, PHYSICAL_NAMES

REQUIRED, OPTIONAL, REPEATED = range(3)
REPETITION_NAMES = ("required", "optional", "repeated")
MAX_SCHEMA_DEPTH = 255
_MAX_CACHED = 16
_LEAF_BYTES, _NAME_BYTES = 768, 160


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf column.

    Attributes
    ----------
    index : int
        Ordinal among the leaf columns, and of its column chunk in each row group.
    column : int
        Ordinal of its top-level column.
    path : tuple of str
        Names from the top level down.
    physical : int
        Physical type, 0 (BOOLEAN) to 7 (FIXED_LEN_BYTE_ARRAY).
    type_length : int or None
        Bytes of a FIXED_LEN_BYTE_ARRAY value.
    logical : LogicalType or None
        None if it has none or an unknown one.
    max_definition_level, max_repetition_level : int
        Highest levels.
    repetition : int
        REQUIRED, OPTIONAL or REPEATED, of the leaf itself.
    element : int
        Position in the list of schema elements.
    element_levels : tuple of int
        0, then for each enclosing list, outermost first, the lowest definition level at which it has an element.
    rebase : Rebase or None
        Conversion of its values from Spark's legacy calendar.
    is_nested : bool
        Whether it belongs to a nested column: one that is a group or repeated.
    """

    index: int
    column: int
    path: tuple[str, ...]
    physical: int
    type_length: int | None
    logical: LogicalType | None
    max_definition_level: int
    max_repetition_level: int
    repetition: int = OPTIONAL
    element: int = -1
    element_levels: tuple[int, ...] = (0,)
    rebase: Rebase | None = None
    is_nested: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_nested", len(self.path) > 1 or self.max_repetition_level > 0)

    def __hash__(self) -> int:
        return hash((self.index, self.path))  # cheap, and distinct for nearly all leaf columns

    @property
    def name(self) -> str:
        """The path joined by dots."""
        return ".".join(self.path)


leaf_ordinal = attrgetter("index")


class SchemaElement(NamedTuple):
    """A schema element of the footer.

    Attributes
    ----------
    repetition : int
        REQUIRED, OPTIONAL or REPEATED.
    leaf : int or None
        Ordinal of the leaf column; None for a group.
    children : list of int
        Positions of a group's elements.
    """

    name: str
    repetition: int
    logical: LogicalType | None
    leaf: int | None
    children: list[int]


class SchemaTree(NamedTuple):
    """Parent and depth of each schema element; both are 0 for the root, and the top level has depth 1."""

    parent: list[int]
    depth: list[int]


def footer_schema(footer: Footer, calendar: SparkCalendar | None = None) -> Schema:
    """Return the schema of a footer; files with the same schema and calendar share one cached instance.

    `calendar` is that of files whose key-values do not say.
    """
    if calendar is None and footer.plain_schema is not None:
        plain: Schema = footer.plain_schema
        return plain
    stored = SparkCalendar.from_key_values(footer.key_value_metadata, calendar)
    made = shared_schema(footer.schema_elements, stored)
    if calendar is None:
        footer.plain_schema = made
    return made


def shared_schema(part: SchemaElements, calendar: SparkCalendar) -> Schema:
    """Return the schema of schema elements in a calendar; one cached instance unless it is large."""
    return _shared(part, calendar) if part.is_cached else Schema(part, calendar)


class Schema:
    """The schema of a file; InvalidFileError if the schema elements form no tree.

    Attributes
    ----------
    num_columns : int
        Number of top-level columns.
    num_leaves : int
        Number of leaf columns.
    calendar : SparkCalendar
        Calendar of its days and instants.
    """

    def __init__(self, footer: SchemaElements, calendar: SparkCalendar = TODAYS_CALENDAR) -> None:
        self._footer = footer
        self.calendar = calendar
        self._records = footer.schema_records
        slots = footer.schema_layout.slots
        self._name, self._type, self._length = slots["name"].word, slots["type"].word, slots["type_length"].word
        self._repetition = slots["repetition_type"].word
        self._children = np.maximum(self._records[:, slots["num_children"].word], 0)
        self._logical_types = LogicalTypeReader(footer.schema_layout, footer.text)
        self.num_leaves = footer.num_leaves
        self._top = self._top_level()
        self._first_leaf = np.cumsum(footer.is_leaf) - footer.is_leaf  # number of leaf columns before each element
        self.num_columns = len(self._top)
        self._flat_leaves: dict[int, Leaf | None] = {}
        self._leaves: dict[int, Leaf] = {}
        # Values derived from the schema and the key-values in their keys, for later reads of files with this schema.
        self._cache = BoundedCache(_MAX_CACHED)

    # --- the tree ---------------------------------------------------------------------------------------------------

    def _top_level(self) -> np.ndarray:
        """Return the schema elements of the top-level columns."""
        if not len(self._children):
            raise InvalidFileError("the schema is empty")
        if self._children[1:].any():
            return np.flatnonzero(np.array(self._tree.depth) == 1)
        if self._children[0] != len(self._children) - 1:
            raise InvalidFileError(
                f"the schema's root claims {self._children[0]} {agree_noun(self._children[0], 'column')}, but "
                f"has {len(self._children) - 1}"
            )
        return np.arange(1, len(self._children))

    @cached_property
    def _tree(self) -> SchemaTree:
        return _walk(self._children.tolist())

    @cached_property
    def is_flat(self) -> bool:
        """Whether every column is a leaf column that is not repeated."""
        repeated = self._records[1:, self._repetition] == REPEATED
        return bool(self._footer.is_leaf[1:].all() and not repeated.any())

    def has_leaves(self, position: int) -> bool:
        """Whether a top-level column is or contains a leaf column."""
        return not self.has_empty_groups or bool(self.column_leaves(position))

    @cached_property
    def has_empty_groups(self) -> bool:
        """Whether the schema has groups without fields, which have no column chunk."""
        return bool(((self._children[1:] == 0) & ~self._footer.is_leaf[1:].astype(bool)).any())

    def _names(self, elements: np.ndarray) -> list[str]:
        """Return the names of schema elements."""
        return read_names(self._footer, self._records[elements, self._name], self._records[elements, self._name + 1])

    @property
    def num_bytes(self) -> int:
        """Estimate of the bytes in memory of names and leaf columns so far, with pandas metadata and Arrow types."""
        names = _NAME_BYTES * self.num_columns if "columns" in self.__dict__ else 0
        return names + _LEAF_BYTES * (len(self._flat_leaves) + len(self._leaves))

    # --- columns ----------------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> list[str]:
        """Names of the top-level columns."""
        return self._names(self._top)

    @property
    def names(self) -> list[str]:
        """Names of the top-level columns, as pyarrow calls them."""
        return self.columns

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of each top-level column by name; the first of equal names counts."""
        places = self._records[self._top, self._name : self._name + 2]
        return column_positions(self._footer.content, places, lambda: self.columns)

    def column_leaves(self, position: int) -> range:
        """Return the ordinals of a top-level column's leaf columns."""
        end = self._first_leaf[self._top[position + 1]] if position + 1 < len(self._top) else self.num_leaves
        return range(int(self._first_leaf[self._top[position]]), int(end))

    def flat_leaf(self, position: int) -> Leaf | None:
        """Return a top-level column as a leaf column; None if it is nested.

        InvalidFileError if its physical type is unknown or its length is missing.
        """
        if position not in self._flat_leaves:
            self._flat_leaves[position] = self._flat_leaf(position)
        return self._flat_leaves[position]

    def _flat_leaf(self, position: int) -> Leaf | None:
        element = int(self._top[position])
        if not self._footer.is_leaf[element]:
            return None
        record = self._records[element].tolist()
        if record[self._repetition] == REPEATED:
            return None
        optional = int(record[self._repetition] == OPTIONAL)
        return self._leaf(element, record, position, (self.column_name(position),), (optional, 0))

    def column_name(self, position: int) -> str:
        """Return the name of a top-level column."""
        return self.columns[position] if "columns" in self.__dict__ else self._names(self._top[position, None])[0]

    def column_element(self, position: int) -> int:
        """Return the schema element of a top-level column."""
        return int(self._top[position])

    def field_id(self, element: int) -> int | None:
        """Return the field id of a schema element, or None."""
        slot, record = self._footer.schema_layout.slots["field_id"], self._records[element]
        return int(record[slot.word]) if int(record[0]) >> slot.field.id & 1 else None

    def schema_element(self, element: int) -> SchemaElement:
        """Return a schema element with its children; InvalidFileError if its repetition type is unknown."""
        record = self._records[element].tolist()
        (name,) = self._names(np.array([element]))
        repetition = max(record[self._repetition], REQUIRED)
        if repetition > REPEATED:
            raise InvalidFileError(f"the column has the unknown repetition type {repetition}", column=name)
        leaf = int(self._first_leaf[element]) if self._footer.is_leaf[element] else None
        depths = self._tree.depth
        children = []
        child = element + 1
        while child < len(depths) and depths[child] > depths[element]:
            if depths[child] == depths[element] + 1:
                children.append(child)
            child += 1
        return SchemaElement(name, repetition, self._logical_types.read(record), leaf, children)

    def leaf(self, index: int) -> Leaf:
        """Return a leaf column by its ordinal; InvalidFileError as in `flat_leaf`."""
        if index not in self._leaves:
            self._leaves[index] = self._leaf_of(index)
        return self._leaves[index]

    def _leaf_of(self, index: int) -> Leaf:
        element = int(self._leaf_elements[index])
        chain = [element]
        while self._tree.depth[chain[-1]] > 1:
            chain.append(self._tree.parent[chain[-1]])
        chain.reverse()
        repetitions = self._records[chain, self._repetition]
        steps = np.cumsum((repetitions == OPTIONAL) | (repetitions == REPEATED))
        element_levels = (0, *steps[repetitions == REPEATED].tolist())
        levels = int(steps[-1]), len(element_levels) - 1
        position = int(np.searchsorted(self._top, chain[0]))
        path = tuple(self._names(np.array(chain)))
        leaf = self._leaf(element, self._records[element].tolist(), position, path, levels)
        return replace(leaf, element_levels=element_levels)

    @cached_property
    def _leaf_elements(self) -> np.ndarray:
        return np.flatnonzero(self._footer.is_leaf)

    def __iter__(self) -> Iterator[Leaf]:
        return map(self.leaf, range(self.num_leaves))

    def _leaf(
        self, element: int, record: list[int], position: int, path: tuple[str, ...], levels: tuple[int, int]
    ) -> Leaf:
        physical, repetition = record[self._type], max(record[self._repetition], REQUIRED)  # -1: absent
        if not 0 <= physical <= FIXED_LEN_BYTE_ARRAY:
            raise InvalidFileError(
                "the column has no physical type" if physical == -1 else f"the physical type {physical} is unknown",
                column=".".join(path),
            )
        length = record[self._length] if physical == FIXED_LEN_BYTE_ARRAY else None
        if length is not None and length < 0:
            raise InvalidFileError("a FIXED_LEN_BYTE_ARRAY column has no valid type_length", column=".".join(path))
        if repetition > REPEATED:
            raise InvalidFileError(f"the column has the unknown repetition type {repetition}", column=".".join(path))
        index, logical = int(self._first_leaf[element]), self._logical_types.read(record)
        logical = self.calendar.logical_type(physical, logical)
        leaf = Leaf(index, position, path, physical, length, logical, *levels, repetition, element)
        rebase = self.calendar.rebase(physical, logical)
        return leaf if rebase is None else replace(leaf, rebase=rebase)

    # --- text -------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = ["schema {"]
        depths, children = self._tree.depth, self._children.tolist()
        names = self._names(np.arange(len(depths)))
        closing: list[int] = []
        for element in range(1, len(depths)):
            depth = depths[element]
            while closing and closing[-1] >= depth:
                lines.append("  " * closing.pop() + "}")
            lines.append("  " * depth + self._line(element, names[element]))
            if children[element]:
                closing.append(depth)
        lines += ["  " * depth + "}" for depth in reversed(closing)]
        return "\n".join([*lines, "}"])

    def _line(self, element: int, name: str) -> str:
        record = self._records[element].tolist()
        repetition, physical = record[self._repetition], record[self._type]
        logical = self._logical_types.read(record)
        words = [REPETITION_NAMES[repetition] if 0 <= repetition <= REPEATED else "?"]
        if not self._footer.is_leaf[element]:
            words.append("group")
        elif physical == FIXED_LEN_BYTE_ARRAY:
            words.append(f"{PHYSICAL_NAMES[physical]}({record[self._length]})")
        else:
            words.append(PHYSICAL_NAMES[physical] if 0 <= physical < len(PHYSICAL_NAMES) else "?")
        words += [name, f"({logical})"] if logical else [name]
        end = ";" if self._footer.is_leaf[element] else " {" if self._children[element] else " {}"
        return " ".join(words) + end

    def __reduce__(self) -> tuple[object, ...]:
        return shared_schema, (self._footer, self.calendar)

    def __repr__(self) -> str:
        return f"<Schema of {self.num_columns} {agree_noun(self.num_columns, 'column')}>\n{self}"


@lru_cache(maxsize=64)
def _shared(part: SchemaElements, calendar: SparkCalendar) -> Schema:
    return Schema(part, calendar)


def _walk(children: list[int]) -> SchemaTree:
    """Return the tree of schema elements, given the child count of each in depth-first order."""
    parent, depth = [0] * len(children), [0] * len(children)
    groups, to_come = [0], [children[0]]
    for element, count in enumerate(children[1:], start=1):
        while to_come and not to_come[-1]:
            to_come.pop()
            groups.pop()
        if not to_come:
            raise InvalidFileError("the schema has more elements than its groups have children")
        to_come[-1] -= 1
        parent[element], depth[element] = groups[-1], len(groups)
        if count:
            if len(groups) > MAX_SCHEMA_DEPTH:
                raise InvalidFileError(f"the schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")
            groups.append(element)
            to_come.append(count)
    if any(to_come):
        raise InvalidFileError("the schema ends before all groups have their children")
    return SchemaTree(parent, depth)
