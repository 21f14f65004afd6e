"""Registry: every kernel has a Hypothesis test against an oracle, and every parser is cut at every byte.

`TESTS` names these tests; a kernel without an entry fails.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from numparq.kernels import groups

TESTS_FOLDER = Path(__file__).resolve().parents[1]


class KernelTests(NamedTuple):
    """The tests of a kernel, as "path.function", the path below the folder of tests."""

    oracle: str
    cut: str | None = None


CUT = "kernels/test_decode_damaged_pages.test_cut_at_every_byte"
TESTS = {
    "decode_fixed_pages": KernelTests("kernels/decode/test_fixed_pages.test_any_rows", CUT),
    "decode_binary_pages": KernelTests("kernels/decode/test_binary_pages.test_any_rows", CUT),
    "find_plain_values": KernelTests("kernels/decode/test_binary_pages.test_any_rows", CUT),
    "decode_binary_dictionaries": KernelTests("kernels/decode/test_binary_pages.test_any_rows", CUT),
    "read_thrift_struct": KernelTests(
        "kernels/test_thrift_records.test_random_structs_written_by_thriftpy2",
        "kernels/test_thrift_records.test_cut_at_every_byte",
    ),
    "read_thrift_structs": KernelTests(
        "kernels/test_thrift_records.test_many_structs", "kernels/test_thrift_records.test_many_truncated_structs"
    ),
    "read_thrift_roots": KernelTests(
        "kernels/test_thrift_records.test_many_roots", "kernels/test_thrift_records.test_many_truncated_roots"
    ),
    "write_thrift_structs": KernelTests("format/thrift/test_templates.test_equal_to_encode_struct"),
    "check_page_crcs": KernelTests("kernels/test_checksums_crc32.test_any_bodies"),
    "bound_chunks": KernelTests("kernels/decode/test_page_sections.test_bounds_of_chunks"),
    "scan_pages": KernelTests(
        "kernels/decode/test_page_headers_walk.test_any_chunks",
        "kernels/decode/test_page_headers_walk.test_cut_at_every_byte",
    ),
    "locate_pages": KernelTests("kernels/test_page_locations.test_any_pages"),
    "lay_out_scratch": KernelTests("kernels/decode/test_scratch_layout.test_any_pages_do_not_overlap"),
    "decompress_snappy_pages": KernelTests(
        "kernels/decode/test_snappy.test_any_blocks", "kernels/decode/test_snappy.test_cut_at_every_byte"
    ),
    "check_utf8": KernelTests(
        "kernels/decode/test_utf8.test_any_strings", "kernels/decode/test_utf8.test_truncated_text"
    ),
    "build_str_objects": KernelTests("kernels/objects/test_strings_to_objects.test_any_strings"),
    "build_bytes_objects": KernelTests("kernels/objects/test_strings_to_objects.test_any_bytes_objects"),
    "decode_page_levels": KernelTests(
        "kernels/decode/test_levels.test_decode_page_levels", "kernels/decode/test_levels.test_truncated_pages"
    ),
    "assemble_validity": KernelTests("kernels/decode/test_levels.test_validity_and_offsets"),
    "assemble_lists": KernelTests("kernels/decode/test_levels.test_validity_and_offsets"),
    "transcode_delta_pages": KernelTests("kernels/decode/test_transcode.test_any_rows", CUT),
    "transcode_alp_pages": KernelTests(
        "kernels/encodings/test_alp.test_any_floats", "kernels/encodings/test_alp.test_cut_at_every_byte"
    ),
    "index_fixed": KernelTests("kernels/encodings/test_dictionary.test_any_fixed_values"),
    "index_binary": KernelTests("kernels/encodings/test_dictionary.test_any_strings"),
    "index_fixed_chunks": KernelTests("kernels/test_page_writing.test_index_any_chunks"),
    "index_binary_chunks": KernelTests("kernels/test_page_writing.test_index_any_chunks"),
    "encode_pages": KernelTests("kernels/test_page_writing.test_encode_any_pages"),
    "encode_plain_booleans": KernelTests("kernels/encodings/test_plain.test_any_booleans"),
    "encode_plain_binary": KernelTests("kernels/encodings/test_plain.test_any_binary_values"),
    "encode_hybrid_u1": KernelTests("kernels/encodings/test_hybrid_rle_encode.test_any_values"),
    "encode_hybrid_i4": KernelTests("kernels/encodings/test_hybrid_rle_encode.test_any_values"),
    "drop_nulls_fixed": KernelTests("kernels/test_page_values.test_drop_nulls_any_values"),
    "drop_nulls_i8": KernelTests("kernels/test_page_values.test_drop_nulls_any_values"),
    "drop_nulls_i4": KernelTests("kernels/test_page_values.test_drop_nulls_any_values"),
    "count_valid_by_page": KernelTests("kernels/test_page_values.test_count_valid_any_pages"),
    "cut_binary_pages": KernelTests("kernels/test_page_values.test_cut_binary_pages"),
    "gather_fixed": KernelTests("kernels/test_page_values.test_gather_any_codes"),
    "gather_i8": KernelTests("kernels/test_page_values.test_gather_any_codes"),
    "encode_byte_stream_split": KernelTests("kernels/encodings/test_byte_stream_split.test_any_values"),
    "delta_sizes4": KernelTests("kernels/encodings/test_delta_binary_packed.test_any_numbers"),
    "delta_sizes8": KernelTests("kernels/encodings/test_delta_binary_packed.test_any_numbers"),
    "encode_delta_length": KernelTests("kernels/encodings/test_delta_byte_arrays.test_any_strings"),
    "encode_delta_byte_array": KernelTests("kernels/encodings/test_delta_byte_arrays.test_any_strings"),
    "encode_alp4": KernelTests("kernels/encodings/test_alp.test_any_floats"),
    "encode_alp8": KernelTests("kernels/encodings/test_alp.test_any_floats"),
    "min_max4": KernelTests("kernels/test_statistics.test_any_bounds"),
    "min_max8": KernelTests("kernels/test_statistics.test_any_bounds"),
    "min_max_codes": KernelTests("kernels/test_statistics.test_any_bounds"),
    "min_max_binary": KernelTests("kernels/test_statistics.test_any_bytes"),
    "sum_bytes_by_page": KernelTests("kernels/test_statistics.test_any_page_sizes_and_histograms"),
    "level_histograms": KernelTests("kernels/test_statistics.test_any_page_sizes_and_histograms"),
    "xxh64_fixed": KernelTests("format/test_bloom_filter.test_any_hashes"),
    "xxh64_binary": KernelTests("format/test_bloom_filter.test_any_hashes"),
    "insert_into_bloom_filter": KernelTests("format/test_bloom_filter.test_insert_and_probe_bits"),
    "probe_bloom_filter": KernelTests("format/test_bloom_filter.test_insert_and_probe_bits"),
    "shred_group": KernelTests("column/test_nested_shred.test_any_levels"),
    "count_list_entries": KernelTests("column/test_nested_shred.test_any_levels"),
    "shred_list": KernelTests("column/test_nested_shred.test_any_levels"),
    "shred_leaf": KernelTests("column/test_nested_shred.test_any_levels"),
    "measure_str_objects": KernelTests("kernels/objects/test_strings_from_objects.test_any_strings"),
    "copy_str_objects": KernelTests("kernels/objects/test_strings_from_objects.test_any_strings"),
    "measure_bytes_objects": KernelTests("kernels/objects/test_strings_from_objects.test_any_bytes"),
    "copy_bytes_objects": KernelTests("kernels/objects/test_strings_from_objects.test_any_bytes"),
    "distinct_types": KernelTests("kernels/objects/test_strings_from_objects.test_any_distinct_classes"),
    "measure_arrays": KernelTests("kernels/objects/test_containers.test_any_arrays"),
    "copy_arrays": KernelTests("kernels/objects/test_containers.test_any_arrays"),
    "measure_containers": KernelTests("kernels/objects/test_containers.test_any_lists"),
    "copy_list_items": KernelTests("kernels/objects/test_containers.test_any_lists"),
    "copy_dict_items": KernelTests("kernels/objects/test_containers.test_any_dicts"),
    "read_dates": KernelTests("from_pandas/test_temporal.test_random_dates_match_toordinal"),
    "read_datetimes": KernelTests("from_pandas/test_temporal.test_random_datetimes"),
    "read_scalars": KernelTests("kernels/objects/test_scalars.test_any_scalars"),
    "decompress_lzo": KernelTests(
        "kernels/decode/test_lzo.test_any_bytes", "kernels/decode/test_lzo.test_cut_at_every_byte"
    ),
    "match_range": KernelTests("kernels/test_predicates.test_match_integers"),
    "match_four_ranges": KernelTests("kernels/test_predicates.test_match_integers"),
    "match_ranges": KernelTests("kernels/test_predicates.test_match_integers"),
    "match_table": KernelTests("kernels/test_predicates.test_match_integers"),
    "match_keys": KernelTests("kernels/test_predicates.test_match_integers"),
    "fill_key_table": KernelTests("kernels/test_predicates.test_match_integers"),
    "match_string": KernelTests("kernels/test_predicates.test_match_one_string"),
    "match_byte_ranges": KernelTests("kernels/test_predicates.test_match_byte_ranges"),
    "fill_string_table": KernelTests("kernels/test_predicates.test_match_many_strings"),
    "match_strings": KernelTests("kernels/test_predicates.test_match_many_strings"),
    "string_words": KernelTests("kernels/test_predicates.test_words_of_strings"),
    "compare_string_rows": KernelTests("kernels/test_predicates.test_compare_strings_row_by_row"),
    "match_like": KernelTests("kernels/test_predicates.test_match_like_patterns"),
    "match_mask": KernelTests("kernels/test_predicates.test_combine_masks"),
    "match_codes": KernelTests("kernels/test_predicates.test_match_codes"),
    "spread_mask": KernelTests("kernels/test_predicates.test_spread_mask"),
    "match_any_element": KernelTests("kernels/test_predicates.test_match_any_element"),
    "mask_to_ranges": KernelTests("kernels/test_predicates.test_mask_to_ranges"),
    "crc32c": KernelTests("kernels/test_checksums_crc32c.test_any_bytes"),
    "take_fixed_ranges": KernelTests("kernels/selection/test_rows.test_take_fixed_ranges"),
    "count_bytes_of_ranges": KernelTests("kernels/selection/test_rows.test_take_binary_ranges"),
    "take_binary_ranges": KernelTests("kernels/selection/test_rows.test_take_binary_ranges"),
    "mask_to_indices": KernelTests("kernels/selection/test_rows.test_mask_to_indices"),
    "take_fixed_indices": KernelTests("kernels/selection/test_rows.test_take_fixed_indices"),
    "count_bytes_of_indices": KernelTests("kernels/selection/test_rows.test_take_binary_indices"),
    "take_binary_indices": KernelTests("kernels/selection/test_rows.test_take_binary_indices"),
    "measure_prefixed_strings": KernelTests("kernels/selection/test_rows.test_take_strings_behind_their_lengths"),
    "copy_prefixed_strings": KernelTests("kernels/selection/test_rows.test_take_strings_behind_their_lengths"),
    "read_fixed_rows": KernelTests(
        "kernels/test_selection_pages.test_any_rows", "kernels/test_selection_pages.test_cut_at_every_byte"
    ),
    "read_binary_rows": KernelTests(
        "kernels/test_selection_pages.test_any_rows", "kernels/test_selection_pages.test_cut_at_every_byte"
    ),
    "scan_pages_at": KernelTests(
        "kernels/decode/test_page_headers_indexed.test_located_pages",
        "kernels/decode/test_page_headers_indexed.test_truncated_located_pages",
    ),
    "hash_spark_longs": KernelTests("skipping/test_spark_bloom.test_any_hashes"),
    "hash_spark_strings": KernelTests("skipping/test_spark_bloom.test_any_hashes"),
    "put_spark_items": KernelTests("skipping/test_spark_bloom.test_any_cells"),
    "locate_spark_cells": KernelTests(
        "skipping/test_spark_bloom.test_any_cells", "skipping/test_spark_bloom.test_cut_at_every_byte"
    ),
    "probe_spark_cells": KernelTests("skipping/test_spark_bloom.test_any_cells"),
    "coalesce_ranges": KernelTests("io/test_coalesce.test_coalesce_kernels_equal_reference"),
}
# Kernels that parse bytes of the file.
PARSERS = {
    "decode_fixed_pages",
    "decode_binary_pages",
    "find_plain_values",
    "decode_binary_dictionaries",
    "read_thrift_struct",
    "read_thrift_structs",
    "read_thrift_roots",
    "scan_pages",
    "decompress_snappy_pages",
    "check_utf8",
    "decode_page_levels",
    "transcode_delta_pages",
    "transcode_alp_pages",
    "decompress_lzo",
    "scan_pages_at",
    "read_fixed_rows",
    "read_binary_rows",
    "locate_spark_cells",
}


def _decorators(test: str) -> list[str]:
    """Return the decorators of a test function, which must exist."""
    module, _, name = test.rpartition(".")
    tree = ast.parse((TESTS_FOLDER / f"{module}.py").read_text())
    found = [item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name == name]
    assert len(found) == 1, f"no test {test}"
    return [ast.unparse(decorator) for decorator in found[0].decorator_list]


def test_every_kernel_has_its_tests():
    known = {name for group in groups.GROUPS for name in groups.import_group(group)}
    assert TESTS.keys() == known
    assert {name for name, tests in TESTS.items() if tests.cut} == PARSERS
    for tests in TESTS.values():
        assert any(decorator.startswith("given(") for decorator in _decorators(tests.oracle)), tests.oracle
        if tests.cut:
            _decorators(tests.cut)
