"""The table of checks, by chapter of the specification, with the severity of a failure."""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING = "error", "warning"


class Check(NamedTuple):
    """Severity of a check and the requirement it verifies."""

    severity: str
    requirement: str


def _errors(**checks: str) -> dict[str, Check]:
    return {name.replace("_", "-"): Check(ERROR, requirement) for name, requirement in checks.items()}


def _warnings(**checks: str) -> dict[str, Check]:
    return {name.replace("_", "-"): Check(WARNING, requirement) for name, requirement in checks.items()}


CHECKS: dict[str, Check] = {
    # --- file: both ends, structs of the footer (README.md, parquet.thrift)
    **_errors(
        magic_head="a file begins with PAR1",
        magic_tail="a file ends with PAR1",
        footer_length="the footer lies within the file",
        thrift_struct="a struct can be read to its end",
        thrift_required="required fields are present",
        thrift_type="required fields have their types",
        thrift_enum="enums have values that the format defines",
        thrift_union="a union has exactly one member",
        footer_rows="num_rows is the sum over the row groups",
        column_orders="each leaf column has a column order",
    ),
    **_warnings(
        thrift_type_optional="optional fields have their types",
        footer_bytes="the metadata fill the whole footer",
        footer_version="version is 1 or 2",
        not_checked="everything can be checked",
        column_orders_bounds="a footer with bounds has column orders",
    ),
    # --- schema (LogicalTypes.md)
    **_errors(
        schema_root="the first element is the root: a group that is not repeated",
        schema_tree="groups have num_children children",
        schema_repetition="all schema elements but the root have a repetition type",
        schema_type="a leaf has a physical type, a group has none",
        schema_length="FIXED_LEN_BYTE_ARRAY has a type_length",
        schema_logical="the physical type can hold the logical type",
        schema_decimal="precision and scale of a DECIMAL suit each other and the physical type",
        schema_converted="the converted type agrees with the logical type",
        schema_list="a LIST is a group around one repeated field",
        schema_map="a MAP is a group around one repeated group of key and value",
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
        group_columns="a row group has a column chunk for each leaf column",
        group_rows="num_rows is not negative",
        chunk_metadata="a column chunk has metadata",
        chunk_type="the physical type is that of the schema",
        chunk_path="path_in_schema is the path of the leaf column",
        chunk_file="the file of an external column chunk can be opened",
        chunk_place="the column chunk lies between the magic number and the footer",
        overlap="no byte ranges of the file overlap",
        chunk_data_offset="data_page_offset is the offset of the first data page",
        chunk_dictionary_offset="dictionary_page_offset is the offset of the dictionary page",
        chunk_values="num_values is the number of values in the pages",
        chunk_rows="the pages have as many rows as the row group",
        chunk_compressed_size="total_compressed_size is the size of the pages",
        chunk_uncompressed_size="total_uncompressed_size is the uncompressed size of the pages",
        chunk_encodings="the encodings of all data pages are listed",
        chunk_encoding_stats="encoding_stats count the pages",
    ),
    **_warnings(
        group_ordinal="ordinal is the number of the row group",
        group_size="total_byte_size is the sum over the column chunks",
        group_compressed_size="total_compressed_size is the sum over the column chunks",
        group_offset="file_offset is the offset of the first page of the row group",
        dictionary_offset_legacy="dictionary_page_offset is present for a dictionary page only",
        data_offset_legacy="data_page_offset is the offset of a page",
        size_legacy="the sizes include all bytes of the column chunk",
        chunk_encodings_unused="the listed encodings occur",
        chunk_encodings_beside="the encodings of levels and dictionaries are listed",
        encoding_stats_version="encoding_stats distinguish data pages of versions 1 and 2",
    ),
    # --- pages (Encodings.md, Compression.md, parquet.thrift)
    **_errors(
        page_header="a page has a readable header",
        page_type="a page has the header of its type",
        page_size="a page lies within the data of the file",
        page_counts="no count or size in a page header is negative or too large",
        page_crc="the checksum is correct",
        page_decompressed="the page decompresses to the size in its header",
        page_dictionary="a column chunk has at most one dictionary page, before the data pages",
        page_encoding="the encoding is allowed for the physical type",
        page_levels="the levels can be decoded, and the schema allows them",
        page_values="the values can be decoded",
        page_bytes="no bytes follow the levels, values or dictionary entries of a page",
        page_deltas="deltas of INT32 have at most 32 bits",
        page_utf8="text is UTF-8",
        page_range="the values are in the range of the logical type",
        page_null_count="num_nulls is the number of nulls",
        page_row_count="num_rows is the number of rows",
        page_row_start="a page of version 2, or with an offset index, begins with a row",
        variant_values="the values of a VARIANT can be read",
        dictionary_sorted="a dictionary with is_sorted is sorted",
    ),
    **_warnings(
        page_uncompressed_size="without compression, both sizes of a page are equal",
        page_run="a run of equal levels or indices ends with the values of the page",
        page_decimal="a DECIMAL has at least one byte",
        chunk_bytes="no bytes follow the last page of a column chunk",
    ),
    # --- known writer quirks that readers tolerate (docs/old-writers.md)
    **_warnings(
        writer_bool="an enum is not stored as a bool",
        writer_converted="converted types are those that the format defines",
        writer_variant="the groups of a VARIANT's shredded fields are required",
        writer_null_count="num_nulls of a data page of version 2 is the number of nulls",
        writer_list_page_nulls="num_nulls of a data page of version 2 counts the nulls in lists",
        writer_list_nulls="null_count counts the nulls in lists",
        writer_list_index_nulls="null_counts of a column index count the nulls in lists",
        writer_row_count="num_rows of a data page of version 2 is the number of rows",
        writer_deltas="deltas of INT32 have 32 bits at most",
        writer_array="a null list has a single entry",
        writer_padding="no bytes follow the values of a page",
        writer_checksum="a checksum is computed from the bytes of the page",
        writer_level_bits="BIT_PACKED levels begin with the highest bit",
        writer_prefixes="the first string of a page has no prefix from the previous page",
        writer_compressed="is_compressed is true for a compressed page",
        writer_levels="levels of encrypted pages of version 2 are encrypted",
        writer_size_statistics="plain metadata of encrypted columns have no size_statistics",
    ),
    # --- encryption (Encryption.md)
    **_errors(
        file_plain="a file that is checked with keys is encrypted",
        aad_prefix="the AAD prefix is the one given",
        encrypted_key="encrypted column chunks say by which key, and of which column",
        encrypted_ordinal="ordinal of a row group with encrypted columns is its position",
        encrypted_statistics="plain metadata of encrypted columns have no statistics",
        footer_signature="the signature of a plaintext footer is that of its bytes",
        module_length="the length of a module is that of its bytes",
        module_tag="each module authenticates with its key and its place in the file",
        nonce_reuse="no two modules of a key have the same nonce",
        page_levels_plain="levels of encrypted pages are encrypted",
    ),
    **_warnings(module_bytes="a struct fills its module"),
    # --- statistics (Statistics and SizeStatistics in parquet.thrift)
    **_errors(
        stats_bound="a bound is a value of its type",
        stats_min="no value is below min_value",
        stats_max="no value is above max_value",
        stats_exact="an exact bound is a value of the data",
        stats_null_count="null_count is the number of nulls",
        stats_nan_count="nan_count is the number of NaNs",
        stats_size="unencoded_byte_array_data_bytes is the size of the values",
        stats_histogram="the histograms count the levels",
    ),
    **_warnings(
        stats_distinct_count="distinct_count is the number of distinct values",
        stats_nan="no bound is NaN",
        stats_zero="a zero is -0.0 as a lower bound, and 0.0 as an upper bound",
        stats_unknown="an unknown count is absent",
        stats_order="a column without an order has no bounds",
        stats_legacy="the deprecated min and max bound all values, too",
    ),
    # --- page indexes (PageIndex.md)
    **_errors(
        index_place="a page index lies within the data of the file",
        index_pages="a page index has an item for each data page",
        offset_index_offset="offset is the offset of the page",
        offset_index_size="compressed_page_size is the size of the page, header included",
        offset_index_row="first_row_index is the first row of the page",
        column_index_null_pages="null_pages is true for pages without values only",
        column_index_min="no value of a page is below its minimum",
        column_index_max="no value of a page is above its maximum",
        column_index_bound="bounds are values of their type, and empty for null pages",
        column_index_order="the bounds follow the boundary order",
        column_index_null_counts="null_counts are the numbers of nulls",
        column_index_nan_counts="nan_counts are the numbers of NaNs",
        column_index_histograms="the histograms count the levels",
        offset_index_bytes="unencoded_byte_array_data_bytes are the sizes of the values",
    ),
    **_warnings(column_index_alone="a column chunk with a column index has an offset index"),
    # --- Bloom filters (BloomFilter.md), sorting, keys
    **_errors(
        bloom_place="a Bloom filter lies within the data of the file",
        bloom_header="the header of a Bloom filter is readable, and of a defined kind",
        bloom_length="bloom_filter_length is the size of header and bits",
        bloom_value="a Bloom filter has every value of its column chunk",
        sorting_column="sorting_columns are leaf columns of the schema",
        sorting_rows="rows are sorted by the sorting columns",
        key_utf8="keys and their values are UTF-8",
        key_arrow_schema="ARROW:schema is an Arrow schema",
        key_pandas="the pandas metadata are JSON",
    ),
    **_warnings(
        key_duplicate="no key occurs twice",
        key_columns="the keys describe the columns of the file",
    ),
}

# Deviations that a read ignores (docs/damaged-files.md): the values are the same without them.
IGNORED_BY_READERS = frozenset(
    (
        "chunk-bytes",
        "index-pages",
        "offset-index-offset",
        "offset-index-row",
        "offset-index-size",
        "page-bytes",
        "page-decimal",
        "page-null-count",
        "page-run",
        "writer-list-page-nulls",
        "writer-null-count",
        "writer-padding",
    )
)
