"""Floats beside DECIMAL: a float literal means the decimal that it prints as, in every filter and at every level."""

from __future__ import annotations

import io
import math
import operator
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq import RuntimeFilter, col

OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TYPES = {
    "int32": (pa.decimal128(8, 2), {"store_decimal_as_integer": True}),
    "int64": (pa.decimal128(18, 3), {"store_decimal_as_integer": True}),
    "fixed": (pa.decimal128(12, 4), {}),
    "wide": (pa.decimal128(36, 17), {}),
}
# Digits of prices: half of them are near 1.1, where the nearest double is no decimal.
DIGITS = st.one_of(st.integers(-300, 300), st.sampled_from([109, 110, 111, 30, -110, 0]))
NUDGES = st.sampled_from([0, 0, 0, math.inf, -math.inf])  # the next double up or down
FLOATS = st.one_of(
    st.tuples(DIGITS, NUDGES).map(
        lambda pair: float(pair[0] / 100 if not pair[1] else np.nextafter(pair[0] / 100, pair[1]))
    ),
    st.sampled_from([math.inf, -math.inf, 1e300, -1e300, 5e-324]),
)


def typed_floats(number: float) -> list[float]:
    """Return a number as a float and as NumPy's scalars."""
    return [number, np.float64(number), np.float32(number)] if abs(number) < 1e30 else [number, np.float64(number)]


def printed(number: float) -> Decimal:
    """Return the decimal that a float prints as."""
    return Decimal(str(number))


def spellings(op: str, number: float) -> dict[str, object]:
    """Return filters that compare ``price`` with a number, in all forms."""
    column, field = col("price"), pc.field("price")
    found = {"tuple": [("price", op, number)], "expression": OPERATORS[op](column, number)}
    if np.isfinite(number):
        typed = pa.scalar(number, pa.float32() if isinstance(number, np.float32) else pa.float64())
        found["text"] = f"price {op} {number!s}"
        found["pyarrow"] = OPERATORS[op](field, typed)
    many = pd.Series([number], dtype=np.dtype(type(number)))
    arrow = pa.array(many)
    if op == "==":
        found["Arrow's values"] = column.isin(many.astype(pd.ArrowDtype(arrow.type)))
        found |= {
            "in": [("price", "in", [number])],
            "isin": column.isin(many),
            "between": column.between(number, number),
        }
        found["pyarrow isin"] = field.isin(arrow)
    if op == "!=":
        found |= {"not in": [("price", "not in", {number})], "not_in": column.not_in(many), "not": ~(column == number)}
    return found


def write_prices(prices: list[Decimal | None], name: str, *, dictionary: bool) -> bytes:
    """Write prices with statistics, page indexes, and Bloom filters or dictionaries, in pages of a few rows."""
    kind, options = TYPES[name]
    array = pa.array(prices, kind)
    table = pa.table(
        {
            "row": range(len(prices)),
            "price": array,
            "place": pa.StructArray.from_arrays([array], ["price"]),
            "prices": pa.array([None if price is None else [price] for price in prices], pa.list_(kind)),
        }
    )
    pq.write_table(
        table,
        out := io.BytesIO(),
        row_group_size=7,
        write_batch_size=2,
        data_page_size=1,
        write_page_index=True,
        use_dictionary=dictionary,
        bloom_filter_options=None if dictionary else {"price": True},
        **options,
    )
    return out.getvalue()


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("name", TYPES)
@given(
    digits=st.lists(st.none() | DIGITS, min_size=1, max_size=16),
    number=FLOATS,
    op=st.sampled_from(sorted(OPERATORS)),
)
def test_floats_mean_the_decimal_that_they_print_as(name, dictionary, digits, number, op):
    prices = [None if price is None else Decimal(price).scaleb(-2) for price in digits]
    data = write_prices(prices, name, dictionary=dictionary)
    for literal in typed_floats(number):
        expected = [
            row for row, price in enumerate(prices) if price is not None and OPERATORS[op](price, printed(literal))
        ]
        forms = spellings(op, literal)
        forms["field"] = OPERATORS[op](col("place.price"), literal)
        if op == "==":
            forms["contains"] = col("prices").contains(literal)
        for form, filters in forms.items():
            found = numparq.read_parquet(data, ["row"], filters)["row"].tolist()
            assert found == expected, (form, filters)
        if op == "==":
            keys = RuntimeFilter("price", [literal])
            assert numparq.read_parquet(data, ["row"], runtime_filters=keys)["row"].tolist() == expected


@pytest.mark.parametrize("op", sorted(OPERATORS))
@pytest.mark.parametrize("number", [1.1, np.float64(0.3), np.float32(1.1), math.inf, -math.inf, math.nan], ids=repr)
def test_floats_beside_decimal_partitions_and_merged_decimals(tmp_path, op, number):
    prices = {"1.10": Decimal("1.10"), "0.30": Decimal("0.30"), "2.5": Decimal("2.5")}
    for position, (text, price) in enumerate(prices.items()):
        folder = tmp_path / f"key={text}"
        folder.mkdir()
        kind = pa.decimal128(5 + position, 2 + position)  # merged into one type
        pq.write_table(pa.table({"price": pa.array([price], kind), "n": pa.array([position])}), folder / "x.parquet")
    dataset = numparq.Dataset(tmp_path, partitioning={"key": "decimal(5, 2)"})
    expected = [
        place
        for place, price in enumerate(sorted(prices.values()))
        if (op == "!=" if math.isnan(number) else OPERATORS[op](price, printed(number)))
    ]
    order = sorted(prices.values())
    for name in ("key", "price"):
        found = dataset.read(["price"], filters=[(name, op, number)])["price"].tolist()
        assert sorted(order.index(price) for price in found) == expected, name


def test_digits_beyond_a_double_are_exact():
    """A decimal of more digits than a double is not the decimal that its nearest double prints as."""
    prices = [Decimal("1.10000000000000009"), Decimal("1.1"), Decimal("1.09999999999999999")]
    data = write_prices(prices, "wide", dictionary=False)
    assert [float(price) == 1.1 for price in prices] == [True, True, True]
    for filters, rows in (
        ([("price", "==", 1.1)], [1]),
        ([("price", ">=", 1.1)], [0, 1]),
        ([("price", "<", 1.1)], [2]),
    ):
        assert numparq.read_parquet(data, ["row"], filters)["row"].tolist() == rows


def test_columns_of_floats_are_compared_exactly(tmp_path):
    """Only a literal is the decimal that it prints as: the double 1.1 of a column is above the decimal 1.1."""
    pq.write_table(
        pa.table({"d": pa.array([Decimal("1.10"), Decimal("0.50")]), "f": [1.1, 0.5]}), tmp_path / "x.parquet"
    )
    frame = numparq.read_parquet(tmp_path / "x.parquet", filters=col("d") == col("f"))
    assert frame["f"].tolist() == [0.5]
    (tmp_path / "f=1.1").mkdir()
    (tmp_path / "x.parquet").rename(tmp_path / "f=1.1" / "x.parquet")
    dataset = numparq.Dataset(tmp_path, partitioning={"f": "double"}, schema={"d": pa.decimal128(3, 2)})
    assert dataset.read(filters=col("d") < col("f"))["d"].tolist() == [Decimal("1.10"), Decimal("0.50")]
