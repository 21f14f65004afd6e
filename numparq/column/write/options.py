"""Write options of one leaf column."""

from __future__ import annotations

from dataclasses import dataclass

from numparq.kernels.enums import SNAPPY

DATA_PAGE_SIZE = 1 << 20
MAX_ROWS_PER_PAGE = 20_000
DICTIONARY_PAGE_SIZE = 1 << 20
TRUNCATE_LENGTH = 64


@dataclass(frozen=True, slots=True)
class BloomFilterOptions:
    """How large a Bloom filter is to be.

    Parameters
    ----------
    fpp : float
        The share of absent values for which it may say "perhaps".
    ndv : int or None
        The number of distinct values that it is made for; None: as many as a row group has.
    """

    fpp: float = 0.01
    ndv: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """How a leaf is written.

    Parameters
    ----------
    codec : int
        CompressionCodec.
    level : int or None
        Of the codec; None for its own default.
    encoding : int or None
        The Encoding of the values; None: chosen by a look at them.
    use_dictionary : bool
        Whether a dictionary is tried first.
    dictionary_page_size : int
        Bytes that the entries of a dictionary may take; with more, the chunk has none.
    data_page_size : int
        Bytes of values, uncompressed, after which a page ends.
    max_rows_per_page : int
        Rows after which a page ends.
    data_page_version : int
        1 or 2.
    checksum : bool
        Whether pages have a CRC.
    statistics : bool
        Whether the chunk has statistics.
    page_index : bool
        Whether it has a column index and an offset index; without them page headers have the pages' statistics.
    truncate_length : int
        Bytes of a bound of which no more are kept, where the type allows that.
    bloom : BloomFilterOptions or None
        None: no Bloom filter.
    """

    codec: int = SNAPPY
    level: int | None = None
    encoding: int | None = None
    use_dictionary: bool = True
    dictionary_page_size: int = DICTIONARY_PAGE_SIZE
    data_page_size: int = DATA_PAGE_SIZE
    max_rows_per_page: int = MAX_ROWS_PER_PAGE
    data_page_version: int = 1
    checksum: bool = True
    statistics: bool = True
    page_index: bool = True
    truncate_length: int = TRUNCATE_LENGTH
    bloom: BloomFilterOptions | None = None
