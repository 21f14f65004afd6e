"""Predicate kernels, through the matchers that call them, and row masks: against the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numparq.expr import evaluate, key_arrays
from numparq.expr.key_arrays import StringPoints
from numparq.expr.key_ranges import TOP, RangeTuple, union
from numparq.expr.like import ANY_CHARACTER, LikePattern
from numparq.expr.matchers import byte_strings, compile, vectors
from numparq.expr.matchers.byte_strings import BytesMatcher, ByteStrings, LikeMatcher
from numparq.expr.matchers.compile import IntMatcher
from numparq.expr.matchers.vectors import AND, OR, STORE, ColumnVector, RowMask
from numparq.plan import row_ranges
from numparq.plan.row_ranges import RowRanges
from support.kernels.engines import ENGINES
from support.kernels.guarded_buffers import GuardedBuffer
from support.oracles import masks as oracle

SAME_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
HOWS = st.sampled_from([STORE, AND, OR])


@pytest.fixture(autouse=True, params=ENGINES, ids=repr)
def engine(request):
    """Run each test with one engine, whatever Hypothesis draws."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (byte_strings, evaluate, key_arrays, vectors, compile, row_ranges):
            patch.setattr(module, "predicate_kernels", request.param)
        yield request.param


class Rows:
    """A guarded mask, and how a predicate's result is combined with it."""

    def __init__(self, data, count, seed=0):
        self.rng = np.random.default_rng(seed)
        self.how = data.draw(HOWS, "how")
        bits = data.draw(st.lists(st.booleans(), min_size=count, max_size=count), "before")
        self.before = [int(bit) for bit in bits]
        valid = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=count, max_size=count), "validity")
        self.valid = [1] * count if valid is None else valid
        self.guarded = GuardedBuffer(self.rng, count)
        if self.how != STORE:  # STORE overwrites any previous content
            self.guarded.array[:] = self.before
        self.into = RowMask(self.guarded.array, self.how, None if valid is None else np.array(valid, np.uint8))

    def check(self, found):
        self.guarded.check()
        rows = zip(self.before, found, self.valid, strict=True)
        expected = [oracle.combine_mask(before, answer, valid != 0, self.how) for before, answer, valid in rows]
        assert self.guarded.array.tolist() == expected


# --- numbers ----------------------------------------------------------------------------------------------------------


def in_pages(values, rng):
    """Return the vector of values in several runs, at any alignment, amid other bytes."""
    edges = np.sort(rng.integers(0, len(values) + 1, rng.integers(0, 4))).tolist()
    data, runs = b"", []
    for start, stop in itertools.pairwise([0, *edges, len(values)]):
        data += rng.bytes(rng.integers(0, 20))
        runs += [len(data), stop - start]
        data += values[start:stop].tobytes()
    return ColumnVector(np.frombuffer(data + rng.bytes(3), np.uint8), runs=np.array(runs), stored=values.dtype)


def vectors_of(values):
    """Yield vectors of values: in one array, backwards in memory, and as they are in pages."""
    yield ColumnVector(values)
    yield ColumnVector(values[::-1].copy()[::-1])
    yield in_pages(values, np.random.default_rng(len(values)))


@st.composite
def key_range_sets(draw, low, high):
    """Draw key ranges of every kind: few, many, narrow, wide, near one another and apart."""
    near, wide = st.integers(-40, 40), st.integers(low, high)
    edges = st.sampled_from([low, low + 1, high, high - 1])
    first = draw(st.sampled_from([near, wide, st.integers(-(1 << 17), 1 << 17), st.one_of(near, wide, edges)]))
    sizes = draw(st.sampled_from([st.just(1), st.integers(1, 3), st.integers(1, high - low)]))
    most = draw(st.sampled_from([1, 4, 40]))
    starts = draw(st.lists(first.map(lambda start: max(low, min(start, high))), max_size=most))
    return union([(start, min(start + draw(sizes), high + 1)) for start in starts])


@pytest.mark.parametrize(("bits", "dtype"), [(8, "i4"), (16, "i4"), (32, "i4"), (32, "i8"), (64, "i8")])
@SAME_FIXTURES
@given(data=st.data())
def test_match_integers(bits, dtype, data):
    signed = data.draw(st.booleans(), "signed")
    low = -(1 << bits - 1) if signed else 0
    high = low + (1 << bits) - 1
    ranges = data.draw(key_range_sets(low, high), "ranges")
    if data.draw(st.booleans(), "negated"):
        ranges = ranges.complement(low, high + 1)
    some = [low, high, 0, *(edge + more for pair in ranges for edge in pair for more in (-1, 0))]
    numbers = st.one_of(st.sampled_from(some), st.integers(low, high))
    keys = [min(max(key, low), high) for key in data.draw(st.lists(numbers, max_size=12), "keys")]
    noise = data.draw(st.integers(-1, 1), "bits above")
    size = 8 * np.dtype(dtype).itemsize
    stored = [((key % (1 << bits)) + (noise << bits)) % (1 << size) for key in keys]
    for vector in vectors_of(np.array(stored, f"u{size // 8}").view(dtype)):
        rows = Rows(data, len(keys))
        IntMatcher(ranges, bits).match(vector, rows.into)
        rows.check([oracle.in_ranges(key, ranges) for key in keys])


@pytest.mark.parametrize("width", [2, 4, 8])
@SAME_FIXTURES
@given(data=st.data())
def test_match_floats(width, data):
    """Sort keys of floats: their rank in the total order, with NaNs at both ends."""
    bits = 8 * width
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    ranges = data.draw(key_range_sets(low, high), "ranges")
    keys = data.draw(st.lists(st.integers(low, high) | st.integers(-3, 3), max_size=9), "keys")
    stored = np.array([key if key >= 0 else key ^ high for key in keys], f"i{width}").astype(f"i{max(width, 4)}")
    for vector in vectors_of(stored):
        rows = Rows(data, len(keys))
        IntMatcher(ranges, bits, fold=True).match(vector, rows.into)
        rows.check([oracle.in_ranges(key, ranges) for key in keys])


@pytest.mark.parametrize("gap", [2, 10**12])
@pytest.mark.parametrize("size", [1, 10])
def test_match_thousands_of_key_ranges(engine, size, gap):
    """Tables, single keys and ranges, by thousands."""
    rng = np.random.default_rng(size)
    starts = np.unique(rng.integers(-1000, 1000, engine.size(1500, 30))) * gap * size
    keys = np.concatenate([starts, starts - 1, starts + size - 1, starts + size, rng.integers(-(2**63), 2**63 - 1, 50)])
    before = np.searchsorted(starts, keys, "right") - 1
    ranges = RangeTuple((start, start + size) for start in starts.tolist())
    matchers = IntMatcher(ranges, 64), IntMatcher(ranges.complement(-(2**63), 2**63), 64)
    assert matchers[0]._name == matchers[1]._name
    inside = (before >= 0) & (keys < starts[before] + size)
    for vector in vectors_of(keys):
        for matcher, expected in zip(matchers, (inside, ~inside), strict=True):
            out = GuardedBuffer(rng, len(keys))
            matcher.match(vector, RowMask(out.array))
            out.check()
            assert out.array.tolist() == expected.tolist()


WAYS = {
    "range": ((5, 9),),
    "four_ranges": ((0, 1), (10, 30), (100, 105), (1000, 9000)),
    "table": tuple((10 * n, 11 * n + 1) for n in range(9)),
    "keys": tuple((10**6 * n, 10**6 * n + 1 + n % 3) for n in range(9)),
    "ranges": tuple((10**6 * n, 10**6 * n + 1 + n * 1000) for n in range(9)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_edges_nulls_and_masks_of_every_int_kernel(way, dtype):
    ranges = RangeTuple(WAYS[way])
    numbers = IntMatcher(ranges, 32)
    assert numbers._name == f"match_{way}"
    keys = [key for low, high in ranges for key in (low - 1, low, high - 1, high)] * 4
    inside = [oracle.in_ranges(key, ranges) for key in keys]
    before = [place * 4 // len(keys) % 2 for place in range(len(keys))]
    for valid in (None, [2 * (place * 2 // len(keys)) for place in range(len(keys))]):
        for how in (STORE, AND, OR):
            out = np.array(before, np.uint8)
            numbers.match(
                ColumnVector(np.array(keys, dtype)),
                RowMask(out, how, None if valid is None else np.array(valid, np.uint8)),
            )
            rows = zip(before, inside, valid or [1] * len(keys), strict=True)
            assert out.tolist() == [oracle.combine_mask(one, found, there != 0, how) for one, found, there in rows]


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_more_values_than_rows(engine, dtype):
    numbers = np.arange(20).astype(dtype)
    vector = ColumnVector(
        numbers.view(np.uint8), runs=np.array([0, 12, 12 * numbers.itemsize, 8]), stored=numbers.dtype
    )
    for count in (0, 7, 12, 15):
        out = GuardedBuffer(np.random.default_rng(0), count)
        IntMatcher(RangeTuple([(5, 14)]), 32).match(vector, RowMask(out.array))
        out.check()
        assert out.array.tolist() == [5 <= number < 14 for number in range(count)]


def test_key_table_probe_wraps_to_the_first_slot(engine):
    bits = 4
    spread = 0x9E3779B97F4A7C15
    last = [key for key in range(2000) if (key * spread % (1 << 64)) >> (64 - bits) == (1 << bits) - 1]
    keys = np.array([1, *last[:3]], np.uint64)
    table = GuardedBuffer(np.random.default_rng(0), 1 << bits, "u8")
    table.array[:] = keys[0]
    engine.fill_key_table(keys, len(keys), table.array, 64 - bits)
    table.check()
    probes = np.array([1, 2, *last[:5]])
    out = GuardedBuffer(np.random.default_rng(0), len(probes))
    runs = np.array([0, len(probes)])
    engine.match_keys(
        probes.view(np.uint8), runs, 1, 8, 0, -1, table.array, 64 - bits, 1, *RowMask(out.array).kernel_arguments
    )
    out.check()
    assert out.array.tolist() == [1, 0, 1, 1, 1, 0, 0]


# --- bytes ------------------------------------------------------------------------------------------------------------

LETTERS = st.sampled_from(
    [b"a", b"b", b"\0", b"\xff", b"\xc3\xa9", b"\x80", b"\xe0\xa4\x85", b"\xf0\x90\x8d\x88", b"%", b"abcdefgh"]
)
WORDS = st.one_of(st.lists(LETTERS, max_size=6).map(b"".join), st.binary(max_size=20))


def make_strings(data, values, width=0):
    """Return strings that end where their buffer ends, some after unrelated bytes."""
    if width:
        return ByteStrings.from_fixed_width(np.frombuffer(b"".join(values), np.uint8), width)
    front = data.draw(st.sampled_from([b"", b"in front"]))
    if data.draw(st.booleans(), "behind their lengths"):
        plain = front + b"".join(len(value).to_bytes(4, "little") + value for value in values)
        starts = np.cumsum([len(front) + 4, *(len(value) + 4 for value in values)])[: len(values)]
        return ByteStrings.from_starts(np.frombuffer(plain, np.uint8), starts.astype(np.int64))
    offsets = np.cumsum([len(front), *map(len, values)])
    dtype = data.draw(st.sampled_from(["i4", "i8"]))
    return ByteStrings.from_offsets(np.frombuffer(front + b"".join(values), np.uint8), offsets.astype(dtype))


@SAME_FIXTURES
@given(data=st.data())
def test_match_byte_ranges(data):
    front = data.draw(st.sampled_from([b"", b"ab", b"abcdefghij", b"\0\0"]), "front")
    edges = [front + word for word in data.draw(st.lists(WORDS, max_size=14, unique=True), "edges")]
    singles = [(edge, edge + b"\0") for edge in edges]
    pairs = [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=False) if low < high]
    wide = [*pairs, *singles[:3], *((edge, TOP) for edge in edges[:1])]
    ranges = union(data.draw(st.sampled_from([singles, pairs, wide]), "ranges"))
    some = st.sampled_from([edge for pair in ranges for edge in pair if edge is not TOP] or [b""])
    changed = st.tuples(some, st.integers(0, 12)).map(lambda edge: edge[0][: edge[1]] + b"f" + edge[0][edge[1] + 1 :])
    near = st.one_of(some, some.map(lambda edge: edge[:-1]), st.tuples(some, WORDS).map(b"".join), WORDS, changed)
    values = data.draw(st.lists(near, max_size=9), "values")
    rows = Rows(data, len(values))
    BytesMatcher(ranges).match(make_strings(data, values), rows.into)
    rows.check([oracle.in_ranges(value, ranges) for value in values])


@SAME_FIXTURES
@given(data=st.data())
def test_match_many_strings(data):
    """Strings in any order, some repeated, and all others; values that share a part with them."""
    front = data.draw(st.sampled_from([b"", b"abcdefghij", b"\0\0"]), "front")
    points = [front + word for word in data.draw(st.lists(WORDS, min_size=2, max_size=14), "strings")]
    ranges = StringPoints.from_strings(points)
    expected = union([(point, point + b"\0") for point in points])
    if data.draw(st.booleans(), "negated"):
        expected, ranges = expected.complement(b"", TOP), ranges.complement(b"", TOP)
    some = st.sampled_from(points)
    changed = st.tuples(some, st.integers(0, 12)).map(lambda edge: edge[0][: edge[1]] + b"f" + edge[0][edge[1] + 1 :])
    near = st.one_of(some, some.map(lambda edge: edge[:-1]), st.tuples(some, WORDS).map(b"".join), WORDS, changed)
    values = points + data.draw(st.lists(near, max_size=9), "values")
    rows = Rows(data, len(values))
    BytesMatcher(ranges).match(make_strings(data, values), rows.into)
    rows.check([oracle.in_ranges(value, expected) for value in values])


SPREAD = 0x9E3779B97F4A7C15
WORD = 2**64 - 1


def with_equal_hash(string, first):
    """Return a string of the same length (at least 16) with other first eight bytes, whose hash is the same."""
    states = []
    for word in (string[:8], first):
        mixed = ((len(string) * SPREAD & WORD) ^ int.from_bytes(word, "little")) * SPREAD & WORD
        states.append(mixed ^ mixed >> 32)
    second = int.from_bytes(string[8:16], "little") ^ states[0] ^ states[1]
    return first + second.to_bytes(8, "little") + string[16:]


@pytest.mark.parametrize("length", [16, 21, 24])
def test_match_strings_with_equal_hashes(engine, length):
    """Only their bytes tell such strings apart: in the table, and in the column."""
    strings = [bytes(range(65, 65 + length))]
    strings += [with_equal_hash(strings[0], b"%08d" % number) for number in range(12)]
    for count in (2, 5):
        points = StringPoints.from_strings([*strings[:count], *strings[:2]])
        out = GuardedBuffer(np.random.default_rng(count), len(strings))
        offsets = np.arange(len(strings) + 1) * length
        values = ByteStrings.from_offsets(np.frombuffer(b"".join(strings), np.uint8), offsets)
        BytesMatcher(points).match(values, RowMask(out.array))
        out.check()
        assert out.array.tolist() == [1] * count + [0] * (len(strings) - count)


def test_equal_hashes_are_those_of_the_kernel(engine):
    """Two such strings fill one slot and the next one: else the test above would test nothing."""
    string = b"0123456789abcdefg"
    points = StringPoints.from_strings([string, with_equal_hash(string, b"other co")])
    table = np.zeros(1 << 20, np.uint64)
    marks = np.zeros(1 << 20, np.uint8)
    engine.fill_string_table(points.data, len(points.data), points.offsets, len(points), table, 64 - 20, marks)
    first, second = table.nonzero()[0].tolist()
    assert second == first + 1
    assert table[first] >> np.uint64(32) == table[second] >> np.uint64(32)


@SAME_FIXTURES
@given(data=st.data())
def test_words_of_strings(data):
    values = data.draw(st.lists(WORDS, max_size=9), "strings")
    skipped = data.draw(st.integers(0, 12), "skipped")
    expected = [int.from_bytes(value[skipped : skipped + 8].ljust(8, b"\0"), "big") for value in values]
    assert StringPoints.from_strings(values).words(skipped).tolist() == expected


@SAME_FIXTURES
@given(data=st.data())
def test_match_one_string(data):
    """One string, or all others: of strings of the same length, and of any."""
    string = data.draw(WORDS | st.binary(min_size=7, max_size=30), "string")
    ranges = ((string, string + b"\0"),)
    if data.draw(st.booleans(), "negated"):
        ranges = tuple((low, high) for low, high in ((b"", string), (string + b"\0", TOP)) if low != high)
    near = st.sampled_from([string, string[:-1], string + b"\0", string[1:]])
    changed = st.integers(0, max(len(string) - 1, 0)).map(lambda at: string[:at] + b"?" + string[at + 1 :])
    values = data.draw(st.lists(near | changed | WORDS, max_size=9), "values")
    rows = Rows(data, len(values))
    BytesMatcher(ranges).match(make_strings(data, values), rows.into)
    rows.check([oracle.in_ranges(value, ranges) for value in values])


@SAME_FIXTURES
@given(data=st.data())
def test_compare_strings_row_by_row(engine, data):
    pairs = data.draw(st.lists(st.tuples(WORDS, WORDS) | WORDS.map(lambda word: (word, word)), max_size=9), "pairs")
    columns = []
    for values in ([first for first, _ in pairs], [second for _, second in pairs]):
        order = data.draw(st.permutations(range(len(values))), "order")
        stops = np.cumsum([0, *(len(values[place]) for place in order)])
        starts, ends = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        starts[order], ends[order] = stops[:-1], stops[1:]
        stored = np.frombuffer(b"".join(values[place] for place in order), np.uint8)
        columns += [stored, len(stored), starts, ends]
    out = GuardedBuffer(np.random.default_rng(0), len(pairs))
    engine.compare_string_rows(*columns, len(pairs), out.array)
    out.check()
    assert out.array.tolist() == [int(first > second) - int(first < second) + 1 for first, second in pairs]


@SAME_FIXTURES
@given(data=st.data())
def test_match_big_endian_integers(data):
    width = data.draw(st.sampled_from([1, 5, 8, 9, 16]), "width")
    half = 1 << 8 * width - 1
    numbers = st.integers(-half, half - 1) | st.integers(-3, 3)
    ranges = union(data.draw(st.lists(st.tuples(numbers, numbers), max_size=5), "ranges"))
    keys = data.draw(st.lists(numbers, max_size=9), "keys")
    byte_ranges = tuple(
        ((low + half).to_bytes(width, "big"), (high + half).to_bytes(width, "big")) for low, high in ranges
    )
    stored = [key.to_bytes(width, "big", signed=True) for key in keys]
    rows = Rows(data, len(keys))
    BytesMatcher(byte_ranges, signed=True).match(make_strings(data, stored, width), rows.into)
    rows.check([oracle.in_ranges(key, ranges) for key in keys])


def test_many_strings_with_a_common_prefix(engine):
    rng = np.random.default_rng(0)
    front = b"https://example.org/"
    for tail in (8, 20):
        words = [front + b"x" * (tail - 8) + b"%07d" % n for n in range(0, engine.size(3000, 40), 3)]
        values = [front + b"x" * (tail - 8) + b"%07d" % n for n in range(engine.size(3000, 40))]
        values += [b"", front, b"zzz", *(word + b"\0" for word in words[:5])]
        strings = ByteStrings.from_offsets(np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)]))
        out = GuardedBuffer(rng, len(values))
        BytesMatcher(tuple((word, word + b"\0") for word in words)).match(strings, RowMask(out.array))
        out.check()
        known = set(words)
        assert out.array.tolist() == [value in known for value in values]


@SAME_FIXTURES
@given(data=st.data())
def test_match_like_patterns(data):
    token = st.one_of(st.just(ANY_CHARACTER), LETTERS, WORDS.filter(bool))
    piece = st.lists(token, max_size=3).map(tuple)
    inner = st.lists(piece.filter(bool), max_size=3).map(tuple)
    pieces = data.draw(st.one_of(st.tuples(piece), st.tuples(piece, inner, piece).map(lambda t: (t[0], *t[1], t[2]))))
    pieces = tuple(tuple(merge_literals(piece)) for piece in pieces)
    is_text, negated = data.draw(st.booleans(), "is text"), data.draw(st.booleans(), "negated")
    filled = st.tuples(*(st.just(token) if token else LETTERS for piece in pieces for token in piece)).map(b"".join)
    between = [part for piece in pieces for part in (st.just(b"".join(token or b"a" for token in piece)), WORDS)][:-1]
    fitting = st.tuples(*between).map(b"".join)
    values = data.draw(st.lists(st.one_of(filled, fitting, fitting, WORDS), max_size=7), "values")
    rows = Rows(data, len(values))
    LikeMatcher(LikePattern(pieces, is_text), negated).match(make_strings(data, values), rows.into)
    rows.check([oracle.like_matches(value, pieces, is_text) != negated for value in values])


@pytest.mark.parametrize("size", range(20))
def test_like_search_ends_at_the_buffer_end(size):
    """Nothing is read after the last string, and a match at its end is found."""
    for letters in (b"y", b"yz", b"xyzxyzxyz"):
        for value in (b"x" * size, (b"x" * size + letters)[-size:] if size else b""):
            strings = ByteStrings.from_offsets(np.frombuffer(value, np.uint8), np.array([0, size]))
            out = np.zeros(1, np.uint8)
            LikeMatcher(LikePattern(((), (letters,), ()), True), False).match(strings, RowMask(out))
            assert bool(out[0]) == (letters in value)


@pytest.mark.parametrize("is_text", [True, False])
def test_like_pieces_do_not_overlap(is_text):
    """Each byte of a string matches one piece only; adjacent strings do not affect each other."""
    values = [b"", b"a", b"b", b"ab", b"ba", b"aba", b"abba", b"abab", b"aab", b"abb", b"ababab", b"abaab"]
    strings = ByteStrings.from_offsets(np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)]))
    words = [(), (b"a",), (b"ab",), (b"ba",), (b"b", ANY_CHARACTER), (ANY_CHARACTER, b"b"), (ANY_CHARACTER,), (b"aba",)]
    for first in words:
        for inner in ((), *((word,) for word in words[1:])):
            for last in words:
                pieces = (first, *inner, last)
                out = np.zeros(len(values), np.uint8)
                LikeMatcher(LikePattern(pieces, is_text), False).match(strings, RowMask(out))
                assert out.tolist() == [oracle.like_matches(value, pieces, is_text) for value in values]


def test_like_any_character_is_a_code_point():
    leads = [0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xDF, 0xE0, 0xEF, 0xF0, 0xF7, 0xF8, 0xFF]
    tails = [*(b"\x80" * count for count in range(5)), b"\xbfa", b"\xc0"]
    values = [bytes([lead]) + tail for lead in leads for tail in tails]
    strings = ByteStrings.from_offsets(np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)]))
    for pieces in (
        ((ANY_CHARACTER,),),
        ((ANY_CHARACTER, ANY_CHARACTER),),
        ((), (ANY_CHARACTER, b"a"), ()),
        ((), (ANY_CHARACTER,)),
    ):
        for is_text in (True, False):
            out = np.zeros(len(values), np.uint8)
            LikeMatcher(LikePattern(pieces, is_text), False).match(strings, RowMask(out))
            assert out.tolist() == [oracle.like_matches(value, pieces, is_text) for value in values]


def merge_literals(piece):
    """Merge adjacent literal tokens, as in parsed patterns."""
    found = []
    for token in piece:
        if found and token is not ANY_CHARACTER and found[-1] is not ANY_CHARACTER:
            found[-1] += token
        else:
            found.append(token)
    return found


# --- masks ------------------------------------------------------------------------------------------------------------


@SAME_FIXTURES
@given(data=st.data())
def test_combine_masks(data):
    mask = data.draw(st.lists(st.integers(0, 3), max_size=40), "mask")
    negated = data.draw(st.booleans(), "negated")
    rows = Rows(data, len(mask))
    rows.into.combine(np.array(mask, np.uint8), negated)
    rows.check([(value != 0) != negated for value in mask])
    rows = Rows(data, len(mask))
    rows.into.combine_constant(negated)
    rows.check([negated] * len(mask))
    rows = Rows(data, len(mask))
    rows.into.combine(None, negated)
    rows.check([not negated] * len(mask))


@SAME_FIXTURES
@given(data=st.data())
def test_match_codes(engine, data):
    entries = data.draw(st.lists(st.booleans(), max_size=5), "entries")
    codes = data.draw(st.lists(st.integers(-2, len(entries) + 1), max_size=20), "codes")
    rows = Rows(data, len(codes))
    engine.match_codes(
        np.array(codes, np.int32), np.array(entries, np.uint8), len(entries), *rows.into.kernel_arguments
    )
    rows.check([0 <= code < len(entries) and entries[code] for code in codes])


@SAME_FIXTURES
@given(data=st.data())
def test_match_any_element(engine, data):
    sizes = data.draw(st.lists(st.integers(0, 3), max_size=9), "sizes")
    found = data.draw(st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes)), "found")
    item, negated = data.draw(st.sampled_from([4, 8])), data.draw(st.booleans(), "negated")
    offsets = np.cumsum([0, *sizes])
    rows = Rows(data, len(sizes))
    raw = offsets.astype(f"i{item}").view(np.uint8)
    engine.match_any_element(np.array(found, np.uint8), raw, item, int(negated), *rows.into.kernel_arguments)
    pairs = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    rows.check([any(found[start:stop]) != negated for start, stop in pairs])


@SAME_FIXTURES
@given(data=st.data())
def test_spread_mask(engine, data):
    valid = data.draw(st.lists(st.sampled_from([0, 1, 2]), max_size=40), "valid")
    found = data.draw(st.lists(st.integers(0, 1), min_size=len(valid), max_size=len(valid)), "found")
    null_answer = data.draw(st.integers(0, 1), "null answer")
    dense = [answer for answer, there in zip(found, valid, strict=True) if there]
    out = GuardedBuffer(np.random.default_rng(0), len(valid))
    mask = np.array([*dense, 1], np.uint8)
    assert engine.spread_mask(mask, np.array(valid, np.uint8), null_answer, len(valid), out.array) == len(dense)
    out.check()
    assert out.array.tolist() == [answer if there else null_answer for answer, there in zip(found, valid, strict=True)]


MASKS = st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=12).map(
    lambda runs: [value for value, size in runs for _ in range(size)]
)


@SAME_FIXTURES
@given(mask=MASKS | st.lists(st.booleans(), max_size=40))
def test_mask_to_ranges(engine, mask):
    out = GuardedBuffer(np.random.default_rng(len(mask)), len(mask) + 2, "i8")
    count = engine.mask_to_ranges(np.array(mask, np.uint8), len(mask), out.array)
    out.check()
    expected = oracle.mask_to_ranges(mask)
    assert out.array[: 2 * count].reshape(-1, 2).tolist() == [list(pair) for pair in expected]
    assert RowRanges.from_mask(mask) == RowRanges(expected)
