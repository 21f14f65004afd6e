"""Columns of all types on their way through Spark: what comes back is what was sent. Without Spark."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow")

from numparq.errors import SchemaError, UnsupportedError  # noqa: E402
from numparq.spark.optimization.sort_rows import RowPacker  # noqa: E402
from numparq.spark.optimization.transport import ArrowTransport  # noqa: E402
from numparq.tools.optimize.checksum import checksum  # noqa: E402
from numparq.tools.optimize.hilbert import HilbertClustering, quantiles  # noqa: E402
from support.data.arrow_columns import TABLE  # noqa: E402


def carried_there_and_back(table):
    carrier = ArrowTransport(table.schema)
    packed = pa.Table.from_arrays(carrier.encode(table), schema=carrier.encoded_schema)
    packed.validate(full=True)
    got = carrier.decode(pa.concat_tables([packed]).columns)
    got.validate(full=True)
    return got


@pytest.mark.parametrize("name", TABLE.column_names)
@pytest.mark.parametrize(("start", "stop"), [(0, 6), (1, 4), (3, 6), (2, 2)])
def test_each_type(name, start, stop):
    column = TABLE.select([name]).slice(start, stop - start)
    got = carried_there_and_back(column)
    assert checksum([got]) == checksum([column])
    of = column.schema.field(0).type
    assert got.schema.field(0).type == (of.value_type if pa.types.is_dictionary(of) else of)
    if name not in ("f2", "f4", "f8"):  # NaN is not equal to itself
        assert got[name].to_pylist() == column[name].to_pylist()


def test_dictionaries_within():
    words = pa.array(["x", None, "y", "x"]).dictionary_encode()
    table = pa.table(
        {
            "list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 4]), words),
            "struct": pa.StructArray.from_arrays([words], ["w"]).slice(0, 3),
        }
    )
    got = carried_there_and_back(table)
    assert got["list"].to_pylist() == [["x", None], [], ["y", "x"]]
    assert got["struct"].to_pylist() == [{"w": "x"}, {"w": None}, {"w": "y"}]


def test_names_are_numbers():
    """Names that are the same to Spark, and those that it would take apart."""
    table = pa.table([[1], [2], [3]], names=["a", "A", "a.b"])
    assert ArrowTransport(table.schema).encoded_schema.names == ["c0", "c1", "c2"]
    assert carried_there_and_back(table).to_pylist() == [{"a": 1, "A": 2, "a.b": 3}]


def test_what_cannot_be_carried():
    with pytest.raises(UnsupportedError, match=r"Spark cannot carry values of the Arrow type .*union"):
        ArrowTransport(pa.schema([("a", pa.sparse_union([pa.field("x", pa.int8())]))]))


# --- with folders, and what rows are sorted by ------------------------------------------------------------------------


def sorted_as_spark_does(packing, batches):
    table = pa.Table.from_batches(list(batches), schema=packing.schema)
    return table.sort_by([(name, "ascending") for name in packing.order])


@pytest.mark.parametrize("name", ["uint8", "uint64", "large", "extremes", "f2", "text", "dec9", "tns", "d64", "uuid"])
def test_keys_sort_as_values_do(name):
    plain = TABLE.select([name]).slice(0, 6)
    packing = RowPacker(plain.schema, ["k=a"], [name])
    got = sorted_as_spark_does(packing, packing.pack(plain, "k=a"))
    values = [
        value for _, part in packing.unpack(got.combine_chunks().to_batches()[0]) for value in part[name].to_pylist()
    ]
    known = [value for value in values if value is not None and value == value]
    assert known == sorted(known)
    assert len(values) == 6


def test_folders_come_back_with_their_rows():
    packing = RowPacker(TABLE.schema, ["", "k=a", "k=b"])
    batches = [
        *packing.pack(TABLE.slice(0, 2), ""),
        *packing.pack(TABLE.slice(2, 1), "k=b"),
        *packing.pack(TABLE.slice(3), "k=a"),
    ]
    (batch,) = sorted_as_spark_does(packing, batches).combine_chunks().to_batches()
    found = dict(packing.unpack(batch))
    assert list(found) == ["", "k=a", "k=b"]
    assert checksum([found[""]]) == checksum([TABLE.slice(0, 2)])
    assert checksum([found["k=a"]]) == checksum([TABLE.slice(3)])
    assert checksum([found["k=b"]]) == checksum([TABLE.slice(2, 1)])


def test_places_of_a_clustering_travel_along():
    columns = ["text", "int8"]
    clustering = HilbertClustering([quantiles(TABLE[name], 2) for name in columns])
    packing = RowPacker(TABLE.schema, [""], (), clustering, columns)
    (batch,) = packing.pack(TABLE, "")
    assert packing.sort_columns == ["folder", "place"]
    assert batch.column("place").to_pylist() == clustering.positions([TABLE[name] for name in columns]).tolist()


@pytest.mark.parametrize("name", ["list", "struct", "map", "dec76", "nothing"])
def test_what_rows_cannot_be_sorted_by(name):
    with pytest.raises(SchemaError, match=r"rows cannot be sorted by values of the type .*column '" + name):
        RowPacker(TABLE.schema, [""], [name])


def test_wide_offsets_and_dictionaries_in_lists_of_one_length():
    words = pa.array(["a", "b", None, "a"]).dictionary_encode()
    table = pa.table({"text": pa.array(["x", None]), "pair": pa.FixedSizeListArray.from_arrays(words, 2)})
    carrier = ArrowTransport(table.schema)
    wide = [carrier.encode(table)[0].cast(pa.large_string()), carrier.encode(table)[1]]
    assert carrier.decode(wide).to_pylist() == table.to_pylist()
