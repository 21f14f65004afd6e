"""The tables of the benchmark files; `size` is the number of rows, or of columns for `wide`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asv_benchmarks import columns as make

WIDE_ROWS = 2_000
DRAWS = 100_000


def numbers(rng: np.random.Generator, size: int) -> pa.Table:
    """Return four numeric columns: one hard to compress, two partly, one easy."""
    return pa.table(
        {
            "cents": make.cents(rng, size),
            "normal": make.normal(rng, size),
            "count": make.counts(rng, size),
            "sensor": make.sensor(rng, size),
        }
    )


def repeated_numbers(rng: np.random.Generator, size: int) -> pa.Table:
    """Return the four types with few distinct values: 10,000 random, 500 skewed, sorted runs of 1,000, and 16."""
    return pa.table(
        {
            "customer": rng.integers(0, 10_000, size) * 7_919 + 1_000_000_007,
            "price": make.skewed(rng, size, 500) * 0.25 + 0.99,
            "day": make.runs(rng, size, 1_000).astype(np.int32),
            "rate": (rng.integers(0, 16, size) / 100).astype(np.float32),
        }
    )


def _with_nulls(rng: np.random.Generator, size: int, share: float) -> pa.Table:
    """Return int64 with scattered nulls, and float64 with nulls in bursts."""
    return pa.table(
        {
            "cents": pa.array(make.cents(rng, size), mask=make.scattered_nulls(rng, size, share)),
            "price": pa.array(make.prices(rng, size), mask=make.bursts_of_nulls(rng, size, share)),
        }
    )


def nulls_1(rng: np.random.Generator, size: int) -> pa.Table:
    """Return values with one null in a hundred."""
    return _with_nulls(rng, size, 0.01)


def nulls_10(rng: np.random.Generator, size: int) -> pa.Table:
    """Return values with one null in ten."""
    return _with_nulls(rng, size, 0.10)


def nulls_50(rng: np.random.Generator, size: int) -> pa.Table:
    """Return values with every second null."""
    return _with_nulls(rng, size, 0.50)


def booleans(rng: np.random.Generator, size: int) -> pa.Table:
    """Return a coin and a rare flag."""
    return pa.table({"coin": rng.random(size) < 0.5, "rare": rng.random(size) < 0.01})


def timestamps(rng: np.random.Generator, size: int) -> pa.Table:
    """Return naive microseconds, UTC microseconds, and nanoseconds."""
    created = make.moments(rng, size)
    seen = created + rng.integers(0, 30 * make.DAY_US, size)
    return pa.table(
        {
            "created": pa.array(created, pa.timestamp("us")),
            "seen": pa.array(seen, pa.timestamp("us", tz="UTC")),
            "tick": pa.array(created * 1_000 + rng.integers(0, 1_000, size), pa.timestamp("ns")),
        }
    )


def dates(rng: np.random.Generator, size: int) -> pa.Table:
    """Return dates over seven years, which pandas reads as datetime.date objects."""
    return pa.table({"day": pa.array(make.days(rng, size), pa.date32())})


def few_strings(rng: np.random.Generator, size: int) -> pa.Table:
    """Return 120 place names and 4 states."""
    names = pa.array(make.CITIES).take(pa.array(make.skewed(rng, size, len(make.CITIES))))
    return pa.table({"city": names, "state": make.choice(rng, size, ["open", "closed", "in transit", "returned"])})


def distinct_strings(rng: np.random.Generator, size: int) -> pa.Table:
    """Return one column of distinct strings."""
    return pa.table({"account": make.account_names(rng, size)})


def lineitem(rng: np.random.Generator, size: int) -> pa.Table:
    """Return the 16 columns of an order line: keys, amounts, dates, short strings, a comment."""
    quantity = rng.integers(1, 51, size).astype(np.float64)
    shipped = make.days(rng, size)
    instructions = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
    return pa.table(
        {
            "orderkey": make.runs(rng, size, 4) * 3 + 1,
            "partkey": rng.integers(1, 200_001, size),
            "suppkey": rng.integers(1, 10_001, size),
            "linenumber": rng.integers(1, 8, size).astype(np.int32),
            "quantity": quantity,
            "extendedprice": np.round(quantity * (900 + rng.integers(0, 110_000, size) / 100), 2),
            "discount": rng.integers(0, 11, size) / 100,
            "tax": rng.integers(0, 9, size) / 100,
            "returnflag": make.choice(rng, size, ["A", "N", "R"]),
            "linestatus": make.choice(rng, size, ["F", "O"]),
            "shipdate": pa.array(shipped, pa.date32()),
            "commitdate": pa.array(shipped + rng.integers(-60, 60, size, dtype=np.int32), pa.date32()),
            "receiptdate": pa.array(shipped + rng.integers(1, 31, size, dtype=np.int32), pa.date32()),
            "shipinstruct": make.choice(rng, size, instructions),
            "shipmode": make.choice(rng, size, ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]),
            "comment": make.comments(rng, size),
        }
    )


def delta_ints(rng: np.random.Generator, size: int) -> pa.Table:
    """Return growing keys, clock ticks with gaps, a 4-byte random walk, and cents with one null in ten."""
    return pa.table(
        {
            "key": make.growing_keys(rng, size),
            "tick": 1_700_000_000_000_000 + np.cumsum(rng.integers(0, 3_000_000, size)),
            "level": np.cumsum(rng.integers(-20, 21, size)).astype(np.int32),
            "cents": pa.array(make.cents(rng, size), mask=make.scattered_nulls(rng, size, 0.1)),
        }
    )


def delta_strings(rng: np.random.Generator, size: int) -> pa.Table:
    """Return sorted addresses with long common prefixes, and comments without."""
    pages = np.sort(rng.integers(0, 10 * size, size))
    addresses = [f"https://example.org/shop/{page // 1000:06}/item-{page % 1000:03}" for page in pages.tolist()]
    return pa.table({"address": addresses, "comment": make.comments(rng, size)})


def split_numbers(rng: np.random.Generator, size: int) -> pa.Table:
    """Return measurements with similar high bytes: two floats and two integers."""
    return pa.table(
        {
            "normal": make.normal(rng, size),
            "sensor": make.sensor(rng, size),
            "tick": np.cumsum(rng.integers(0, 3_000_000, size)),
            "level": np.cumsum(rng.integers(-20, 21, size)).astype(np.int32),
        }
    )


def int_lists(rng: np.random.Generator, size: int) -> pa.Table:
    """Return lists of up to nine integers, one in fifty null, and of up to three 4-byte tags."""

    def lists(values: pa.Array, most: int) -> pa.Array:
        lengths = rng.integers(0, most + 1, size)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        missing = pa.array(rng.random(size) < 0.02)
        return pa.ListArray.from_arrays(pa.array(offsets), values.slice(0, int(offsets[-1])), mask=missing)

    clicks = lists(pa.array(make.cents(rng, 9 * size)), 9)
    return pa.table({"clicks": clicks, "tags": lists(pa.array(rng.integers(0, 500, 3 * size).astype(np.int32)), 3)})


def structs(rng: np.random.Generator, size: int) -> pa.Table:
    """Return addresses of a number, a place and a position within it, each sometimes null."""
    position = pa.StructArray.from_arrays(
        [pa.array(make.normal(rng, size)), pa.array(make.normal(rng, size))],
        ["lat", "lon"],
        mask=pa.array(rng.random(size) < 0.05),
    )
    city = pa.array(make.CITIES).take(pa.array(make.skewed(rng, size, len(make.CITIES))))
    number = pa.array(rng.integers(1, 400, size), mask=rng.random(size) < 0.1)
    whole = pa.StructArray.from_arrays(
        [number, city, position], ["number", "city", "position"], mask=pa.array(rng.random(size) < 0.02)
    )
    return pa.table({"address": whole})


def wide(rng: np.random.Generator, size: int) -> pa.Table:
    """Return `size` float32 columns of 2,000 rows, like model features: hard to compress."""
    values = rng.standard_normal((size, WIDE_ROWS), dtype=np.float32)
    return pa.table({f"c{index:04}": values[index] for index in range(size)})


def wide_mixed(rng: np.random.Generator, size: int) -> pa.Table:
    """Return `size` columns of 100 rows: integers, floats without and with nulls, names, times and booleans in turn."""
    rows = 100
    makers = (
        lambda: rng.integers(0, 1000, rows),
        lambda: rng.random(rows),
        lambda: pa.array(rng.random(rows), mask=rng.random(rows) < 0.1),
        lambda: make.choice(rng, rows, make.CITIES),
        lambda: pa.array(rng.integers(0, 10**15, rows), pa.timestamp("us")),
        lambda: rng.random(rows) < 0.5,
    )
    return pa.table({f"c{index:04}": makers[index % len(makers)]() for index in range(size)})


def wide_long(rng: np.random.Generator, size: int) -> pa.Table:
    """Return `size` columns of 50,000 rows: floats, integers and names in turn."""
    rows = 50_000
    makers = (
        lambda: rng.random(rows),
        lambda: rng.integers(0, 10**9, rows),
        lambda: make.choice(rng, rows, make.CITIES),
    )
    return pa.table({f"c{index:04}": makers[index % len(makers)]() for index in range(size)})


def growing_keys(rng: np.random.Generator, size: int) -> pa.Table:
    """Return one int64 column of growing keys."""
    return pa.table({"key": make.growing_keys(rng, size)})


def small(rng: np.random.Generator, size: int) -> pa.Table:
    """Return a small table of numbers and names."""
    return pa.table({"id": np.arange(size), "name": make.choice(rng, size, make.CITIES)})


def _names(word: str, numbers: np.ndarray) -> pa.Array:
    """Return a word and eight digits for each number."""
    digits = pc.ascii_lpad(pc.cast(pa.array(numbers), pa.string()), 8, "0")
    return pc.binary_join_element_wise(pa.scalar(word), digits, "")


def _item_names(rng: np.random.Generator, size: int) -> pa.Array:
    """Return strings of twelve bytes: ``item`` and eight random digits."""
    return _names("item", rng.integers(0, 10**8, size))


def points(rng: np.random.Generator, size: int) -> pa.Table:
    """Return a sorted unique key, a measurement, and a name."""
    key = np.cumsum(rng.integers(1, 5, size)) + 1_000_000
    return pa.table({"key": key, "value": make.normal(rng, size), "name": _item_names(rng, size)})


def shuffled(rng: np.random.Generator, size: int) -> pa.Table:
    """Return every even number once in random order, and a measurement."""
    return pa.table({"key": rng.permutation(size) * 2, "value": make.normal(rng, size)})


def mixed(rng: np.random.Generator, size: int) -> pa.Table:
    """Return a serial number, an independent draw of `DRAWS` numbers, a price, a name, and one of 120 places."""
    return pa.table(
        {
            "id": np.arange(size),
            "draw": rng.integers(0, DRAWS, size),
            "price": make.prices(rng, size),
            "name": _item_names(rng, size),
            "city": make.choice(rng, size, make.CITIES),
        }
    )


def keyed(rng: np.random.Generator, size: int) -> pa.Table:
    """Return keys of four types in order, a number in no order, and a distinct string in no order."""
    order = np.arange(size, dtype=np.int64)
    moments = order * 1_000_003 + 1_700_000_000_000_000
    return pa.table(
        {
            "id": order * 3 + 11,
            "name": _names("row-", order),
            "at": pa.array(moments, pa.timestamp("us")),
            "amount": pa.array(order).cast(pa.decimal128(19, 0)).cast(pa.decimal128(19, 2)),
            "draw": rng.permutation(order) * 7,
            "code": _names("code-", rng.permutation(order)),
        }
    )


def distinct_keys(rng: np.random.Generator, size: int) -> pa.Table:
    """Return distinct keys in no order: integers without gaps, and with large ones, strings, decimals, timestamps."""
    order = np.arange(size, dtype=np.int64)
    far = rng.permutation(order) * 1_000_003 + rng.integers(0, 1_000_003, size)
    return pa.table(
        {
            "dense": rng.permutation(order),
            "sparse": far,
            "name": _names("customer-", rng.permutation(order)),
            "amount": pa.array(rng.permutation(order) * 37).cast(pa.decimal128(19, 0)).cast(pa.decimal128(19, 2)),
            "at": pa.array(1_700_000_000_000_000 + rng.permutation(order) * 1_003, pa.timestamp("us")),
        }
    )


def eight_columns(rng: np.random.Generator, size: int) -> pa.Table:
    """Return eight columns of all common kinds, as small files have them."""
    order = np.arange(size, dtype=np.int64)
    return pa.table(
        {
            "id": order,
            "count": rng.integers(0, 1_000, size).astype(np.int32),
            "price": rng.normal(size=size),
            "rate": rng.random(size).astype(np.float32),
            "is_new": rng.random(size) < 0.5,
            "at": pa.array(order * 1_000_003, pa.timestamp("us")),
            "kind": _names("kind-", rng.integers(0, 9, size)),
            "name": _names("name-", order),
        }
    )
