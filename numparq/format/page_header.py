"""Page headers (parquet.thrift, PageHeader): templates for the writer, by the type of the page."""

from __future__ import annotations

from functools import lru_cache

from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE

from .statistics import STATISTICS_FIELDS
from .thrift.templates import StructTemplate

_COMMON = ("type", "uncompressed_page_size", "compressed_page_size", "crc")
_FIELDS: dict[int, tuple[str, tuple[str, ...]]] = {
    DATA_PAGE: (
        "data_page_header",
        ("num_values", "encoding", "definition_level_encoding", "repetition_level_encoding"),
    ),
    DICTIONARY_PAGE: ("dictionary_page_header", ("num_values", "encoding")),
    DATA_PAGE_V2: (
        "data_page_header_v2",
        (
            "num_values",
            "num_nulls",
            "num_rows",
            "encoding",
            "definition_levels_byte_length",
            "repetition_levels_byte_length",
            "is_compressed",
        ),
    ),
}


@lru_cache(maxsize=4)
def page_header_template(page_type: int) -> StructTemplate:
    """Return the template of a page type: the fields of all types, then its own, then statistics of a data page."""
    header, fields = _FIELDS[page_type]
    own = [f"{header}.{name}" for name in fields]
    statistics = [f"{header}.statistics.{name}" for name in STATISTICS_FIELDS]
    return StructTemplate("PageHeader", [*_COMMON, *own, *(statistics if page_type != DICTIONARY_PAGE else ())])
