"""File pruners: the `FilePruner` protocol, by partition values and by footer statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.listing.files import DataFile, PartitionIndex
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.partitions.predicate import PartitionPredicate, wrap_partition_predicates
from numparq.expr.bind import bind
from numparq.expr.bound import describe, filter_leaves
from numparq.expr.dnf import as_expression
from numparq.expr.expression import And, ColumnPredicate, Constant, Expression, Not, Or
from numparq.expr.normalize import all_of, any_of, normalize
from numparq.expr.parse import parse_filter
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.open_file import OpenFile
from numparq.prune.match import containers_may_match
from numparq.prune.statistics import row_group_statistics

from .filter_columns import PartitionKeyColumns, partition_key_ordinal

if TYPE_CHECKING:
    from .dataset_filter import DatasetFilter

__all__ = ["FilePruner", "PartitionPruner", "StatisticsPruner", "apply_pruner", "select_files"]


class FilePruner(Protocol):
    """Says which files of a dataset may have rows that a query wants.

    A pruner is made for one query, and knows what that asks. It must keep every file that it does not know, or cannot
    say anything of: what it drops is never looked at, and nobody checks whether it was right.

    Attributes
    ----------
    name : str
        What plans call it, as in ``"partitions"``.

    Notes
    -----
    It may have an attribute ``reason`` besides, a text: in words of the query, by what it drops files.

    Examples
    --------
    One that knows from elsewhere which days a file has:

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
        """Say which of some files may have wanted rows.

        Parameters
        ----------
        files : sequence of DataFile
            Any of the dataset's: path, name, size, version and partition values of each.

        Returns
        -------
        bool array, (files,)
            False only where no row is wanted.
        """


def apply_pruner(pruner: FilePruner, files: Sequence[DataFile]) -> np.ndarray:
    """Ask a pruner, which may be a user's.

    Parameters
    ----------
    pruner : FilePruner
        The pruner.
    files : sequence of DataFile
        Those that are left.

    Returns
    -------
    bool array, (files,)

    Raises
    ------
    ValueError
        When it does not give one bool a file.
    """
    kept = np.asarray(pruner.keep(files))
    if kept.shape != (len(files),) or (kept.dtype != np.bool_ and len(files)):
        given = f"{kept.dtype} of shape {kept.shape}"
        raise ValueError(f"the pruner {pruner.name!r} has to give a bool for each of {len(files)} files, not {given}")
    return kept.astype(np.bool_, copy=False)


class PartitionPruner:
    """Drops files by the partitions that they are in, which the names of their directories tell.

    Parameters
    ----------
    filters : Expression, list of tuples, or None
        As in `numparq.read_parquet`; what it asks of columns is left open.
    partitions : DatasetPartitions
        Of the dataset.
    runtime_filters : RuntimeFilter, or iterable of these
        Those that have arrived count.

    Attributes
    ----------
    name : str
        ``"partitions"``.
    reason : str
        What is asked of the keys.

    Raises
    ------
    SchemaError
        When a literal cannot be compared with the values of a partition key.
    """

    name = "partitions"

    def __init__(self, filters: Any, partitions: DatasetPartitions, runtime_filters: Any = ()) -> None:
        keys = PartitionKeyColumns(partitions)
        parts = [] if filters is None else [_of_keys(normalize(as_expression(filters)), keys, partitions)]
        for each in check_runtime_filters(runtime_filters):
            if partition_key_ordinal(each.column, partitions) >= 0:
                bound = each.bound(keys, keys)  # type: ignore[arg-type]
                parts += [] if bound is None else [wrap_partition_predicates(bound, keys.items, partitions)]
        self._asked = all_of(parts)
        self.reason = "" if isinstance(self._asked, Constant) else repr(self._asked)

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is asked of partition keys alone, so that all files are kept."""
        return self._asked == Constant(True)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Say which files may have wanted rows; see `FilePruner`."""
        return _kept(self._asked, files)


def _of_keys(expression: Expression, keys: PartitionKeyColumns, partitions: DatasetPartitions) -> Expression:
    """Keep of an expression in normal form what is asked of partition keys; what is asked of columns may be true."""
    if isinstance(expression, (And, Or)):
        parts = [_of_keys(part, keys, partitions) for part in expression.parts]
        return all_of(parts) if isinstance(expression, And) else any_of(parts)
    test = expression.part if isinstance(expression, Not) else expression
    if not isinstance(test, ColumnPredicate):
        return expression
    if partition_key_ordinal(test.name, partitions) < 0:
        return Constant(True)
    bound = bind(expression, keys, keys)  # type: ignore[arg-type]
    return wrap_partition_predicates(bound, keys.items, partitions)


def _kept(asked: Expression, files: Sequence[DataFile]) -> np.ndarray:
    """Answer for all files, by asking each partition once."""
    partitions, which = PartitionIndex.from_files(files)
    return _answers(asked, partitions)[which]


def _answers(asked: Expression, partitions: Sequence[tuple[str | None, ...]]) -> np.ndarray:
    if isinstance(asked, Constant):
        return np.full(len(partitions), asked.value)
    if isinstance(asked, PartitionPredicate):
        numbers: dict[str | None, int] = {}
        places = np.array([numbers.setdefault(values[asked.key], len(numbers)) for values in partitions], np.intp)
        return asked.evaluate(list(numbers))[places]
    assert isinstance(asked, (And, Or))
    join = np.logical_and if isinstance(asked, And) else np.logical_or
    return reduce(join, (_answers(part, partitions) for part in asked.parts))


def select_files(listing: DatasetListing, partitioning: Any, where: Any) -> list[DataFile]:
    """Choose the files of some partitions.

    Parameters
    ----------
    listing : DatasetListing
        All files.
    partitioning : Any
        What `list_files` was given.
    where : expression, list of tuples, or str
        What is asked of partition columns; text as ``numparq plan --filter`` takes it.

    Raises
    ------
    ValueError
        When it asks of anything else.
    """
    asked = as_expression(parse_filter(where) if isinstance(where, str) else where)
    partitions = DatasetPartitions.of(listing, partitioning)
    for name in _names(asked):
        if partition_key_ordinal(name, partitions) < 0:
            shown = name if isinstance(name, str) else ".".join(map(str, name))
            known = ", ".join(map(repr, partitions.keys)) or "none"
            raise ValueError(f"where is about partition columns, and {shown!r} is none: there are {known}")
    kept = apply_pruner(PartitionPruner(asked, partitions), listing.files)
    return [file for file, is_kept in zip(listing.files, kept.tolist(), strict=True) if is_kept]


def _names(expression: Any) -> Iterator[Any]:
    """Give the names of all columns that an expression asks."""
    if isinstance(expression, (And, Or)):
        for part in expression.parts:
            yield from _names(part)
    elif isinstance(expression, Not):
        yield from _names(expression.part)
    elif isinstance(expression, ColumnPredicate):
        yield expression.name
    elif not isinstance(expression, Constant):
        raise ValueError(f"where cannot be {expression!r}")


class StatisticsPruner:
    """Drops files of which no row group can have a wanted row, as far as their footers tell; nothing else is read.

    Parameters
    ----------
    file_filter : DatasetFilter
        What is asked.
    opened : mapping of str to OpenFile
        The files that are open, by `DataFile.path`. Others are kept.
    runtime_filters : RuntimeFilter, or iterable of these
        Those that have arrived count.

    Attributes
    ----------
    name : str
        ``"statistics"``.
    reason : str
        What is asked.
    """

    name = "statistics"

    def __init__(self, file_filter: DatasetFilter, opened: Mapping[str, OpenFile], runtime_filters: Any = ()) -> None:
        self._filter = file_filter
        self._opened = opened
        self._runtime = runtime_filters
        self.reason = describe(file_filter.asked)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Say which files may have wanted rows; see `FilePruner`."""
        return np.array([self._may(file, self._opened.get(file.path)) for file in files], np.bool_)

    def _may(self, data_file: DataFile, file: OpenFile | None) -> bool:
        if file is None:
            return True
        condition = self._filter.condition(file, data_file, self._runtime)
        bound = None if condition is None else condition.now()
        if bound is None or isinstance(bound, Constant):
            return bound is None or bound.value
        groups = range(file.num_row_groups)
        runs = {leaf.index: row_group_statistics(file, leaf, groups) for leaf in filter_leaves(bound)}
        return bool(containers_may_match(bound, runs, len(groups)).any())
