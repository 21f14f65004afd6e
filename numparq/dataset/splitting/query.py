"""The query that is divided into splits: of very many files it opens but a few, which stand for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...reading.choices import Choices
from ..contents import Contents
from ..pruners import FilePruner
from ..query import Query
from ..reading import WantedFile

__all__ = ["SplitQuery"]

# So many files tell the schema where there are too many to open all of them.
SAMPLE = 64


class SplitQuery(Query):
    """A query of a dataset, to be divided.

    Parameters
    ----------
    contents, pruners, columns, choices
        As of `Query`.
    plan_files : int or None
        Of more files than that, footers are not read, but those of a few.

    Attributes
    ----------
    kept : list of int
        The files that may have wanted rows, as far as is known without opening them.
    is_sampled : bool
        Whether `wanted` are but some of them.
    """

    def __init__(
        self, contents: Contents, pruners: Sequence[FilePruner], columns: Any, choices: Choices, plan_files: int | None
    ) -> None:
        self._plan_files = plan_files
        self.kept: list[int] = []
        self.is_sampled = False
        super().__init__(contents, pruners, columns, choices)

    def left(self) -> list[WantedFile]:
        """Give the files that the statistics of their footers leave: of the others no plan need be made."""
        return self._by_statistics()

    def _kept(self) -> list[int]:
        self.kept = super()._kept()
        count = len(self.kept)
        self.is_sampled = self._plan_files is not None and count > self._plan_files
        if not self.is_sampled:
            return self.kept
        some = min(SAMPLE, count)
        return [self.kept[at * (count - 1) // max(some - 1, 1)] for at in range(some)]

    def _table(self, ordinals: Sequence[int], columns: Any) -> Any:
        if not self.is_sampled:
            return super()._table(ordinals, columns)
        return self._bound(self._contents.schema_of(ordinals), columns)  # which are not looked for in all files
