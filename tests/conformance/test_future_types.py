"""Types unknown to this reader are read as their physical type."""

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


def read(file, **options):
    return read_parquet(file.stored(), **options)


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    return {} if request.param == "numpy" else {"dtype_backend": request.param}


@pytest.mark.parametrize("converted", [None, 0, 4, 5, 19, 20, 22, 99, -1, 2**31 - 1])
def test_unknown_logical_type_overrides_converted_type(converted, backend):
    """A ConvertedType counts only without a LogicalType, even an unknown one."""
    element = {"logicalType": future_type(), "converted_type": converted, "precision": 5, "scale": 2}
    got = read(build_file([4], [column(BYTE_ARRAY, element=element)]), **backend)["a"]
    assert got.tolist() == TEXTS
    got = read(
        build_file([4], [column(INT32, values=[1, -2, 3, 4], element={**element, "converted_type": 6})]), **backend
    )
    assert got["a"].tolist() == [1, -2, 3, 4]


@pytest.mark.parametrize("converted", [22, 99, -1, 2**31 - 1, -(2**31)])
def test_unknown_converted_type(converted, backend):
    file = build_file(
        [4],
        [
            column(BYTE_ARRAY, element={"converted_type": converted}),
            column(name="b", element={"converted_type": converted}),
        ],
    )
    got = read(file, **backend)
    assert got["a"].tolist() == TEXTS
    assert got["b"].tolist() == NUMBERS


def test_logical_type_overrides_unknown_converted_type():
    module = extended_idl()
    element = {"logicalType": module.LogicalType(STRING=module.StringType()), "converted_type": 99}
    assert read(build_file([4], [column(BYTE_ARRAY, element=element)]))["a"].tolist() == ["x", "", "zz", "y"]


def test_annotations_invalid_for_the_physical_type(backend):
    """Such columns are read as their physical type."""
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
def test_unknown_time_units(kind, backend):
    """Unknown units are not damage (section TIMESTAMP): the integers are read."""
    module = extended_idl()
    type_class = {"TIMESTAMP": module.TimestampType, "TIME": module.TimeType}[kind]
    for unit in (module.TimeUnit(future=module.FutureStruct()), module.TimeUnit()):
        annotation = module.LogicalType(**{kind: type_class(isAdjustedToUTC=True, unit=unit)})
        file = build_file([4], [column(element={"logicalType": annotation, "converted_type": 9})])
        assert read(file, **backend)["a"].tolist() == NUMBERS
        assert f"a ({kind}(None, utc))" in str(ParquetFile(file.stored()).schema)


def test_unknown_edge_algorithm():
    module = extended_idl()
    geography = module.LogicalType(GEOGRAPHY=module.GeographyType(crs="OGC:CRS84", algorithm=77))
    data = build_file([4], [column(BYTE_ARRAY, element={"logicalType": geography})]).stored()
    assert read_parquet(data)["a"].tolist() == TEXTS
    assert "GEOGRAPHY(OGC:CRS84, 77)" in str(ParquetFile(data).schema)


def test_empty_logical_type():
    """No member of the LogicalType union is set."""
    file = build_file(
        [4], [column(BYTE_ARRAY, element={"logicalType": extended_idl().LogicalType(), "converted_type": 0})]
    )
    assert read(file)["a"].tolist() == TEXTS


# --- groups ----------------------------------------------------------------------------------------------------------


def group(children, page, **element) -> HandmadeFile:
    """Build a file with column "a" and group "g" of `children`, INT64 leaves with the same page."""
    module = extended_idl()
    leaves = [FileColumn(child.name, INT64, [[page]]) for child in children if child.type is not None]
    file = build_file([4], [column(), *leaves])
    outer = module.SchemaElement(
        name="g",
        repetition_type=element.pop("repetition", OPTIONAL),
        num_children=element.pop("num_children", 1),
        **element,
    )
    file.footer.schema[0].num_children = 2
    file.footer.schema[2:] = [outer, *children]
    return file


def leaf(name="x", repetition=REQUIRED, **more):
    return extended_idl().SchemaElement(name=name, type=INT64, repetition_type=repetition, **more)


def level(values, width=1):
    section = encode_indices(values, width)
    return len(section).to_bytes(4, "little") + section


OPTIONAL_PAGE = (level([1, 0, 1, 1]), encode_plain(INT64, [5, 6, 7]))


@pytest.mark.parametrize("converted", [None, 1, 3, 99])
def test_group_with_unknown_logical_type_is_a_struct(converted):
    file = group([leaf()], data_page(4, b"".join(OPTIONAL_PAGE)), logicalType=future_type(), converted_type=converted)
    got = read(file)
    assert got["g"].tolist() == [{"x": 5}, None, {"x": 6}, {"x": 7}]
    assert got["a"].tolist() == NUMBERS


def test_group_with_unknown_converted_type_is_a_struct():
    file = group([leaf()], data_page(4, b"".join(OPTIONAL_PAGE)), converted_type=99)
    assert read(file)["g"].tolist() == [{"x": 5}, None, {"x": 6}, {"x": 7}]


@pytest.mark.parametrize("kind", ["STRING", "DATE", "UUID", "JSON", "UNKNOWN", "GEOMETRY"])
def test_group_with_a_leaf_annotation_is_a_struct(kind):
    module = extended_idl()
    type_name = {
        "STRING": "StringType",
        "DATE": "DateType",
        "UUID": "UUIDType",
        "JSON": "JsonType",
        "UNKNOWN": "NullType",
        "GEOMETRY": "GeometryType",
    }[kind]
    annotation = module.LogicalType(**{kind: getattr(module, type_name)()})
    file = group([leaf()], data_page(4, b"".join(OPTIONAL_PAGE)), logicalType=annotation)
    assert read(file)["g"].tolist() == [{"x": 5}, None, {"x": 6}, {"x": 7}]


def test_list_with_unknown_logical_type():
    """The group is a struct, and its repeated field a list that is never null."""
    body = level([0, 1, 0, 0, 0]) + level([2, 2, 1, 0, 2], 2) + encode_plain(INT64, [1, 2, 3])
    file = group([leaf("l", REPEATED)], data_page(5, body), logicalType=future_type(), converted_type=3)
    file.footer.row_groups[0].columns[1].meta_data.num_values = 5
    got = read(file)["g"].tolist()
    assert [item and item["l"].tolist() for item in got] == [[1, 2], [], None, [3]]


def test_group_without_fields_affects_no_other_column():
    """Writers must not produce such groups, but the other columns are readable."""
    for count in (0, None):
        file = group([], None, num_children=count)
        file.footer.schema[2].num_children = count
        for options in ({"columns": ["a"]}, {"columns": ["a"], "threads": 2, "row_range": (1, 3)}):
            expected = NUMBERS[1:3] if "row_range" in options else NUMBERS
            assert read(file, **options)["a"].tolist() == expected
        assert read(file).columns.tolist() == ["a"]
        with pytest.raises(UnsupportedError, match=r"group without fields.*column 'g'"):
            read(file, columns=["g"])
        assert "group g {}" in str(ParquetFile(file.stored()).schema)


# --- what a column needs to be read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("repetition", [3, 99, -1, 2**31 - 1])
def test_unknown_repetition_affects_only_its_column(repetition):
    file = build_file(
        [4], [column(), FileColumn("x", INT64, [[data_page(4, encode_plain(INT64, NUMBERS))]], repetition)]
    )
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    assert ParquetFile(file.stored()).num_rows == 4
    assert str(ParquetFile(file.stored()).schema)
    if repetition < 0:  # read as if unset
        return
    for options in ({}, {"columns": ["x"]}):
        with pytest.raises(InvalidFileError, match=f"repetition type {repetition}.*column 'x'"):
            read(file, **options)


def test_unknown_repetition_of_a_group():
    file = group([leaf()], data_page(4, encode_plain(INT64, NUMBERS)), repetition=9)
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    for options in ({}, {"columns": ["g"]}, {"columns": ["g.x"]}):
        with pytest.raises(InvalidFileError, match=r"repetition type 9.*column 'g'"):
            read(file, **options)


def test_unknown_physical_type_within_a_group():
    file = group([leaf(), leaf("y")], data_page(4, b"".join(OPTIONAL_PAGE)), num_children=2)
    file.footer.schema[4].type = 88
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    with pytest.raises(InvalidFileError, match=r"physical type 88 is unknown.*column 'g\.y'"):
        read(file)


@pytest.mark.parametrize("length", [None, -1])
def test_missing_type_length_affects_only_its_column(length):
    fixed = FileColumn("x", FIXED_LEN_BYTE_ARRAY, [[data_page(4, b"abcd")]], element={"type_length": length})
    file = build_file([4], [column(), fixed])
    assert read(file, columns=["a"])["a"].tolist() == NUMBERS
    with pytest.raises(InvalidFileError, match=r"no valid type_length.*column 'x'"):
        read(file)


def test_dtypes_of_unknown_logical_types():
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
