"""What a read is asked for besides columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Choices"]

_WORDS = {"variants": ("values", "bytes"), "files": ("references", "bytes")}


@dataclass(frozen=True)
class Choices:
    """What a read is asked for besides columns; as in `numparq.read_parquet`."""

    filters: Any = None
    runtime_filters: Any = ()
    explode: Any = None
    dtype_backend: str = "numpy"
    row_groups: Any = None
    row_range: Any = None
    nrows: int | None = None
    categories: Any = None
    include: Any = ()
    geometries: str = "wkb"
    variants: str = "values"
    files: str = "references"
    verify_crc: bool = True
    threads: int | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if self.geometries != "wkb":
            from ..geodata import check_geometries

            check_geometries(self.geometries)
        if self.memory_limit is not None:
            from ..arguments import checked_size

            checked_size(self.memory_limit, "memory_limit")
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in words:
                raise ValueError(f"{name} is one of {', '.join(map(repr, words))}, not {value!r}")

    @property
    def is_simple(self) -> bool:
        """Whether no more is asked for than the rows that satisfy `filters`, as they are."""
        are_all = self.row_groups is self.row_range is self.nrows is self.explode is None
        as_they_are = self.categories is self.memory_limit is None and self.geometries == "wkb"
        nothing_more = type(self.include) is tuple and not self.include and not self.runtime_filters
        return are_all and as_they_are and nothing_more

    @property
    def category_names(self) -> set[str]:
        """The columns to read as Categorical."""
        if isinstance(self.categories, str):
            raise TypeError(f"categories is a list of column names, not {self.categories!r}")
        return set(self.categories or ())
