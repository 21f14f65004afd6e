"""Indexes to build: which values of a column a store keeps for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from numparq.skipping.metadata import PARAMETER_PREFIX, StoreIndex
from numparq.util.arguments import check_positive_int

_ERROR_RATE, _ITEMS = f"{PARAMETER_PREFIX}index.bloom.fpp", f"{PARAMETER_PREFIX}index.bloom.ndv"
_GAPS = "io.numparq.index.gaplist.gaps"
LENGTH_PARAMETER = "io.numparq.index.affix.length"
_DEFAULT_ITEMS = 100_000  # what Xskipper's parameter says if none is given; cells here are sized by their files


@dataclass(frozen=True)
class SkippingIndex:
    """Index of one column.

    Attributes
    ----------
    column : str
        The column; a dotted name is a path into structs.
    """

    column: str

    @property
    def params(self) -> Mapping[str, str]:
        """Parameters as a store has them."""
        return {}


@dataclass(frozen=True)
class MinMax(SkippingIndex):
    """Least and greatest value of each file, for ranges and equality.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    """

    name: ClassVar[str] = "minmax"


@dataclass(frozen=True)
class ValueList(SkippingIndex):
    """All distinct values of each file, for columns with few of them.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    """

    name: ClassVar[str] = "valuelist"


@dataclass(frozen=True)
class BloomFilterIndex(SkippingIndex):
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


@dataclass(frozen=True)
class GapList(SkippingIndex):
    """Intervals that hold all values of each file, for numbers and times with outliers; Xskipper does not know it.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    gaps : int
        Number of gaps between values to keep: the largest ones.
    """

    gaps: int = 10
    name: ClassVar[str] = "gaplist"

    def __post_init__(self) -> None:
        check_positive_int(self.gaps, "gaps")

    @property
    def params(self) -> Mapping[str, str]:
        """Parameters as a store has them."""
        return {_GAPS: str(self.gaps)}


@dataclass(frozen=True)
class PrefixList(SkippingIndex):
    """First characters of all strings of each file, for prefixes and equality; Xskipper does not know it.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    length : int
        Number of characters.
    """

    length: int = 4
    name: ClassVar[str] = "prefixlist"

    def __post_init__(self) -> None:
        check_positive_int(self.length, "length")

    @property
    def params(self) -> Mapping[str, str]:
        """Parameters as a store has them."""
        return {LENGTH_PARAMETER: str(self.length)}


@dataclass(frozen=True)
class SuffixList(PrefixList):
    """Last characters of all strings of each file, for ends and equality; Xskipper does not know it.

    Attributes
    ----------
    name : str
        Kind of index.
    column : str
        The column; a dotted name is a path into structs.
    length : int
        Number of characters.
    """

    name: ClassVar[str] = "suffixlist"


BloomFilter = BloomFilterIndex
IndexDefinition: TypeAlias = MinMax | ValueList | BloomFilterIndex | GapList | PrefixList


def definition_of(index: StoreIndex) -> IndexDefinition | None:
    """Return the definition of an index of a store, to build its cells for other files; None if it cannot be built."""
    define = _DEFINITIONS.get(index.name)
    if len(index.columns) != 1 or define is None:
        return None
    try:
        return define(index.columns[0], index.params)
    except (ValueError, KeyError):
        return None


_DEFINITIONS: dict[str, Callable[[str, Mapping[str, str]], IndexDefinition]] = {
    MinMax.name: lambda column, params: MinMax(column),
    ValueList.name: lambda column, params: ValueList(column),
    BloomFilterIndex.name: lambda column, params: BloomFilterIndex(column, float(params.get(_ERROR_RATE, "0.01"))),
    GapList.name: lambda column, params: GapList(column, int(params[_GAPS])),
    PrefixList.name: lambda column, params: PrefixList(column, int(params[LENGTH_PARAMETER])),
    SuffixList.name: lambda column, params: SuffixList(column, int(params[LENGTH_PARAMETER])),
}
