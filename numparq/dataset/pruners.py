"""Which files of a dataset need not be read: the protocol `FilePruner`, and the pruner by partitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..filtering.condition import listed
from ..predicate import as_expression
from ..predicate.bind import bind
from ..predicate.expression import And, Constant, Expression, Not, Or, Test
from ..predicate.normal import all_of, any_of, normal_form
from .asked import PartitionKeys, key_of
from .data_files import DataFile, Divided
from .partition_tests import PartitionTest, with_partition_tests

if TYPE_CHECKING:
    from .partitions import Partitions

__all__ = ["FilePruner", "PartitionPruner", "kept_by"]


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
    >>> from numparq.dataset.files import DataFile
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


def kept_by(pruner: FilePruner, files: Sequence[DataFile]) -> np.ndarray:
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
    partitions : Partitions
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

    def __init__(self, filters: Any, partitions: Partitions, runtime_filters: Any = ()) -> None:
        keys = PartitionKeys(partitions)
        parts = [] if filters is None else [_of_keys(normal_form(as_expression(filters)), keys, partitions)]
        for each in listed(runtime_filters):
            if key_of(each.column, partitions) >= 0:
                bound = each.bound(keys, keys)  # type: ignore[arg-type]
                parts += [] if bound is None else [with_partition_tests(bound, keys.items, partitions)]
        self._asked = all_of(parts)
        self.reason = "" if isinstance(self._asked, Constant) else repr(self._asked)

    @property
    def cuts_nothing(self) -> bool:
        """Whether nothing is asked of partition keys alone, so that all files are kept."""
        return self._asked == Constant(True)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Say which files may have wanted rows; see `FilePruner`."""
        return _kept(self._asked, files)


def _of_keys(expression: Expression, keys: PartitionKeys, partitions: Partitions) -> Expression:
    """Keep of an expression in normal form what is asked of partition keys; what is asked of columns may be true."""
    if isinstance(expression, (And, Or)):
        parts = [_of_keys(part, keys, partitions) for part in expression.parts]
        return all_of(parts) if isinstance(expression, And) else any_of(parts)
    test = expression.part if isinstance(expression, Not) else expression
    if not isinstance(test, Test):
        return expression
    if key_of(test.name, partitions) < 0:
        return Constant(True)
    bound = bind(expression, keys, keys)  # type: ignore[arg-type]
    return with_partition_tests(bound, keys.items, partitions)


def _kept(asked: Expression, files: Sequence[DataFile]) -> np.ndarray:
    """Answer for all files, by asking each partition once."""
    partitions, which = Divided.of_files(files)
    return _answers(asked, partitions)[which]


def _answers(asked: Expression, partitions: Sequence[tuple[str | None, ...]]) -> np.ndarray:
    if isinstance(asked, Constant):
        return np.full(len(partitions), asked.value)
    if isinstance(asked, PartitionTest):
        numbers: dict[str | None, int] = {}
        places = np.array([numbers.setdefault(values[asked.key], len(numbers)) for values in partitions], np.intp)
        return asked.answers(list(numbers))[places]
    assert isinstance(asked, (And, Or))
    join = np.logical_and if isinstance(asked, And) else np.logical_or
    return reduce(join, (_answers(part, partitions) for part in asked.parts))
