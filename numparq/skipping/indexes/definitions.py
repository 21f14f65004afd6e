"""Indexes to build: which values of a column a store keeps for each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from numparq.skipping.metadata import PARAMETER_PREFIX, StoreIndex

_ERROR_RATE, _ITEMS = f"{PARAMETER_PREFIX}index.bloom.fpp", f"{PARAMETER_PREFIX}index.bloom.ndv"
_DEFAULT_ITEMS = 100_000  # what Xskipper's parameter says if none is given; cells here are sized by their files


@dataclass(frozen=True)
class MinMax:
    """Least and greatest value of each file, for ranges and equality.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    """

    column: str
    name: ClassVar[str] = "minmax"

    @property
    def params(self) -> Mapping[str, str]:
        """Parameters as a store has them."""
        return {}


@dataclass(frozen=True)
class ValueList:
    """All distinct values of each file, for columns with few of them.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    """

    column: str
    name: ClassVar[str] = "valuelist"

    @property
    def params(self) -> Mapping[str, str]:
        """Parameters as a store has them."""
        return {}


@dataclass(frozen=True)
class BloomFilterIndex:
    """Spark's Bloom filter of the values of each file, for equality on integers and strings with many values.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    fpp : float
        Share of files that are read although they do not have a value.
    ndv : int, optional
        Distinct values that every filter is sized for. Default: those of its file.
    """

    column: str
    fpp: float = 0.01
    ndv: int | None = None
    name: ClassVar[str] = "bloomfilter"

    def __post_init__(self) -> None:
        if not 0 < self.fpp < 1:
            raise ValueError(f"fpp must be between 0 and 1, not {self.fpp!r}")
        if self.ndv is not None and not (isinstance(self.ndv, int) and self.ndv > 0):
            raise ValueError(f"ndv must be a positive integer, not {self.ndv!r}")

    @property
    def params(self) -> Mapping[str, str]:
        """Parameters as a store has them."""
        return {_ERROR_RATE: repr(self.fpp), _ITEMS: str(self.ndv or _DEFAULT_ITEMS)}


BloomFilter = BloomFilterIndex
IndexDefinition: TypeAlias = MinMax | ValueList | BloomFilterIndex


def definition_of(index: StoreIndex) -> IndexDefinition | None:
    """Return the definition of an index of a store, to build its cells for other files; None if it cannot be built."""
    if len(index.columns) != 1:
        return None
    if index.name == MinMax.name:
        return MinMax(index.columns[0])
    if index.name == ValueList.name:
        return ValueList(index.columns[0])
    if index.name == BloomFilter.name:
        try:
            return BloomFilter(index.columns[0], float(index.params.get(_ERROR_RATE, "0.01")))
        except ValueError:
            return None
    return None
