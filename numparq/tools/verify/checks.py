"""The table of checks, by chapter of the specification, with the severity of a failure."""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING = "error", "warning"


class Check(NamedTuple):
    """Severity of a check and the requirement it verifies."""

    severity: str
    requirement: str


def _errors(**checks: str) -> dict[str, Check]:
    return {name.replace("_", "-"): Check(ERROR, asks) for name, asks in checks.items()}


def _warnings(**checks: str) -> dict[str, Check]:
    return {name.replace("_", "-"): Check(WARNING, asks) for name, asks in checks.items()}


CHECKS: dict[str, Check] = {
    # --- file: both ends, structs of the footer (README.md, parquet.thrift)
    **_errors(
        magic_head="a file begins with PAR1",
        magic_tail="a file ends with PAR1",
        footer_length="the length of the footer lies within the file",
        thrift_struct="a struct can be read to its end",
        thrift_required="required fields are there",
        thrift_type="fields are of their types",
        thrift_enum="enums have values that the format has",
        thrift_union="of a union, one member is there",
        footer_rows="the number of rows is the sum of those of the row groups",
        column_orders="there is a column order for each leaf",
    ),
    **_warnings(
        thrift_type_optional="optional fields are of their types",
        footer_bytes="nothing stands between the footer and its length",
        footer_version="the version is 1 or 2",
        not_checked="everything can be looked at",
        column_orders_bounds="where there are bounds, the footer says how values compare",
    ),
    # --- schema (LogicalTypes.md)
    **_errors(
        schema_root="the first element is the root: a group that is not repeated",
        schema_tree="groups have as many children as they say",
        schema_repetition="all but the root say how often they occur",
        schema_type="a leaf has a physical type, a group has none",
        schema_length="FIXED_LEN_BYTE_ARRAY has a length",
        schema_logical="the physical type can hold the logical type",
        schema_decimal="precision and scale of a DECIMAL fit each other and the physical type",
        schema_converted="the converted type says what the logical type says",
        schema_list="a LIST is a group around one repeated field",
        schema_map="a MAP is a group around repeated pairs of a key and a value",
        schema_variant="a VARIANT is a group of metadata and value",
    ),
    **_warnings(
        schema_names="fields of a group have different names",
        schema_list_legacy="a LIST has three levels",
        schema_map_legacy="the key of a MAP is required",
        schema_empty_group="a group has fields",
    ),
    # --- row groups and column chunks (parquet.thrift)
    **_errors(
        group_columns="a row group has a chunk for each leaf",
        group_rows="the number of rows is not negative",
        chunk_metadata="a column chunk has metadata",
        chunk_type="the type is that of the schema",
        chunk_path="the path is that of the schema",
        chunk_file="the file that a column chunk is in is there",
        chunk_place="the chunk lies between the magic number and the footer",
        overlap="no two parts of the file lie over each other",
        chunk_data_offset="data_page_offset is where the first data page begins",
        chunk_dictionary_offset="dictionary_page_offset is where the dictionary page begins",
        chunk_values="the number of values is that of the pages",
        chunk_rows="the rows by the repetition levels are those of the row group",
        chunk_compressed_size="total_compressed_size is that of the pages",
        chunk_uncompressed_size="total_uncompressed_size is that of the pages",
        chunk_encodings="the encodings of all data pages are listed",
        chunk_encoding_stats="encoding_stats count the pages",
    ),
    **_warnings(
        group_ordinal="ordinals count the row groups",
        group_size="total_byte_size is the sum of those of the chunks",
        group_compressed_size="total_compressed_size is the sum of those of the chunks",
        group_offset="file_offset is where the first page of the row group begins",
        dictionary_offset_legacy="a dictionary page has its offset in the footer",
        data_offset_legacy="data_page_offset is that of a page",
        size_legacy="the sizes count everything",
        chunk_encodings_unused="encodings that are listed occur",
        chunk_encodings_beside="the encodings of levels and dictionaries are listed",
        encoding_stats_version="encoding_stats tell pages of version 1 from those of version 2",
    ),
    # --- pages (Encodings.md, Compression.md, parquet.thrift)
    **_errors(
        page_header="a page has a header that can be read",
        page_type="a page has the header of its type",
        page_size="a page lies within its chunk",
        page_counts="no count or size in a header is negative, or larger than what it is part of",
        page_crc="the checksum is that of the page",
        page_decompressed="the page decompresses to the size in its header",
        page_dictionary="there is one dictionary page at most, in front of the data pages",
        page_encoding="the encoding is one that the type can be in",
        page_levels="the levels can be decoded, and can be those of the schema",
        page_values="the values can be decoded",
        page_deltas="deltas of INT32 have 32 bits at most",
        page_utf8="text is UTF-8",
        page_range="the values are in the range of the logical type",
        page_null_count="num_nulls is the number of nulls",
        page_row_count="num_rows is the number of rows",
        page_row_start="a page of version 2, or with an offset index, begins with a row",
        dictionary_sorted="a dictionary that is called sorted is",
    ),
    **_warnings(
        page_uncompressed_size="without compression, both sizes are the same",
        page_bytes="nothing stands behind the values of a page",
    ),
    # --- known writer quirks that readers tolerate (docs/old-writers.md)
    **_warnings(
        writer_bool="an enum is not a bool on the wire",
        writer_converted="converted types are those of the format",
        writer_variant="the groups of a VARIANT's shredded fields are required",
        writer_null_count="num_nulls of a page of version 2 is counted",
        writer_row_count="num_rows of a page of version 2 is counted",
        writer_deltas="deltas of INT32 have 32 bits at most",
        writer_checksum="a checksum is computed",
        writer_level_bits="the bits of BIT_PACKED levels begin with the highest",
        writer_prefixes="the first string of a page does not go on from the last page",
        writer_compressed="is_compressed says whether a page is compressed",
    ),
    # --- statistics (Statistics and SizeStatistics in parquet.thrift)
    **_errors(
        stats_bound="a bound is a value of its type",
        stats_min="no value is below min_value",
        stats_max="no value is above max_value",
        stats_exact="a bound that is called exact is a value of the data",
        stats_null_count="null_count is the number of nulls",
        stats_nan_count="nan_count is the number of NaNs",
        stats_size="unencoded_byte_array_data_bytes is the size of the values",
        stats_histogram="the histograms count the levels",
    ),
    **_warnings(
        stats_distinct_count="distinct_count is the number of different values",
        stats_nan="no bound is NaN",
        stats_zero="a zero that is a lower bound is -0.0, one that is an upper bound +0.0",
        stats_unknown="a count that is not known is left out",
        stats_order="a column without an order has no bounds",
        stats_legacy="the old min and max hold too",
    ),
    # --- page indexes (PageIndex.md)
    **_errors(
        index_place="an index lies in the file",
        index_pages="an index has an item for each data page",
        offset_index_offset="an offset is where its page begins",
        offset_index_size="a size is that of its page, the header counted",
        offset_index_row="a first row is that of its page",
        column_index_null_pages="null pages are those without a value",
        column_index_min="no value of a page is below its minimum",
        column_index_max="no value of a page is above its maximum",
        column_index_bound="bounds are values of their type, those of null pages empty",
        column_index_order="the bounds follow each other in the boundary order",
        column_index_null_counts="null_counts are the numbers of nulls",
        column_index_nan_counts="nan_counts are the numbers of NaNs",
        column_index_histograms="the histograms count the levels",
        offset_index_bytes="unencoded_byte_array_data_bytes are the sizes of the values",
    ),
    **_warnings(column_index_alone="a column index has an offset index beside it"),
    # --- Bloom filters (BloomFilter.md), sorting, keys
    **_errors(
        bloom_place="a Bloom filter lies in the file",
        bloom_header="the header of a Bloom filter can be read, and is of a kind that there is",
        bloom_length="bloom_filter_length is the size of header and bits",
        bloom_value="a Bloom filter has every value of its chunk",
        sorting_column="sorting_columns are columns",
        sorting_rows="rows are sorted by the sorting columns",
        key_arrow_schema="ARROW:schema is an Arrow schema",
        key_pandas="the pandas metadata is JSON",
    ),
    **_warnings(
        key_duplicate="no key is there twice",
        key_columns="what the keys describe are the columns of the file",
    ),
}
