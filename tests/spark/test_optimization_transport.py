"""Transport of Arrow columns of every type through Spark: a round trip is lossless. Needs no Spark."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow")

from numparq.errors import SchemaError, UnsupportedError  # noqa: E402
from numparq.spark.optimization.sort_rows import RowPacker  # noqa: E402
from numparq.spark.optimization.transport import ArrowTransport  # noqa: E402
from numparq.tools.optimize.checksum import checksum  # noqa: E402
from numparq.tools.optimize.hilbert import HilbertClustering, quantiles  # noqa: E402
from support.data.arrow_columns import TABLE  # noqa: E402


def round_trip(table):
    carrier = ArrowTransport(table.schema)
    packed = pa.Table.from_arrays(carrier.encode(table), schema=carrier.encoded_schema)
    packed.validate(full=True)
    got = carrier.decode(pa.concat_tables([packed]).columns)
    got.validate(full=True)
    return got


@pytest.mark.parametrize("name", TABLE.column_names)
@pytest.mark.parametrize(("start", "stop"), [(0, 6), (1, 4), (3, 6), (2, 2)])
def test_round_trip_of_each_type(name, start, stop):
    column = TABLE.select([name]).slice(start, stop - start)
    got = round_trip(column)
    assert checksum([got]) == checksum([column])
    arrow_type = column.schema.field(0).type
    assert got.schema.field(0).type == (arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)
    if name not in ("f2", "f4", "f8"):  # NaN is not equal to itself
        assert got[name].to_pylist() == column[name].to_pylist()


def test_nested_dictionaries_become_plain():
    words = pa.array(["x", None, "y", "x"]).dictionary_encode()
    table = pa.table(
        {
            "list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 4]), words),
            "struct": pa.StructArray.from_arrays([words], ["w"]).slice(0, 3),
        }
    )
    got = round_trip(table)
    assert got["list"].to_pylist() == [["x", None], [], ["y", "x"]]
    assert got["struct"].to_pylist() == [{"w": "x"}, {"w": None}, {"w": "y"}]


def test_columns_are_numbered():
    """Spark would not distinguish names by case, and would split names at dots."""
    table = pa.table([[1], [2], [3]], names=["a", "A", "a.b"])
    assert ArrowTransport(table.schema).encoded_schema.names == ["c0", "c1", "c2"]
    assert round_trip(table).to_pylist() == [{"a": 1, "A": 2, "a.b": 3}]


def test_unsupported_arrow_types_are_refused():
    with pytest.raises(UnsupportedError, match=r"Spark cannot carry values of the Arrow type .*union"):
        ArrowTransport(pa.schema([("a", pa.sparse_union([pa.field("x", pa.int8())]))]))


# --- folders and sort keys ------------------------------------------------------------------------


def sorted_like_spark(packing, batches):
    table = pa.Table.from_batches(list(batches), schema=packing.schema)
    return table.sort_by([(name, "ascending") for name in packing.sort_columns])


@pytest.mark.parametrize("name", ["uint8", "uint64", "large", "extremes", "f2", "text", "dec9", "tns", "d64", "uuid"])
def test_encoded_keys_sort_like_values(name):
    plain = TABLE.select([name]).slice(0, 6)
    packing = RowPacker(plain.schema, ["k=a"], [name])
    got = sorted_like_spark(packing, packing.pack(plain, "k=a"))
    values = [
        value for _, part in packing.unpack(got.combine_chunks().to_batches()[0]) for value in part[name].to_pylist()
    ]
    numbers = [value for value in values if value is not None and value == value]
    assert numbers == sorted(numbers)
    assert len(values) == 6


def test_folders_round_trip_with_their_rows():
    packing = RowPacker(TABLE.schema, ["", "k=a", "k=b"])
    batches = [
        *packing.pack(TABLE.slice(0, 2), ""),
        *packing.pack(TABLE.slice(2, 1), "k=b"),
        *packing.pack(TABLE.slice(3), "k=a"),
    ]
    (batch,) = sorted_like_spark(packing, batches).combine_chunks().to_batches()
    found = dict(packing.unpack(batch))
    assert list(found) == ["", "k=a", "k=b"]
    assert checksum([found[""]]) == checksum([TABLE.slice(0, 2)])
    assert checksum([found["k=a"]]) == checksum([TABLE.slice(3)])
    assert checksum([found["k=b"]]) == checksum([TABLE.slice(2, 1)])


def test_clustering_positions_are_packed():
    columns = ["text", "int8"]
    clustering = HilbertClustering([quantiles(TABLE[name], 2) for name in columns])
    packing = RowPacker(TABLE.schema, [""], (), clustering, columns)
    (batch,) = packing.pack(TABLE, "")
    assert packing.sort_columns == ["folder", "place"]
    assert batch.column("place").to_pylist() == clustering.positions([TABLE[name] for name in columns]).tolist()


@pytest.mark.parametrize("name", ["list", "struct", "map", "dec76", "nothing"])
def test_unsortable_types_are_refused(name):
    with pytest.raises(SchemaError, match=r"rows cannot be sorted by values of Arrow type .*column '" + name):
        RowPacker(TABLE.schema, [""], [name])


def test_large_offsets_and_fixed_size_lists():
    words = pa.array(["a", "b", None, "a"]).dictionary_encode()
    table = pa.table({"text": pa.array(["x", None]), "pair": pa.FixedSizeListArray.from_arrays(words, 2)})
    carrier = ArrowTransport(table.schema)
    wide = [carrier.encode(table)[0].cast(pa.large_string()), carrier.encode(table)[1]]
    assert carrier.decode(wide).to_pylist() == table.to_pylist()
