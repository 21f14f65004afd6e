"""Every kernel has a slow twin that Hypothesis holds it against, and what parses bytes is cut at every byte.

`TESTS` says where; a kernel that is not in it fails. What the kernels' own test files draw by seeds is drawn here by
Hypothesis once more.
"""

from __future__ import annotations

import ast
import datetime
import zlib
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import test_kernel_bounds
import test_shred_levels
import xxhash
from driving.buffers import Guarded, with_slack
from driving.engines import ENGINES
from driving.tables import scan
from driving.thrift import plain, read
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bloom_filter import leaf
from test_kernel_crc32 import check as check_crcs
from test_kernel_encode_delta import check_strings
from test_kernel_encode_dictionary import index_fixed
from test_kernel_objects import packed
from test_kernel_pages import lay_out, make_chunks, start_at
from test_kernel_placement import apart, place, random_tables
from test_kernel_snappy import compare as compare_snappy
from test_kernel_snappy import decompress
from test_kernel_text import cut, objects
from test_kernel_utf8 import compare as compare_utf8
from twins import delta, snappy, writing
from twins.pages import idl, to_bytes
from twins.runs import uleb

from numparq.column.nested import shred
from numparq.format import bloom_filter, size_statistics
from numparq.format import page_bounds as statistics_pages
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.thrift.decode import Record
from numparq.format.thrift.layout import ThriftLayout
from numparq.from_pandas.object_layout import date_layout, distinct_classes
from numparq.from_pandas.strings import encode_bytes
from numparq.from_pandas.temporal import days_by_kernel
from numparq.kernels import groups
from numparq.kernels import tables as t
from numparq.kernels.encodings.byte_stream_split import max_byte_stream_split_bytes
from numparq.kernels.status import BAD_CRC, NO_DICTIONARY
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS
from numparq.to_pandas import objects as kernel_objects

HERE = Path(__file__).resolve().parent


class Places(NamedTuple):
    """The tests of a kernel: "module.function", this module where no other is named."""

    twin: str
    cut: str | None = None


CUT = "test_kernel_hostile.test_cut_at_every_byte"
TESTS = {
    "decode_fixed_pages": Places("test_kernel_fixed.test_any_rows", CUT),
    "decode_binary_pages": Places("test_kernel_binary.test_any_rows", CUT),
    "decode_plain_binary": Places("test_kernel_binary.test_any_rows", CUT),
    "read_thrift_struct": Places(
        "test_compact_protocol.test_random_structs_written_by_thriftpy2", "test_compact_protocol.test_cut_anywhere"
    ),
    "read_thrift_structs": Places("test_many_structs", "test_many_structs_that_are_cut"),
    "check_page_crcs": Places("test_checksums"),
    "scan_pages": Places("test_walks", "test_kernel_pages.test_cut_at_every_byte"),
    "lay_out_scratch": Places("test_places"),
    "decompress_snappy_pages": Places("test_snappy", "test_kernel_snappy.test_cut_at_every_byte"),
    "check_utf8": Places("test_kernel_utf8.test_any_strings", "test_text_that_is_cut"),
    "build_str_objects": Places("test_kernel_objects.test_any_strings"),
    "build_bytes_objects": Places("test_bytes_objects"),
    "decode_page_levels": Places(
        "test_kernel_nested.test_levels_of_pages", "test_kernel_nested.test_pages_that_are_cut"
    ),
    "assemble_validity": Places("test_kernel_nested.test_validity_and_offsets"),
    "assemble_lists": Places("test_kernel_nested.test_validity_and_offsets"),
    "transcode_delta_pages": Places("test_kernel_to_plain.test_any_rows", CUT),
    "transcode_alp_pages": Places("test_kernel_alp.test_any_floats", "test_kernel_alp.test_cut_at_every_byte"),
    "index_fixed": Places("test_numbering"),
    "index_binary": Places("test_kernel_encode_dictionary.test_any_strings"),
    "encode_plain_booleans": Places("test_booleans"),
    "encode_plain_binary": Places("test_kernel_encode_plain.test_any_binary_values"),
    "encode_hybrid_u1": Places("test_kernel_encode_runs.test_any_values"),
    "encode_hybrid_i4": Places("test_kernel_encode_runs.test_any_values"),
    "drop_nulls_fixed": Places("test_values_without_nulls"),
    "drop_nulls_i8": Places("test_values_without_nulls"),
    "drop_nulls_i4": Places("test_values_without_nulls"),
    "count_valid_by_page": Places("test_counts"),
    "cut_binary_pages": Places("test_kernel_encode_compact.test_pages"),
    "gather_fixed": Places("test_values_by_codes"),
    "gather_i8": Places("test_values_by_codes"),
    "encode_byte_stream_split": Places("test_byte_streams"),
    "encode_delta4": Places("test_kernel_encode_delta.test_any_numbers"),
    "encode_delta8": Places("test_kernel_encode_delta.test_any_numbers"),
    "delta_size4": Places("test_kernel_encode_delta.test_any_numbers"),
    "delta_size8": Places("test_kernel_encode_delta.test_any_numbers"),
    "encode_delta_length": Places("test_delta_strings"),
    "encode_delta_byte_array": Places("test_delta_strings"),
    "encode_alp4": Places("test_kernel_alp.test_any_floats"),
    "encode_alp8": Places("test_kernel_alp.test_any_floats"),
    "min_max4": Places("test_bounds"),
    "min_max8": Places("test_bounds"),
    "min_max_codes": Places("test_bounds"),
    "min_max_binary": Places("test_kernel_bounds.test_any_bytes"),
    "sum_bytes_by_page": Places("test_sizes_of_pages"),
    "level_histograms": Places("test_sizes_of_pages"),
    "xxh64_fixed": Places("test_hashes"),
    "xxh64_binary": Places("test_hashes"),
    "insert_into_bloom_filter": Places("test_bloom_filter.test_bits"),
    "probe_bloom_filter": Places("test_bloom_filter.test_bits"),
    "shred_group": Places("test_nested_levels"),
    "count_list_entries": Places("test_nested_levels"),
    "shred_list": Places("test_nested_levels"),
    "shred_leaf": Places("test_nested_levels"),
    "measure_str_objects": Places("test_kernel_text.test_any_strings"),
    "copy_str_objects": Places("test_kernel_text.test_any_strings"),
    "measure_bytes_objects": Places("test_objects_of_bytes"),
    "copy_bytes_objects": Places("test_objects_of_bytes"),
    "distinct_types": Places("test_classes"),
    "read_dates": Places("test_dates"),
    "decompress_lzo": Places("test_kernel_lzo.test_any_bytes", "test_kernel_lzo.test_cut_at_every_byte"),
    "match_range4": Places("test_kernel_predicates.test_numbers"),
    "match_range8": Places("test_kernel_predicates.test_numbers"),
    "match_four_ranges4": Places("test_kernel_predicates.test_numbers"),
    "match_four_ranges8": Places("test_kernel_predicates.test_numbers"),
    "match_ranges4": Places("test_kernel_predicates.test_numbers"),
    "match_ranges8": Places("test_kernel_predicates.test_numbers"),
    "match_table4": Places("test_kernel_predicates.test_numbers"),
    "match_table8": Places("test_kernel_predicates.test_numbers"),
    "match_keys4": Places("test_kernel_predicates.test_numbers"),
    "match_keys8": Places("test_kernel_predicates.test_numbers"),
    "fill_key_table": Places("test_kernel_predicates.test_numbers"),
    "match_byte_ranges": Places("test_kernel_predicates.test_ranges_of_bytes"),
    "fill_word_table": Places("test_kernel_predicates.test_ranges_of_bytes"),
    "match_like": Places("test_kernel_predicates.test_patterns"),
    "match_mask": Places("test_kernel_predicates.test_masks"),
    "match_codes": Places("test_kernel_predicates.test_codes"),
    "match_any_element": Places("test_kernel_predicates.test_lists"),
    "mask_to_ranges": Places("test_kernel_predicates.test_ranges_of_a_mask"),
    "crc32c": Places("test_kernel_crc32c.test_as_the_twin"),
    "select_pages_of_ranges": Places("test_kernel_selecting.test_pages_with_wanted_rows"),
    "take_fixed_ranges": Places("test_kernel_selecting.test_items"),
    "count_bytes_of_ranges": Places("test_kernel_selecting.test_strings"),
    "take_binary_ranges": Places("test_kernel_selecting.test_strings"),
    "mask_to_indices": Places("test_kernel_selecting.test_places_of_a_mask"),
    "take_fixed_indices": Places("test_kernel_selecting.test_items_one_by_one"),
    "count_bytes_of_indices": Places("test_kernel_selecting.test_strings_one_by_one"),
    "take_binary_indices": Places("test_kernel_selecting.test_strings_one_by_one"),
    "take_fixed_pages": Places("test_kernel_scattered.test_any_rows", "test_kernel_scattered.test_cut_at_every_byte"),
    "take_binary_pages": Places("test_kernel_scattered.test_any_rows", "test_kernel_scattered.test_cut_at_every_byte"),
    "scan_pages_at": Places(
        "test_kernel_selecting.test_located_pages", "test_kernel_selecting.test_located_pages_that_are_cut"
    ),
    "fused_read_fixed": Places(
        "test_kernel_at_once.test_any_run_of_rows", "test_kernel_at_once.test_cut_at_every_byte"
    ),
    "fused_read_binary": Places(
        "test_kernel_at_once.test_any_run_of_rows", "test_kernel_at_once.test_strings_that_are_cut"
    ),
    "coalesce_ranges": Places("test_byte_ranges"),
}
# Kernels that are handed bytes as they stand in the file, whose structure they follow.
PARSERS = {
    "decode_fixed_pages",
    "decode_binary_pages",
    "decode_plain_binary",
    "read_thrift_struct",
    "read_thrift_structs",
    "scan_pages",
    "decompress_snappy_pages",
    "check_utf8",
    "decode_page_levels",
    "transcode_delta_pages",
    "transcode_alp_pages",
    "decompress_lzo",
    "scan_pages_at",
    "take_fixed_pages",
    "take_binary_pages",
    "fused_read_fixed",
    "fused_read_binary",
}


def _decorators(test: str) -> list[str]:
    """Give the decorators of a test function, which there has to be."""
    module, _, name = test.rpartition(".")
    tree = ast.parse((HERE / f"{module or 'test_kernel_twins'}.py").read_text())
    found = [item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name == name]
    assert len(found) == 1, f"there is no {test}"
    return [ast.unparse(decorator) for decorator in found[0].decorator_list]


def test_every_kernel_has_its_tests():
    known = {name for group in groups.GROUPS for name in groups.import_group(group)}
    assert TESTS.keys() == known
    assert {name for name, tests in TESTS.items() if tests.cut} == PARSERS
    for tests in TESTS.values():
        assert any(decorator.startswith("given(") for decorator in _decorators(tests.twin)), tests.twin
        if tests.cut:
            _decorators(tests.cut)


# --- drawn by Hypothesis ----------------------------------------------------------------------------------------------

SEEDS = st.integers(0, (1 << 32) - 1)
few = settings(deadline=None, max_examples=30)
STRINGS = st.lists(
    st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"a", b"ab" * 9, b"ab" * 9 + b"c"])), max_size=40
)


@few
@given(pairs=st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.text(max_size=5)), max_size=6))
def test_many_structs(pairs):
    """Structs that lie anywhere, each as it is read alone; one that there is none of has no fields."""
    wanted = ThriftLayout("Statistics")
    stored = [
        to_bytes(idl().Statistics(max=text and text.encode(), null_count=i, min=data))
        for i, (data, text) in enumerate(pairs)
    ]
    data = b"?".join([b"", *stored])
    starts = [len(b"?".join([b"", *stored[:i]])) + 1 for i in range(len(stored))]
    for engine in ENGINES:
        found = _read_all(engine, wanted, data, [*starts, -1])
        assert found is not None
        for one, alone in zip(found, [read(engine, wanted, each)[1] for each in stored], strict=False):
            assert plain(one) == plain(alone)
        assert plain(found[-1]) == {}


def _read_all(engine, layout, data, starts):
    rng = np.random.default_rng(len(data))
    size = len(starts) * layout.words
    arena, stack = Guarded(rng, size + 500, "i8"), Guarded(rng, STACK_WORDS, "i8")
    arena.array[:] = 0
    stack.array[S_TOP], stack.array[S_ROOM] = size, size + 500
    raw = with_slack(rng, data)
    places = np.arange(len(starts), dtype=np.int64)
    status = engine.read_thrift_structs(
        raw, np.array(starts, np.int64), places, len(starts), len(data), layout.table, arena.array, stack.array
    )
    arena.check()
    stack.check()
    if status < 0:
        return None
    assert status == len(starts)
    return [
        Record(layout.record, arena.array[: (i + 1) * layout.words], i * layout.words, raw) for i in places.tolist()
    ]


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_many_structs_that_are_cut(engine):
    wanted = ThriftLayout("Statistics")
    stored = to_bytes(idl().Statistics(max=b"largest", min=b"", null_count=77, is_max_value_exact=True))
    for size in range(len(stored)):
        assert _read_all(engine, wanted, stored + stored[:size], [0, len(stored)]) is None
    assert _read_all(engine, wanted, stored * 2, [0, len(stored)]) is not None


BODIES = st.binary(max_size=40) | st.binary(min_size=64, max_size=300)  # from 64 bytes on, the kernel goes by blocks


@few
@given(bodies=st.lists(BODIES, min_size=1, max_size=5), damaged=st.integers(0, 9), data=st.data())
def test_checksums(bodies, damaged, data):
    table = np.zeros((len(bodies), t.PAGE_FIELDS), np.int64)
    starts = np.cumsum([0, *map(len, bodies)])
    for row, start, body in zip(table, starts.tolist(), bodies, strict=False):
        row[t.P_BODY], row[t.P_COMPRESSED], row[t.P_CRC] = start, len(body), zlib.crc32(body)
    raw, expected = bytearray(b"".join(bodies)), (0, -1)
    if damaged < len(bodies) and bodies[damaged]:
        raw[starts[damaged] + data.draw(st.integers(0, len(bodies[damaged]) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        expected = BAD_CRC, damaged
    for engine in ENGINES:
        assert check_crcs(engine, bytes(raw), table) == expected


@few
@given(seed=SEEDS, count=st.integers(1, 4), gap=st.binary(max_size=3))
def test_walks(seed, count, gap):
    rng = np.random.default_rng(seed)
    data, table, expected = lay_out(make_chunks(rng, count, 5), gap)
    for engine in ENGINES:
        status, pages, _ = scan(engine, with_slack(rng, data), len(data), table.copy(), len(expected), start_at(table))
        assert status == 0
        assert (pages == expected).all()


@few
@given(
    seed=SEEDS, num_chunks=st.integers(1, 5), num_pages=st.integers(0, 20), batch=st.sampled_from([0, 1, 99, 1 << 20])
)
def test_places(seed, num_chunks, num_pages, batch):
    """What is decompressed lies apart; the compiled kernel and its Python body agree."""
    outcomes = []
    for engine in ENGINES:
        chunks, pages = random_tables(np.random.default_rng(seed), num_chunks, num_pages)
        status, batches, totals = place(engine, chunks, pages, batch)
        assert status == len(batches)
        packed_ones = pages[pages[:, t.P_IS_COMPRESSED] != 0]
        for first, last, _ in batches:
            run = pages[first:last]
            assert apart(run[run[:, t.P_IS_COMPRESSED] != 0][:, [t.P_SCRATCH, t.P_UNCOMPRESSED]].tolist())
        outcomes.append((status, batches, totals.tolist(), packed_ones.tolist()))
    assert outcomes[0] == outcomes[1]


@few
@given(data=st.data())
def test_snappy(data):
    """Literals and copies one after the other, and bytes of any kind."""
    made, block = b"", b""
    for _ in range(data.draw(st.integers(0, 6))):
        if made and data.draw(st.booleans()):
            offset, length = data.draw(st.integers(1, len(made))), data.draw(st.integers(1, 64))
            block += snappy.copy(offset, length, 2)
            made = (made + made[-offset:] * (length // offset + 1))[: len(made) + length]
        else:
            literal = data.draw(st.binary(min_size=1, max_size=70))
            block, made = block + snappy.literal(literal), made + literal
    garbage = data.draw(st.binary(max_size=20))
    for engine in ENGINES:
        assert decompress(engine, [uleb(len(made)) + block], 0, [len(made)]) == [made]
        compare_snappy(engine, garbage, data.draw(st.sampled_from([0, 5, len(garbage)])), 0)
        compare_snappy(engine, uleb(len(made)) + garbage + block, len(made), 1)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_text_that_is_cut(engine):
    text = "aé中\U0001f600 \x7f\u07ff\u0800\ud7ff\ue000\U0010ffffend".encode() * 2
    for size in range(len(text)):
        compare_utf8(engine, [text[:size]])
        compare_utf8(engine, [text[:size], text[size:]])


@few
@given(values=st.lists(st.none() | st.binary(max_size=40), max_size=30))
def test_bytes_objects(values):
    assert kernel_objects.bytes_object_array(*packed(values), None).tolist() == values


@few
@given(values=st.lists(st.binary(min_size=3, max_size=3), max_size=40), room=st.integers(0, 20))
def test_numbering(values, room):
    entries, codes = writing.numbered(values)
    expected = NO_DICTIONARY if len(entries) > room else (entries, codes)
    for engine in ENGINES:
        assert index_fixed(engine, values, 3, room) == expected


@few
@given(values=st.lists(st.integers(0, 1), max_size=70), start=st.integers(0, 9))
def test_booleans(values, start):
    start = min(start, len(values))
    for engine in ENGINES:
        out = Guarded(np.random.default_rng(0), (len(values) - start + 7) // 8)
        engine.encode_plain_booleans(np.array(values, np.uint8), start, len(values), out.array, 0)
        out.check()
        assert out.array.tobytes() == writing.booleans(values[start:])


@few
@given(values=st.lists(st.none() | st.integers(-(1 << 31), (1 << 31) - 1), max_size=60))
def test_values_without_nulls(values):
    validity = np.array([value is not None for value in values], np.uint8)
    wanted = [value for value in values if value is not None]
    for engine in ENGINES:
        for name, item in (("drop_nulls_i4", "i4"), ("drop_nulls_i8", "i8")):
            stored, out = (
                np.array([value or 0 for value in values], item),
                Guarded(np.random.default_rng(0), len(values), item),
            )
            assert getattr(engine, name)(stored, validity, len(values), out.array) == len(wanted)
            out.check()
            assert out.array[: len(wanted)].tolist() == wanted
        out = Guarded(np.random.default_rng(0), 8 * len(values))
        assert engine.drop_nulls_fixed(stored.view(np.uint8), 8, validity, len(values), out.array) == len(wanted)
        out.check()
        assert out.array[: 8 * len(wanted)].view("i8").tolist() == wanted


@few
@given(validity=st.lists(st.integers(0, 1), max_size=60), cuts=st.lists(st.integers(0, 60), max_size=5))
def test_counts(validity, cuts):
    bounds = np.array([0, *sorted(min(place, len(validity)) for place in cuts), len(validity)], np.int64)
    for engine in ENGINES:
        out = Guarded(np.random.default_rng(0), len(bounds) - 1, "i8")
        assert engine.count_valid_by_page(np.array(validity, np.uint8), bounds, len(bounds) - 1, out.array) == sum(
            validity
        )
        out.check()
        assert out.array.tolist() == [sum(validity[start:stop]) for start, stop in pairwise(bounds.tolist())]


@few
@given(values=st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=9), data=st.data())
def test_values_by_codes(values, data):
    codes = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=40)), np.int32)
    wanted = b"".join(values[code] for code in codes)
    stored = np.frombuffer(b"".join(values), np.uint8)
    for engine in ENGINES:
        out, wide = Guarded(np.random.default_rng(0), len(wanted)), Guarded(np.random.default_rng(0), len(codes), "i8")
        assert engine.gather_fixed(stored, 8, codes, len(codes), out.array) == len(codes)
        assert engine.gather_i8(stored.view("i8"), codes, len(codes), wide.array) == len(codes)
        out.check()
        wide.check()
        assert out.array.tobytes() == wide.array.tobytes() == wanted


@few
@given(data=st.data(), width=st.integers(1, 17))
def test_byte_streams(data, width):
    values = data.draw(st.lists(st.binary(min_size=width, max_size=width), max_size=40))
    start = data.draw(st.integers(0, len(values)))
    for engine in ENGINES:
        out = Guarded(np.random.default_rng(0), max_byte_stream_split_bytes(len(values) - start, width))
        stored = np.frombuffer(b"".join(values), np.uint8)
        assert engine.encode_byte_stream_split(stored, width, start, len(values), out.array, 0) == len(out.array)
        out.check()
        assert out.array.tobytes() == delta.split(values[start:], width)


@few
@given(strings=STRINGS, seed=SEEDS, data=st.data())
def test_delta_strings(strings, seed, data):
    start = data.draw(st.integers(0, len(strings)))
    for engine in ENGINES:
        check_strings(engine, strings, start, len(strings), np.random.default_rng(seed))


FIXED = [case for case in test_kernel_bounds.CASES if case.physical != BYTE_ARRAY and case.kind != "boolean"]


@settings(deadline=None, max_examples=100)
@given(data=st.data(), case=st.sampled_from(FIXED))
def test_bounds(data, case):
    width = case.order.width
    value = st.one_of(st.binary(min_size=width, max_size=width), st.sampled_from(test_kernel_bounds.special(case)))
    values = data.draw(st.lists(value, max_size=12))
    codes = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(statistics_pages, "statistics_kernels", engine)
            test_kernel_bounds.compare(case, values, [len(values) // 2, len(values)])
            test_kernel_bounds.compare(case, values, [len(codes) // 3, len(codes)], codes)


@few
@given(values=STRINGS, levels=st.lists(st.integers(0, 3), max_size=40), data=st.data())
def test_sizes_of_pages(values, levels, data):
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    codes = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else [], np.int32)
    about = Leaf(0, 0, ("a",), BYTE_ARRAY, None, None, 3, 0)
    places = {"starts": ends - np.array([len(value) for value in values], np.int64), "ends": ends}
    at = np.array([0, len(levels) // 3, len(levels)], np.int64)
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(size_statistics, "statistics_kernels", engine)
            for of, extra in ((values, {}), ([values[code] for code in codes], {"codes": codes})):
                bounds = np.array([0, len(of) // 2, len(of)], np.int64)
                found = size_statistics.compute_page_sizes(
                    about, bounds, at, definition=np.array(levels, np.uint8), **places, **extra
                )
                assert found.byte_array_bytes.tolist() == [len(b"".join(of[a:b])) for a, b in pairwise(bounds.tolist())]
                counted = [levels[a:b] for a, b in pairwise(at.tolist())]
                assert found.definition.tolist() == [[page.count(level) for level in range(4)] for page in counted]


@few
@given(values=st.lists(st.binary(max_size=70), max_size=9), width=st.integers(1, 40), data=st.binary(max_size=200))
def test_hashes(values, width, data):
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    starts = ends - np.array([len(value) for value in values], np.int64)
    data = data[: len(data) // width * width]
    fixed = [data[place : place + width] for place in range(0, len(data), width)]
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bloom_filter, "statistics_kernels", engine)
            found = bloom_filter.hash_values(leaf(6), np.frombuffer(b"".join(values), np.uint8), starts, ends)
            assert found.tolist() == [xxhash.xxh64_intdigest(value) for value in values]
            found = bloom_filter.hash_values(leaf(7, width), np.frombuffer(data, np.uint8))
            assert found.tolist() == [xxhash.xxh64_intdigest(value) for value in fixed]


@few
@given(seed=SEEDS, depth=st.integers(0, 4), length=st.integers(0, 9))
def test_nested_levels(seed, depth, length):
    rng = np.random.default_rng(seed)
    node = test_shred_levels.random_node(rng, "column", depth)
    array = test_shred_levels.random_array(rng, node, length)
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shred, "nested_encode_kernels", engine)
            test_shred_levels.compare(node, array)


@few
@given(values=st.lists(st.none() | st.binary(max_size=30), max_size=30))
def test_objects_of_bytes(values):
    assert cut(*encode_bytes(objects(values))) == values


@few
@given(values=st.lists(st.sampled_from([None, 1, 2, "a", 1.5, True, b"", (), datetime.date(2020, 1, 1)]), max_size=200))
def test_classes(values):
    assert list(distinct_classes(objects(values))) == list(dict.fromkeys(map(type, values)))


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
@few
@given(values=st.lists(st.none() | st.dates(), max_size=30))
def test_dates(values):
    found = days_by_kernel(objects(values))
    assert found is not None
    validity = [1] * len(values) if found.validity is None else found.validity.tolist()
    first = datetime.date(1970, 1, 1).toordinal()
    assert validity == [int(value is not None) for value in values]
    assert found.values.tolist() == [0 if value is None else value.toordinal() - first for value in values]


@settings(deadline=None, max_examples=60)
@given(
    ranges=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12),
    gap=st.integers(0, 9),
    most=st.integers(1, 60),
)
def test_byte_ranges(ranges, gap, most):
    """Spans of ranges that lie over each other go into the last request, where gap and size allow."""
    wanted = np.array([(start, start + size) for start, size in ranges], np.int64).reshape(-1, 2)
    spans: list[list[int]] = []
    for start, stop in sorted(wanted.tolist()):
        if spans and start < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], stop)
        else:
            spans.append([start, stop])
    requests: list[list[int]] = []
    for start, stop in spans:
        if requests and start - requests[-1][1] <= gap and stop - requests[-1][0] <= most:
            requests[-1][1] = stop
        else:
            requests.append([start, stop])
    order = wanted[:, 0].argsort(kind="stable")
    for engine in ENGINES:
        rng = np.random.default_rng(len(ranges))
        blobs, places = Guarded(rng, wanted.size, "i8"), Guarded(rng, 3 * len(wanted), "i8")
        count = engine.coalesce_ranges(order, wanted.reshape(-1), len(wanted), gap, most, blobs.array, places.array)
        blobs.check()
        places.check()
        assert blobs.array[: 2 * count].reshape(-1, 2).tolist() == requests
        for (start, stop), (blob, position, size) in zip(
            wanted.tolist(), places.array.reshape(-1, 3).tolist(), strict=True
        ):
            assert requests[blob][0] + position == start
            assert size == stop - start
