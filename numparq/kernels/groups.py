"""Kernel groups: which kernels are compiled, cached and loaded together."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from .registry import KERNELS, Kernel

# Group -> module -> its kernels of the group. A group is compiled and loaded as a whole when one of its kernels is
# first used, so that nobody waits for kernels that are not needed. Modules without kernels are there for the cache key.
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "reading": {
        "byte_ranges": ("coalesce_ranges",),
        "checksums": ("check_page_crcs",),
        "decode.binary_pages": ("decode_binary_dictionaries", "decode_binary_pages"),
        "decode.fixed_pages": ("decode_fixed_pages",),
        "decode.encrypted_headers": (),
        "decode.levels": (),
        "decode.page_headers": ("scan_pages_at", "scan_pages"),
        "decode.page_sections": ("bound_chunks",),
        "decode.plain_pages": ("find_plain_values",),
        "decode.scratch_layout": ("lay_out_scratch",),
        "decode.snappy": ("decompress_snappy_pages",),
        "decode.utf8": ("check_utf8",),
        "encodings.dictionary": (),
        "encodings.hybrid_rle": (),
        "encodings.plain": (),
        "page_locations": ("locate_pages",),
        "selection.binary_pages": ("read_binary_rows",),
        "selection.fixed_pages": ("read_fixed_rows",),
        "selection.lazy_pages": (),
        "selection.rows": (),
        "thrift.records": ("read_thrift_struct", "read_thrift_structs", "read_thrift_roots"),
        "thrift.wire": (),
    },
    "objects": {
        "encodings.dictionary": ("index_binary",),
        "encodings.hybrid_rle": (),
        "objects.strings": ("build_str_objects", "build_bytes_objects"),
        "objects.types": (),
    },
    "nested": {
        "decode.levels": ("decode_page_levels",),
        "encodings.hybrid_rle": (),
        "nested": ("assemble_validity", "assemble_lists"),
    },
    "selecting": {
        "selection.rows": (
            "take_fixed_ranges",
            "count_bytes_of_ranges",
            "take_binary_ranges",
            "mask_to_indices",
            "take_fixed_indices",
            "count_bytes_of_indices",
            "take_binary_indices",
            "measure_prefixed_strings",
            "copy_prefixed_strings",
        )
    },
    "delta": {
        "decode.levels": (),
        "decode.page_sections": (),
        "decode.transcode": ("transcode_delta_pages",),
        "encodings.alp": (),
        "encodings.byte_stream_split": (),
        "encodings.delta_binary_packed": (),
        "encodings.delta_byte_arrays": (),
        "encodings.hybrid_rle": (),
    },
    "alp": {
        "decode.levels": (),
        "decode.page_sections": (),
        "decode.transcode": ("transcode_alp_pages",),
        "encodings.alp": (),
        "encodings.byte_stream_split": (),
        "encodings.delta_binary_packed": (),
        "encodings.delta_byte_arrays": (),
        "encodings.hybrid_rle": (),
    },
    "writing": {
        "encodings.dictionary": ("index_fixed",),
        "encodings.hybrid_rle": ("encode_hybrid_u1", "encode_hybrid_i4"),
        "encodings.plain": ("encode_plain_booleans", "encode_plain_binary"),
        "encodings.delta_binary_packed": (),
        "page_writing": ("index_fixed_chunks", "index_binary_chunks", "encode_pages"),
        "page_values": (
            "drop_nulls_fixed",
            "drop_nulls_i8",
            "drop_nulls_i4",
            "count_valid_by_page",
            "cut_binary_pages",
            "gather_fixed",
            "gather_i8",
        ),
        "thrift.encode": ("write_thrift_structs",),
        "thrift.wire": (),
    },
    "delta_writing": {
        "encodings.byte_stream_split": ("encode_byte_stream_split",),
        "encodings.delta_binary_packed": ("delta_sizes4", "delta_sizes8"),
        "encodings.delta_byte_arrays": ("encode_delta_length", "encode_delta_byte_array"),
    },
    "alp_writing": {"encodings.alp": ("encode_alp4", "encode_alp8")},
    "statistics": {
        "bloom_filter": ("xxh64_fixed", "xxh64_binary", "insert_into_bloom_filter", "probe_bloom_filter"),
        "statistics": (
            "min_max4",
            "min_max8",
            "min_max_codes",
            "min_max_binary",
            "sum_bytes_by_page",
            "level_histograms",
        ),
    },
    "shredding": {"nested": ("shred_group", "count_list_entries", "shred_list", "shred_leaf")},
    "text": {
        "objects.arrays": ("measure_arrays", "copy_arrays"),
        "objects.containers": ("measure_containers", "copy_list_items", "copy_dict_items"),
        "objects.dates": ("read_dates", "read_datetimes"),
        "objects.scalars": ("read_scalars",),
        "objects.strings": ("measure_str_objects", "copy_str_objects", "measure_bytes_objects", "copy_bytes_objects"),
        "objects.types": ("distinct_types",),
    },
    "lzo": {"decode.lzo": ("decompress_lzo",)},
    "checksums": {"checksums": ("crc32c",)},
    "predicates": {
        "predicates.binary": (
            "match_byte_ranges",
            "match_string",
            "match_like",
            "compare_string_rows",
        ),
        "predicates.fixed": (
            "match_range",
            "match_four_ranges",
            "match_ranges",
            "match_table",
            "fill_key_table",
            "match_keys",
        ),
        "predicates.string_tables": ("fill_string_table", "match_strings", "string_words"),
        "predicates.masks": ("match_mask", "match_codes", "match_any_element", "spread_mask", "mask_to_ranges"),
    },
    "spark_bloom": {
        "predicates.spark_bloom": (
            "hash_spark_longs",
            "hash_spark_strings",
            "put_spark_items",
            "locate_spark_cells",
            "probe_spark_cells",
        )
    },
}


def import_group(group: str) -> Mapping[str, Kernel]:
    """Import the kernel modules of a group and return its kernels by name."""
    for module in GROUPS[group]:
        import_module(f"{__package__}.{module}")
    members = {name for names in GROUPS[group].values() for name in names}
    return {name: kernel for name, kernel in KERNELS.items() if name in members}
