"""Options of a read: columns, rows, virtual columns, categories and threads, and their errors."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, InvalidFileError, ParquetFile, SchemaError, read_parquet
from support.compare import assert_frames_equal, read_by_pandas, write_by_pyarrow

pa = pytest.importorskip("pyarrow")

ROWS = 23
GROUPS = [(0, 7), (7, 14), (14, 21), (21, 23)]  # the rows of each row group


def table():
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "number": numbers,
            "text": [None if n % 4 == 1 else f"t{n % 5}" for n in numbers.tolist()],
            "fraction": pa.array(numbers / 8, mask=numbers % 3 == 2),
            "flag": numbers % 2 == 0,
            "a.b": numbers * 2,
            "moment": pa.array(numbers, pa.timestamp("us")),
        }
    )


@pytest.fixture(scope="module")
def data():
    return write_by_pyarrow(table(), row_group_size=7, data_page_size=20, write_batch_size=3)


@pytest.fixture(scope="module")
def whole(data):
    return read_parquet(data)


# --- columns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        [],
        ["text"],
        ["moment", "number"],
        ["flag", "fraction", "text", "number", "moment", "a.b"],
        ("text", "flag"),
        ["a.b"],
        np.array(["text", "number"]),
        pd.Index(["flag"]),
    ],
    ids=str,
)
def test_columns_in_requested_order(data, columns):
    got = read_parquet(data, columns=columns)
    assert got.columns.tolist() == list(columns)
    assert_frames_equal(got, read_by_pandas(data, columns=list(columns)))


def test_columns_from_an_iterator(data):
    got = read_parquet(data, columns=(name for name in ("text", "flag")))
    assert got.columns.tolist() == ["text", "flag"]


def test_duplicate_columns(data, whole):
    got = read_parquet(data, columns=["text", "number", "text"])
    assert got.columns.tolist() == ["text", "number", "text"]
    assert_frames_equal(got, whole[["text", "number", "text"]])


def test_columns_by_path(data, whole):
    assert_frames_equal(read_parquet(data, columns=[("text",)]), whole[["text"]])
    with pytest.raises(SchemaError, match="no column"):
        read_parquet(data, columns=[("text", "x")])
    with pytest.raises(SchemaError, match="no column"):
        read_parquet(data, columns=[("a", "b")])
    with pytest.raises(SchemaError, match="no column"):
        read_parquet(data, columns=[()])


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("numbers", "'number'"),
        ("Text", "'text'"),
        ("fractoin", "'fraction'"),
        ("zzz", None),
        ("", None),
        (5, None),
        (None, None),
        (b"text", "'text'"),
    ],
)
def test_unknown_column_suggests_a_name(data, name, suggestion):
    with pytest.raises(SchemaError) as caught:
        read_parquet(data, columns=["number", name])
    hint = (
        f"did you mean {suggestion}?" if suggestion else f"its columns are {', '.join(map(repr, read_parquet(data)))}"
    )
    assert str(caught.value) == f"the file has no column {name!r}; {hint} (file '<bytes>')"
    assert isinstance(caught.value, ValueError)


def test_unknown_column_lists_existing_names():
    many = write_by_pyarrow(pa.table({f"c{number}": [1] for number in range(12)}))
    with pytest.raises(SchemaError, match=r"; its columns are 'c0', .*'c7' and 4 more \("):
        read_parquet(many, columns=["zzzzzz"])
    for table, message in ((pa.table({"n": [1]}), "its column is 'n'"), (pa.table({}), "it has no columns")):
        with pytest.raises(SchemaError, match=f"'zzzzzz'; {message} "):
            read_parquet(write_by_pyarrow(table), columns=["zzzzzz"])


def test_unhashable_column_name(data):
    with pytest.raises((SchemaError, TypeError)):
        read_parquet(data, columns=[["text"]])


@pytest.mark.parametrize("columns", ["text", b"text"])
def test_single_name_is_rejected_as_columns(data, columns):
    with pytest.raises(TypeError, match="list of names"):
        read_parquet(data, columns=columns)
    with pytest.raises(TypeError):
        read_parquet(data, columns=5)


def test_unknown_nested_fields():
    nested = write_by_pyarrow(pa.table({"l": [[1]], "s": [{"x": 1}], "n": [1]}))
    for column in ("s.y", ("s", "x", "y"), "l.x", "n.x", ("n", "x"), "z.x", ("z",), "", ()):
        with pytest.raises(SchemaError, match="the file has no column"):
            read_parquet(nested, columns=[column])
    with pytest.raises(SchemaError, match=r"did you mean 'l\.list\.element'"):
        read_parquet(nested, columns=["l.list.elements"])


# --- row groups and rows --------------------------------------------------------------------------------


def expected_rows(whole, groups, first=0, stop=ROWS, most=ROWS):
    """Return the selected rows, chosen one by one."""
    rows = [row for group in groups for row in range(*GROUPS[group]) if first <= row < stop][:most]
    return whole.iloc[rows].reset_index(drop=True)


@pytest.mark.parametrize(
    "groups", [[0], [3], [0, 1, 2, 3], [2, 0], [1, 1], [3, 3, 0, 3], [], (1, 2), range(1, 3)], ids=str
)
@pytest.mark.parametrize("threads", [1, 3])
def test_row_groups_in_requested_order(data, whole, groups, threads):
    got = read_parquet(data, row_groups=groups, threads=threads)
    pd.testing.assert_frame_equal(got, expected_rows(whole, groups))


def test_row_groups_as_numpy_integers(data, whole):
    pd.testing.assert_frame_equal(read_parquet(data, row_groups=np.array([2, 1])), expected_rows(whole, [2, 1]))


@pytest.mark.parametrize("groups", [[4], [-1], [0, 99], [2**70]], ids=str)
def test_unknown_row_groups(data, groups):
    with pytest.raises(ValueError, match=r"row group .* does not exist; there are 4, counted from 0"):
        read_parquet(data, row_groups=groups)


@pytest.mark.parametrize("groups", [1, "0", [0.0], [None], ["0"]], ids=str)
def test_invalid_row_groups(data, groups):
    with pytest.raises(TypeError, match="row_groups"):
        read_parquet(data, row_groups=groups)


RANGES = [
    (0, 23),
    (0, 0),
    (5, 5),
    (0, 1),
    (22, 23),
    (6, 8),
    (7, 14),
    (3, 20),
    (20, 99),
    (99, 200),
    (5, None),
    (None, 5),
    (None, None),
]


@pytest.mark.parametrize("rows", RANGES, ids=str)
@pytest.mark.parametrize("groups", [None, [2, 0], [1, 1]], ids=str)
def test_row_range(data, whole, rows, groups):
    first, stop = rows[0] or 0, ROWS if rows[1] is None else rows[1]
    expected = expected_rows(whole, range(4) if groups is None else groups, first, stop)
    for threads in (1, 2):
        got = read_parquet(data, row_range=rows, row_groups=groups, threads=threads)
        pd.testing.assert_frame_equal(got, expected, check_dtype=len(expected) == ROWS)


def test_every_row_range(data, whole):
    for first in range(ROWS):
        for stop in range(first, ROWS + 1, 5):
            got = read_parquet(data, row_range=(first, stop), threads=1)
            pd.testing.assert_frame_equal(got, expected_rows(whole, range(4), first, stop), check_dtype=False)


def test_row_range_as_a_range_or_a_slice(data, whole):
    for rows in (range(5, 9), slice(5, 9), slice(5, 9, 1), [5, 9], np.array([5, 9])):
        pd.testing.assert_frame_equal(read_parquet(data, row_range=rows), expected_rows(whole, range(4), 5, 9))
    with pytest.raises(ValueError, match="step"):
        read_parquet(data, row_range=range(0, 9, 2))


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ((5, 3), ValueError),
        ((-1, 3), ValueError),
        ((0, -1), ValueError),
        (5, TypeError),
        ((1, 2, 3), TypeError),
        ("ab", TypeError),
        ((0.5, 2), TypeError),
        (("0", "2"), TypeError),
        ((), TypeError),
    ],
    ids=str,
)
def test_invalid_row_ranges(data, rows, kind):
    with pytest.raises(kind, match="row_range"):
        read_parquet(data, row_range=rows)


@pytest.mark.parametrize("most", [0, 1, 6, 7, 8, 22, 23, 24, 10**9, np.int64(3)], ids=str)
def test_nrows(data, whole, most):
    got = read_parquet(data, nrows=most)
    pd.testing.assert_frame_equal(got, expected_rows(whole, range(4), most=most), check_dtype=False)


def test_nrows_limits_rows_after_other_selections(data, whole):
    got = read_parquet(data, row_groups=[2, 0], row_range=(3, 18), nrows=6)
    pd.testing.assert_frame_equal(got, expected_rows(whole, [2, 0], 3, 18, 6), check_dtype=False)
    assert got["number"].tolist() == [14, 15, 16, 17, 3, 4]


@pytest.mark.parametrize(("most", "kind"), [(-1, ValueError), (1.5, TypeError), ("3", TypeError)])
def test_invalid_nrows(data, most, kind):
    with pytest.raises(kind, match="nrows"):
        read_parquet(data, nrows=most)


def test_row_selection_keeps_the_index():
    frame = pd.DataFrame({"a": range(10), "i": list("abcdefghij")}).set_index("i")
    data = write_by_pyarrow(frame, row_group_size=4)
    pd.testing.assert_frame_equal(read_parquet(data, row_range=(3, 6)), frame.iloc[3:6])
    pd.testing.assert_frame_equal(read_parquet(data, row_groups=[2, 0]), frame.iloc[[8, 9, 0, 1, 2, 3]])
    assert read_parquet(data, columns=[], nrows=2).index.tolist() == ["a", "b"]


# --- virtual columns ---------------------------------------------------------------------------------------


def test_include_virtual_columns(data, whole):
    got = read_parquet(data, columns=["number"], include=["row_number", "file", "row_group"])
    assert got.columns.tolist() == ["number", "row_number", "file", "row_group"]
    assert got["row_number"].tolist() == list(range(ROWS))
    assert got["row_number"].dtype == np.int64
    assert got["row_group"].tolist() == [0] * 7 + [1] * 7 + [2] * 7 + [3] * 2
    assert got["row_group"].dtype == np.int64
    assert got["file"].tolist() == ["<bytes>"] * ROWS
    assert got["file"].dtype == "str"


def test_virtual_columns_count_over_the_whole_file(data):
    got = read_parquet(data, row_groups=[2, 0], row_range=(5, 16), include=["row_number", "row_group"])
    assert got["row_number"].tolist() == got["number"].tolist() == [14, 15, 5, 6]
    assert got["row_group"].tolist() == [2, 2, 0, 0]


def test_include_without_columns_and_rows(data):
    assert read_parquet(data, columns=[], include=["row_number"])["row_number"].tolist() == list(range(ROWS))
    got = read_parquet(data, nrows=0, include=["file", "row_group"])
    assert len(got) == 0
    assert got.columns.tolist()[-2:] == ["file", "row_group"]
    assert read_parquet(data, include=["file", "file"]).columns.tolist().count("file") == 1
    assert read_parquet(data, include="file").columns[-1] == "file"


def test_include_file_path(tmp_path, data):
    path = tmp_path / "grün.parquet"
    path.write_bytes(data)
    assert set(read_parquet(path, include=["file"])["file"]) == {str(path)}


def test_invalid_include_names(data):
    with pytest.raises(ValueError, match="include must name one of 'file', 'row_group', 'row_number', not 'line'"):
        read_parquet(data, include=["line"])
    with pytest.raises(TypeError):
        read_parquet(data, include=5)
    clash = write_by_pyarrow(pa.table({"file": ["mine"]}))
    assert read_parquet(clash)["file"].tolist() == ["mine"]
    with pytest.raises(SchemaError, match="include='file' cannot be added"):
        read_parquet(clash, include=["file"])


# --- categories ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [list, tuple, set, frozenset, dict.fromkeys], ids=["list", "tuple", "set", "frozenset", "dict"]
)
def test_categories(data, whole, kind):
    got = read_parquet(data, categories=kind(["text", "flag", "number"]))
    assert [str(dtype) for dtype in got.dtypes] == [
        "category",
        "category",
        "float64",
        "category",
        "int64",
        "datetime64[us]",
    ]
    for name in whole:
        assert [None if pd.isna(value) else value for value in got[name]] == [
            None if pd.isna(value) else value for value in whole[name]
        ]
    assert got["text"].cat.categories.tolist() == ["t0", "t2", "t3", "t4", "t1"]


def test_categories_with_row_ranges(data, whole):
    for rows in RANGES:
        got = read_parquet(data, row_range=rows, categories=["text"])["text"]
        expected = whole["text"].iloc[slice(*rows)]
        assert got.astype("object").fillna("-").tolist() == expected.fillna("-").tolist()


def test_categories_of_unread_columns_are_ignored(data):
    assert read_parquet(data, columns=["number"], categories=["text"])["number"].dtype == np.int64
    with pytest.raises(TypeError, match="categories"):
        read_parquet(data, categories="text")
    with pytest.raises(TypeError):
        read_parquet(data, categories=5)


# --- the rest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [None, 1, 2, 5, 64, np.int8(2)])
def test_threads(data, whole, threads):
    assert_frames_equal(read_parquet(data, threads=threads), whole)


@pytest.mark.parametrize(
    ("threads", "kind"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError), ("2", TypeError)]
)
def test_invalid_threads(data, threads, kind):
    with pytest.raises(kind, match="threads"):
        read_parquet(data, threads=threads)


def test_verify_crc():
    sound = write_by_pyarrow(
        pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}),
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
    )
    damaged = bytearray(sound)
    damaged[sound.index(b"y\x01\x00\x00\x00z")] = ord("q")
    damaged = bytes(damaged)
    assert read_parquet(damaged, verify_crc=False)["b"].tolist() == ["x", "q", "z"]
    assert read_parquet(damaged, columns=["a"])["a"].tolist() == [1, 2, 3]
    with pytest.raises(CorruptPageError, match="checksum") as caught:
        read_parquet(damaged)
    assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "b", "page": 0}


def test_dtype_backend(data):
    for name in ("numpy_nullable", "pyarrow"):
        assert_frames_equal(read_parquet(data, dtype_backend=name), read_by_pandas(data, dtype_backend=name))
    no_default = pd.api.extensions.no_default
    for default in (None, no_default):
        assert_frames_equal(read_parquet(data, dtype_backend=default), read_by_pandas(data))
    for wrong in ("arrow", "", 5, "numpy-nullable"):
        with pytest.raises(ValueError, match="dtype_backend"):
            read_parquet(data, dtype_backend=wrong)


def test_decryption_must_have_keys(data):
    for read in (read_parquet, ParquetFile):
        message = r"decryption must be a numparq\.Decryption, the name of a key provider, or None, not dict"
        with pytest.raises(TypeError, match=message):
            read(data, decryption={})


@pytest.mark.parametrize("as_file", [bytes, memoryview, io.BytesIO], ids=lambda kind: kind.__name__)
def test_dataset_options_read_files_without_a_name(data, whole, as_file):
    schema = pa.schema([("number", pa.float64()), ("absent", pa.string())])
    read = read_parquet(as_file(data), schema=schema, filters=[("number", ">", 9)])
    assert read["number"].tolist() == [float(number) for number in range(10, ROWS)]
    assert read["number"].dtype == "float64"
    assert read["absent"].isna().all()
    assert_frames_equal(read_parquet(as_file(data), resolve="position"), whole)


def test_dataset_options_name_what_cannot_be_read():
    with pytest.raises(TypeError, match="path must be a str, PathLike, bytes or binary file object, not int"):
        read_parquet(5, resolve="position")
    with pytest.raises(InvalidFileError, match="the file has 0 bytes"):
        read_parquet(b"", schema={})


def test_default_options(data, whole):
    options = {
        "filters": None,
        "storage_options": {},
        "filesystem": None,
        "partitioning": None,
        "schema": None,
        "resolve": "name",
        "decryption": None,
        "on_error": "raise",
        "memory_limit": None,
    }
    assert_frames_equal(read_parquet(data, **options), whole)
    with pytest.raises(TypeError):
        read_parquet(data, no_such_option=1)


def test_repeated_reads_of_an_open_file(data, whole):
    with ParquetFile(data) as file:
        assert (file.num_rows, file.num_row_groups) == (ROWS, 4)
        assert file.schema.columns == list(whole.columns)
        assert_frames_equal(file.read(), whole)
        assert_frames_equal(file.read(["text"], row_groups=[1]), expected_rows(whole, [1])[["text"]])
        assert_frames_equal(file.read(), whole)
        assert "23 rows, 6 columns, 4 row groups" in repr(file)


def test_frames_own_their_memory(data, whole):
    """Writing to a frame changes neither the file's bytes nor another frame."""
    untouched = bytes(data)
    got = read_parquet(data)
    got.loc[:, "number"] = -1
    got["fraction"] = got["fraction"] + 1
    got.loc[3, "text"] = "changed"
    assert data == untouched
    assert_frames_equal(read_parquet(data), whole)


def test_public_names():
    for name in numparq.__all__:
        assert getattr(numparq, name) is not None
    assert set(numparq.__all__) <= set(dir(numparq))
    with pytest.raises(AttributeError):
        numparq.no_such_name  # noqa: B018
