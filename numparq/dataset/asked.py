"""What an expression asks of a dataset: partition keys and columns, each found once, and then once in each file.

An expression is bound to the types of the dataset, whatever those of its files are. For that each thing asked has a
leaf of its own, numbered by its place in `AskedColumns.items`, and one level more optional than its column is: there
may be files that lack the column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arrow_schema import ArrowType
from ..filtering.condition import Origins
from ..opened import OpenedFile
from ..predicate.columns import Columns, Found, find, no_column
from ..predicate.domain import Domain, domain_of
from ..predicate.expression import Name
from ..schema import Leaf
from ..selection import NestedColumn, select_column

if TYPE_CHECKING:
    from .partitions import Partitions
    from .resolution import DatasetSchema

__all__ = ["Asked", "AskedColumns", "InFile", "PartitionKeys", "key_of"]


_MOST_KEPT = 64


class InFile(NamedTuple):
    """Where in a file something is that is asked.

    Attributes
    ----------
    leaf : Leaf
        The column, or the first leaf within it.
    level : int
        The definition level from which on it is there.
    domain : Domain
        The leaf's keys.
    """

    leaf: Leaf
    level: int
    domain: Domain


@dataclass(frozen=True)
class Asked:
    """Something that an expression asks.

    Parameters
    ----------
    found : Found
        What its name leads to, with the leaf that it is bound to.
    origin : ArrowType or None
        Its type by the Arrow schema.
    key : int
        Which partition key it is; -1 for a column.
    column : Leaf or NestedColumn or None
        The column of the prototype, as it is selected; None for a partition key.
    """

    found: Found
    origin: ArrowType | None = None
    key: int = -1
    column: Leaf | NestedColumn | None = None


def key_of(name: Name, partitions: Partitions) -> int:
    """Tell which partition key a name of an expression is; -1 if it is none."""
    key = name[0] if isinstance(name, tuple) and len(name) == 1 else name
    return partitions.keys.index(key) if isinstance(key, str) and key in partitions.keys else -1


class _Numbered(Columns):
    """Finds what is asked, and gives each thing a leaf of its own.

    Attributes
    ----------
    items : list of Asked
        By the ordinals of these leaves.
    """

    def __init__(self) -> None:
        self.items: list[Asked] = []
        self._by_name: dict[Any, Found] = {}

    def find(self, name: Name) -> Found:
        """Find what a name leads to; parameters and errors as of `numparq.predicate.columns.find`."""
        if name not in self._by_name:
            made = self._made(name)
            same = [item.found for item in self.items if (item.found.path, item.key) == (made.found.path, made.key)]
            if not same:
                self.items.append(made)
            self._by_name[name] = same[0] if same else made.found
        return self._by_name[name]

    def get(self, index: int) -> ArrowType | None:
        """Give the Arrow type of something asked, by the ordinal of its leaf, as `bind` wants to have it."""
        return self.items[index].origin

    def _made(self, name: Name) -> Asked:
        raise NotImplementedError

    def _partition(self, key: int, partitions: Partitions) -> Asked:
        name = partitions.keys[key]
        leaf = replace(partitions.leaf(name), index=len(self.items))
        return Asked(Found(leaf, True, leaf.max_definition_level, 0, [leaf], (name,)), key=key)


class PartitionKeys(_Numbered):
    """The partition keys alone, as columns of an expression.

    Parameters
    ----------
    partitions : Partitions
        Of the dataset.
    """

    def __init__(self, partitions: Partitions) -> None:
        super().__init__()
        self._partitions = partitions

    def _made(self, name: Name) -> Asked:
        key = key_of(name, self._partitions)
        if key < 0:
            raise no_column("the dataset", name, self._partitions.keys)
        return self._partition(key, self._partitions)


class AskedColumns(_Numbered):
    """Partition keys and columns of a dataset that an expression asks.

    Parameters
    ----------
    dataset_schema : DatasetSchema
        Of all files.
    partitions : Partitions
        A partition key wins over a column of that name.
    """

    def __init__(self, dataset_schema: DatasetSchema, partitions: Partitions) -> None:
        super().__init__()
        self._schema = dataset_schema
        self._partitions = partitions
        self._origins = Origins(dataset_schema.prototype)
        self._within: dict[tuple[int, int], tuple[Any, tuple[InFile | None, ...]]] = {}

    def _made(self, name: Name) -> Asked:
        key = key_of(name, self._partitions)
        return self._partition(key, self._partitions) if key >= 0 else self._column(name)

    def _column(self, name: Name) -> Asked:
        schema, keys = self._schema.prototype.schema, self._partitions.keys
        top = name[0] if isinstance(name, tuple) else name if name in schema.positions else name.split(".")[0]
        if top in keys or top not in schema.positions:
            known = [*keys, *(column for column in schema.columns if column not in keys)]
            known += [leaf.name for leaf in map(schema.leaf, range(min(schema.num_leaves, 1000)))]
            raise no_column("the dataset", name, known)
        found = find(schema, name)
        leaf = replace(
            found.leaf, index=len(self.items), max_definition_level=found.leaf.max_definition_level + 1,
            element_levels=(0, *(level + 1 for level in found.leaf.element_levels[1:])),
        )  # fmt: skip
        bound = found._replace(leaf=leaf, level=found.level + 1)
        return Asked(bound, self._origins.get(found.leaf.index), column=self._selected(found.path))

    def _selected(self, path: tuple[str, ...]) -> Leaf | NestedColumn:
        """Select what a path leads to, as ``columns=`` does; of what is in a list or map, that list or map."""
        for length in range(len(path), 0, -1):
            column = select_column(self._schema.prototype.schema, path[:length])
            if isinstance(column, Leaf) or not column.is_pruned:
                return column
        raise AssertionError("a top-level column is a whole one")

    def within(self, file: OpenedFile) -> tuple[InFile | None, ...]:
        """Find in a file what is asked.

        Parameters
        ----------
        file : OpenedFile
            One of the dataset's.

        Returns
        -------
        tuple of InFile or None
            An item for each of `items`; None for partition keys, and for what the file has only nulls of.
        """
        about = file.schema, file.arrow_schema  # the same objects for all files that were written alike
        known = self._within.get((id(about[0]), id(about[1])))
        if known is None or len(known[1]) != len(self.items):
            known = about, self._looked_up(file)
            if len(self._within) >= _MOST_KEPT:
                self._within.clear()
            self._within[id(about[0]), id(about[1])] = known
        return known[1]

    def _looked_up(self, file: OpenedFile) -> tuple[InFile | None, ...]:
        columns = [item.column for item in self.items if item.column is not None]
        matches = iter(self._schema.matches(file, columns)) if columns else iter(())
        return tuple(None if item.column is None else _in_file(file, next(matches).column) for item in self.items)


def _in_file(file: OpenedFile, column: Leaf | NestedColumn | None) -> InFile | None:
    """Find the leaf of a file's column."""
    if column is None:
        return None
    if isinstance(column, Leaf):
        leaf, level, is_leaf = column, column.max_definition_level, True
    else:
        leaf, level, is_leaf = column.leaves[0], column.shape.level, column.shape.leaf is not None
    origin = None if leaf.is_nested else file.arrow_schema.type_of(leaf.column)
    domain = domain_of(leaf, origin)
    return None if is_leaf and domain.kind == "none" else InFile(leaf, level, domain)
