"""File pruners: the `FilePruner` protocol, by partition values and by footer statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.listing.files import DataFile, PartitionIndex
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.partitions.predicate import PartitionComparison, PartitionPredicate, wrap_partition_predicates
from numparq.errors import SchemaError
from numparq.expr.bind import bind
from numparq.expr.bound import describe, filter_leaves
from numparq.expr.expression import And, ColumnPredicate, Constant, Expression, Not, Or
from numparq.expr.filters import as_expression
from numparq.expr.normalize import all_of, any_of, normalize
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.open_file import OpenFile
from numparq.prune.match import containers_may_match
from numparq.prune.statistics import row_group_statistics
from numparq.util.pluralize import agree_noun

from .filter_columns import PartitionKeyColumns, partition_key_ordinal

if TYPE_CHECKING:
    from .dataset_filter import DatasetFilter


class FilePruner(Protocol):
    """Protocol of file pruners: objects that know which files of a dataset may have rows that match a query.

    A pruner is made for one query and knows its filter. It must keep every file that it does not know or cannot judge:
    a pruned file is never opened, and nothing checks the decision.

    Attributes
    ----------
    name : str
        Name of the pruner in plans, such as ``"partitions"``.

    Notes
    -----
    A pruner may also have an attribute ``reason``: text for plans that says why it prunes files.

    Examples
    --------
    A pruner that knows from another source which days a file has:

    >>> import numpy as np
    >>> class DayPruner:
    ...     name = "days"
    ...     def __init__(self, wanted, days_by_path):
    ...         self.wanted, self.days = wanted, days_by_path
    ...     def keep(self, files):
    ...         return np.array([self.wanted in self.days.get(file.path, [self.wanted]) for file in files])
    >>> from numparq.dataset.listing.files import DataFile
    >>> files = [DataFile(path, path) for path in ("a.parquet", "b.parquet", "new.parquet")]
    >>> DayPruner(3, {"a.parquet": [1, 2], "b.parquet": [2, 3]}).keep(files)
    array([False,  True,  True])
    """

    name: str

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Return which of some files may have matching rows.

        Parameters
        ----------
        files : sequence of DataFile
            Any files of the dataset, each with its path, name, size, version and partition values.

        Returns
        -------
        bool array, (files,)
            False only for a file without matching rows.
        """


def apply_pruner(pruner: FilePruner, files: Sequence[DataFile]) -> np.ndarray:
    """Call a pruner, and check its result: a bool array, (files,). Raise ValueError for anything else."""
    kept = np.asarray(pruner.keep(files))
    if kept.shape != (len(files),) or (kept.dtype != np.bool_ and len(files)):
        given = f"{kept.dtype} of shape {kept.shape}"
        raise ValueError(
            f"pruner {pruner.name!r} must return a bool for each of {len(files)} "
            f"{agree_noun(len(files), 'file')}, not {given}"
        )
    return kept.astype(np.bool_, copy=False)


class PartitionPruner:
    """Prunes files by their partition values, and by runtime filters on partition keys that have arrived.

    Predicates on other columns count as true. Raises SchemaError if a literal cannot be compared with a key's values.
    """

    name = "partitions"

    def __init__(self, filters: Any, partitions: DatasetPartitions, runtime_filters: Any = ()) -> None:
        keys = PartitionKeyColumns(partitions)
        parts = [] if filters is None else [_of_keys(normalize(as_expression(filters)), keys, partitions)]
        for each in check_runtime_filters(runtime_filters):
            if partition_key_ordinal(each.column, partitions) >= 0:
                bound = each._bind(keys, keys)  # type: ignore[arg-type]
                parts += [] if bound is None else [wrap_partition_predicates(bound, keys.items, partitions)]
        self._asked = all_of(parts)
        self.reason = "" if isinstance(self._asked, Constant) else repr(self._asked)

    @property
    def keeps_all(self) -> bool:
        """Whether all files are kept, because nothing is filtered by partition keys alone."""
        return self._asked == Constant(True)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Return which files may have matching rows; see `FilePruner`."""
        return _evaluate_all(self._asked, files)


def _of_keys(expression: Expression, keys: PartitionKeyColumns, partitions: DatasetPartitions) -> Expression:
    """Bind the predicates on partition keys in a normalized expression; replace all others by true."""
    if isinstance(expression, (And, Or)):
        parts = [_of_keys(part, keys, partitions) for part in expression.parts]
        return all_of(parts) if isinstance(expression, And) else any_of(parts)
    test = expression.part if isinstance(expression, Not) else expression
    if not isinstance(test, ColumnPredicate):
        return expression
    if any(partition_key_ordinal(name, partitions) < 0 for name in test.names):
        return Constant(True)
    try:
        bound = bind(expression, keys, keys)  # type: ignore[arg-type]
    except SchemaError as error:
        error.message += "".join(
            partitions.advice(partitions.keys[partition_key_ordinal(name, partitions)]) for name in test.names
        )
        raise
    return wrap_partition_predicates(bound, keys.items, partitions)


def _evaluate_all(asked: Expression, files: Sequence[DataFile]) -> np.ndarray:
    """Evaluate an expression for all files, once for each partition."""
    partitions, which = PartitionIndex.from_files(files)
    kept: np.ndarray = _answers(asked, partitions)[which]
    return kept


def _answers(asked: Expression, partitions: Sequence[tuple[str | None, ...]]) -> np.ndarray:
    if isinstance(asked, Constant):
        return np.full(len(partitions), asked.value)
    if isinstance(asked, PartitionPredicate):
        numbers: dict[str | None, int] = {}
        places = np.array([numbers.setdefault(values[asked.key], len(numbers)) for values in partitions], np.intp)
        return asked.evaluate(list(numbers))[places]
    if isinstance(asked, PartitionComparison):
        return np.array([asked.with_values(values) == Constant(True) for values in partitions], np.bool_)
    assert isinstance(asked, (And, Or))
    join = np.logical_and if isinstance(asked, And) else np.logical_or
    return reduce(join, (_answers(part, partitions) for part in asked.parts))


def select_files(listing: DatasetListing, partitioning: Any, where: Any) -> list[DataFile]:
    """Select the files of some partitions by ``where``, which takes the forms of `filters`.

    Raises ValueError if it names other than partition columns.
    """
    asked = as_expression(where)
    partitions = DatasetPartitions.from_listing(listing, partitioning)
    for name in _names(asked):
        if partition_key_ordinal(name, partitions) < 0:
            shown = name if isinstance(name, str) else ".".join(map(str, name))
            known = ", ".join(map(repr, partitions.keys)) or "none"
            raise ValueError(f"where may use only partition columns ({known}), not {shown!r}")
    kept = apply_pruner(PartitionPruner(asked, partitions), listing.files)
    return [file for file, is_kept in zip(listing.files, kept.tolist(), strict=True) if is_kept]


def _names(expression: Any) -> Iterator[Any]:
    """Yield the names of all columns in an expression."""
    if isinstance(expression, (And, Or)):
        for part in expression.parts:
            yield from _names(part)
    elif isinstance(expression, Not):
        yield from _names(expression.part)
    elif isinstance(expression, ColumnPredicate):
        yield from expression.names
    elif not isinstance(expression, Constant):
        raise ValueError(f"where cannot have {expression!r}; use comparisons of partition columns")


class StatisticsPruner:
    """Prunes open files whose row group statistics rule out every row group; nothing more is read.

    ``opened`` maps `DataFile.path` to open files; other files are kept. Runtime filters that have arrived count.
    """

    name = "statistics"

    def __init__(self, file_filter: DatasetFilter, opened: Mapping[str, OpenFile], runtime_filters: Any = ()) -> None:
        self._filter = file_filter
        self._opened = opened
        self._runtime = runtime_filters
        self.reason = describe(file_filter.predicate)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Return which files may have matching rows; see `FilePruner`."""
        return np.array([self._may(file, self._opened.get(file.path)) for file in files], np.bool_)

    def _may(self, data_file: DataFile, file: OpenFile | None) -> bool:
        if file is None:
            return True
        condition = self._filter.scan_predicate(file, data_file, self._runtime)
        bound = None if condition is None else condition.current()
        if bound is None or isinstance(bound, Constant):
            return bound is None or bound.value
        groups = range(file.num_row_groups)
        runs = {leaf.index: row_group_statistics(file.footer, leaf, groups) for leaf in filter_leaves(bound)}
        return bool(containers_may_match(bound, runs, len(groups)).any())
