"""Types of the future: what a reader of today does not know reads as what it is physically."""

from __future__ import annotations

import numpy as np
import pytest

from numparq import InvalidFileError, ParquetFile, UnsupportedError, read_parquet
from support.files.builder import (
    BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    FileColumn,
    HandmadeFile,
    build_file,
    data_page,
    encode_indices,
    encode_plain,
    extended_idl,
)

NUMBERS = [3, 1, 2**62, -5]
TEXTS = [b"x", b"", b"zz", b"y"]
BACKENDS = ["numpy", "numpy_nullable", "pyarrow"]


def future_type(**parameters):
    module = extended_idl()
    return module.LogicalType(future=module.FutureStruct(number=1, **parameters))


def column(physical=INT64, name="a", values=None, element=None):
    values = (TEXTS if physical == BYTE_ARRAY else NUMBERS) if values is None else values
    return FileColumn(name, physical, [[data_page(4, encode_plain(physical, values))]], element=element or {})


def read(made, **options):
    return read_parquet(made.stored(), **options)


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    return {} if request.param == "numpy" else {"dtype_backend": request.param}


@pytest.mark.parametrize("converted", [None, 0, 4, 5, 19, 20, 22, 99, -1, 2**31 - 1])
def test_a_logical_type_of_the_future_beside_a_converted_type(converted, backend):
    """A ConvertedType counts only where no LogicalType is; one that is not known is there all the same."""
    element = {"logicalType": future_type(), "converted_type": converted, "precision": 5, "scale": 2}
    got = read(build_file([4], [column(BYTE_ARRAY, element=element)]), **backend)["a"]
    assert got.tolist() == TEXTS
    got = read(
        build_file([4], [column(INT32, values=[1, -2, 3, 4], element={**element, "converted_type": 6})]), **backend
    )
    assert got["a"].tolist() == [1, -2, 3, 4]


@pytest.mark.parametrize("converted", [22, 99, -1, 2**31 - 1, -(2**31)])
def test_a_converted_type_of_the_future(converted, backend):
    made = build_file(
        [4],
        [
            column(BYTE_ARRAY, element={"converted_type": converted}),
            column(name="b", element={"converted_type": converted}),
        ],
    )
    got = read(made, **backend)
    assert got["a"].tolist() == TEXTS
    assert got["b"].tolist() == NUMBERS


def test_a_logical_type_beside_a_converted_type_of_the_future():
    module = extended_idl()
    element = {"logicalType": module.LogicalType(STRING=module.StringType()), "converted_type": 99}
    assert read(build_file([4], [column(BYTE_ARRAY, element=element)]))["a"].tolist() == ["x", "", "zz", "y"]


def test_types_that_do_not_fit_their_physical_type(backend):
    """Annotations that are known, on what they cannot annotate: the physical type stands."""
    module = extended_idl()
    kinds = [
        module.LogicalType(STRING=module.StringType()),
        module.LogicalType(FLOAT16=module.Float16Type()),
        module.LogicalType(UUID=module.UUIDType()),
        module.LogicalType(DATE=module.DateType()),
        module.LogicalType(LIST=module.ListType()),
        module.LogicalType(MAP=module.MapType()),
        module.LogicalType(VARIANT=module.VariantType()),
        module.LogicalType(FILE=module.FileType()),
        module.LogicalType(INTEGER=module.IntType(bitWidth=8, isSigned=True)),
        module.LogicalType(INTEGER=module.IntType(bitWidth=77, isSigned=True)),
    ]
    for kind in kinds:
        assert read(build_file([4], [column(element={"logicalType": kind})]), **backend)["a"].tolist() == NUMBERS


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIME"])
def test_units_of_the_future(kind, backend):
    """They are none of the data's faults (section TIMESTAMP): the numbers are read as such."""
    module = extended_idl()
    of_kind = {"TIMESTAMP": module.TimestampType, "TIME": module.TimeType}[kind]
    for unit in (module.TimeUnit(future=module.FutureStruct()), module.TimeUnit()):
        annotation = module.LogicalType(**{kind: of_kind(isAdjustedToUTC=True, unit=unit)})
        made = build_file([4], [column(element={"logicalType": annotation, "converted_type": 9})])
        assert read(made, **backend)["a"].tolist() == NUMBERS
        assert f"a ({kind}(None, utc))" in str(ParquetFile(made.stored()).schema)


def test_edges_and_versions_of_the_future():
    module = extended_idl()
    geography = module.LogicalType(GEOGRAPHY=module.GeographyType(crs="OGC:CRS84", algorithm=77))
    data = build_file([4], [column(BYTE_ARRAY, element={"logicalType": geography})]).stored()
    assert read_parquet(data)["a"].tolist() == TEXTS
    assert "GEOGRAPHY(OGC:CRS84, 77)" in str(ParquetFile(data).schema)


def test_an_empty_union():
    """A LogicalType without any member that is set."""
    made = build_file(
        [4], [column(BYTE_ARRAY, element={"logicalType": extended_idl().LogicalType(), "converted_type": 0})]
    )
    assert read(made)["a"].tolist() == TEXTS


# --- groups ----------------------------------------------------------------------------------------------------------


def group(children, page, **element) -> HandmadeFile:
    """Make a file of the column "a", and a group "g" of `children`, each a leaf of INT64 with the same page."""
    module = extended_idl()
    leaves = [FileColumn(child.name, INT64, [[page]]) for child in children if child.type is not None]
    made = build_file([4], [column(), *leaves])
    outer = module.SchemaElement(
        name="g",
        repetition_type=element.pop("repetition", OPTIONAL),
        num_children=element.pop("num_children", 1),
        **element,
    )
    made.footer.schema[0].num_children = 2
    made.footer.schema[2:] = [outer, *children]
    return made


def leaf(name="x", repetition=REQUIRED, **more):
    return extended_idl().SchemaElement(name=name, type=INT64, repetition_type=repetition, **more)


def level(values, width=1):
    section = encode_indices(values, width)
    return len(section).to_bytes(4, "little") + section


OPTIONAL_PAGE = (level([1, 0, 1, 1]), encode_plain(INT64, [5, 6, 7]))


@pytest.mark.parametrize("converted", [None, 1, 3, 99])
def test_a_group_of_an_unknown_kind_is_a_struct(converted):
    made = group([leaf()], data_page(4, b"".join(OPTIONAL_PAGE)), logicalType=future_type(), converted_type=converted)
    got = read(made)
    assert got["g"].tolist() == [{"x": 5}, None, {"x": 6}, {"x": 7}]
    assert got["a"].tolist() == NUMBERS


def test_a_group_of_an_unknown_converted_type_is_a_struct():
    made = group([leaf()], data_page(4, b"".join(OPTIONAL_PAGE)), converted_type=99)
    assert read(made)["g"].tolist() == [{"x": 5}, None, {"x": 6}, {"x": 7}]


@pytest.mark.parametrize("kind", ["STRING", "DATE", "UUID", "JSON", "UNKNOWN", "GEOMETRY"])
def test_a_group_with_the_annotation_of_a_leaf_is_a_struct(kind):
    module = extended_idl()
    of_kind = {
        "STRING": "StringType",
        "DATE": "DateType",
        "UUID": "UUIDType",
        "JSON": "JsonType",
        "UNKNOWN": "NullType",
        "GEOMETRY": "GeometryType",
    }[kind]
    annotation = module.LogicalType(**{kind: getattr(module, of_kind)()})
    made = group([leaf()], data_page(4, b"".join(OPTIONAL_PAGE)), logicalType=annotation)
    assert read(made)["g"].tolist() == [{"x": 5}, None, {"x": 6}, {"x": 7}]


def test_a_list_of_an_unknown_kind():
    """The group is a struct then, and the repeated field in it a list that is never null."""
    body = level([0, 1, 0, 0, 0]) + level([2, 2, 1, 0, 2], 2) + encode_plain(INT64, [1, 2, 3])
    made = group([leaf("l", REPEATED)], data_page(5, body), logicalType=future_type(), converted_type=3)
    made.footer.row_groups[0].columns[1].meta_data.num_values = 5
    got = read(made)["g"].tolist()
    assert [item and item["l"].tolist() for item in got] == [[1, 2], [], None, [3]]


def test_a_group_without_fields_matters_to_itself_alone():
    """No writer may make one; what is beside it is read all the same."""
    for count in (0, None):
        made = group([], None, num_children=count)
        made.footer.schema[2].num_children = count
        for options in ({"columns": ["a"]}, {"columns": ["a"], "threads": 2, "row_range": (1, 3)}):
            expected = NUMBERS[1:3] if "row_range" in options else NUMBERS
            assert read(made, **options)["a"].tolist() == expected
        assert read(made).columns.tolist() == ["a"]
        with pytest.raises(UnsupportedError, match=r"group without fields.*column 'g'"):
            read(made, columns=["g"])
        assert "group g {}" in str(ParquetFile(made.stored()).schema)


# --- what there has to be to read a column ----------------------------------------------------------------------------


@pytest.mark.parametrize("repetition", [3, 99, -1, 2**31 - 1])
def test_an_unknown_repetition_matters_to_its_column_alone(repetition):
    made = build_file(
        [4], [column(), FileColumn("x", INT64, [[data_page(4, encode_plain(INT64, NUMBERS))]], repetition)]
    )
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    assert ParquetFile(made.stored()).num_rows == 4
    assert str(ParquetFile(made.stored()).schema)
    if repetition < 0:  # as if the file did not say it
        return
    for options in ({}, {"columns": ["x"]}):
        with pytest.raises(InvalidFileError, match=f"repetition type {repetition}.*column 'x'"):
            read(made, **options)


def test_an_unknown_repetition_of_a_group():
    made = group([leaf()], data_page(4, encode_plain(INT64, NUMBERS)), repetition=9)
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    for options in ({}, {"columns": ["g"]}, {"columns": ["g.x"]}):
        with pytest.raises(InvalidFileError, match=r"repetition type 9.*column 'g'"):
            read(made, **options)


def test_an_unknown_physical_type_within_a_group():
    made = group([leaf(), leaf("y")], data_page(4, b"".join(OPTIONAL_PAGE)), num_children=2)
    made.footer.schema[4].type = 88
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    with pytest.raises(InvalidFileError, match=r"physical type 88 is unknown.*column 'g\.y'"):
        read(made)


@pytest.mark.parametrize("length", [None, -1])
def test_a_fixed_length_that_is_not_there_matters_to_its_column_alone(length):
    fixed = FileColumn("x", FIXED_LEN_BYTE_ARRAY, [[data_page(4, b"abcd")]], element={"type_length": length})
    made = build_file([4], [column(), fixed])
    assert read(made, columns=["a"])["a"].tolist() == NUMBERS
    with pytest.raises(InvalidFileError, match=r"no valid type_length.*column 'x'"):
        read(made)


def test_the_dtypes_of_physical_types():
    got = read(
        build_file(
            [4],
            [
                column(element={"logicalType": future_type()}),
                column(INT32, "b", [1, 2, 3, 4], {"logicalType": future_type()}),
            ],
        )
    )
    assert got.dtypes.tolist() == [np.int64, np.int32]
