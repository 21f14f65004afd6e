"""Write options of one leaf column."""

from __future__ import annotations

from dataclasses import dataclass

from numparq.kernels.enums import SNAPPY, UNCOMPRESSED

# Small pages make look-ups a fifth faster. Snappy compresses 64 KiB at a time: they cost it nothing. With zstd, files
# would be 4 % larger, and full reads a seventh slower.
SMALL_PAGE_SIZE, LARGE_PAGE_SIZE = 1 << 16, 1 << 20
_SMALL_PAGE_CODECS = (SNAPPY, UNCOMPRESSED)
MAX_ROWS_PER_PAGE = 20_000
DICTIONARY_PAGE_SIZE = 1 << 20
TRUNCATE_LENGTH = 64


@dataclass(frozen=True, slots=True)
class BloomFilterOptions:
    """Size of a Bloom filter.

    Attributes
    ----------
    fpp : float
        False positive probability.
    ndv : int or None
        Distinct values that the filter is built for; None: those of the row group.
    """

    fpp: float = 0.01
    ndv: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """Write options of a leaf column.

    Attributes
    ----------
    codec : int
        CompressionCodec (parquet.thrift).
    level : int or None
        Compression level; None: the codec's default.
    encoding : int or None
        Encoding (parquet.thrift) of the values; None: chosen by type and samples.
    use_dictionary : bool
        Whether to try a dictionary first.
    dictionary_page_size : int
        Most bytes of a dictionary; a chunk that needs more has none.
    data_page_size : int
        Target size of a page in bytes, uncompressed.
    max_rows_per_page : int
        Row limit of a page.
    data_page_version : int
        1 or 2.
    checksum : bool
        Whether to write a CRC in page headers.
    statistics : bool
        Whether to write statistics.
    page_index : bool
        Whether to write column and offset index; if not, page headers hold the pages' statistics.
    truncate_length : int
        Most bytes of a bound, where the type allows truncation.
    bloom_filter : BloomFilterOptions or None
        None: no Bloom filter.
    """

    codec: int = SNAPPY
    level: int | None = None
    encoding: int | None = None
    use_dictionary: bool = True
    dictionary_page_size: int = DICTIONARY_PAGE_SIZE
    data_page_size: int = SMALL_PAGE_SIZE
    max_rows_per_page: int = MAX_ROWS_PER_PAGE
    data_page_version: int = 1
    checksum: bool = True
    statistics: bool = True
    page_index: bool = True
    truncate_length: int = TRUNCATE_LENGTH
    bloom_filter: BloomFilterOptions | None = None


def default_page_size(codec: int) -> int:
    """Return the default of `data_page_size` for a codec."""
    return SMALL_PAGE_SIZE if codec in _SMALL_PAGE_CODECS else LARGE_PAGE_SIZE
