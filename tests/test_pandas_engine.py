"""numparq as an engine of pandas: the hook, what the engine makes of arguments, and `df.numparq`."""

from __future__ import annotations

import doctest
import io
import subprocess
import sys
import threading
import types
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pandas.testing as tm
import pytest
from pandas.io import parquet

import numparq
import numparq.pandas
from numparq.errors import SchemaError, UnsupportedError
from numparq.pandas import hook

ORIGINAL = parquet.get_engine
VALUES = {"a": [1, 2, 3], "b": ["x", None, "z"], "c": [1.5, np.nan, 2.5]}
FRAME = pd.DataFrame(VALUES, index=pd.Index([7, 8, 9], name="i"))


@pytest.fixture
def registered():
    numparq.pandas.register()
    yield
    numparq.pandas.unregister()
    assert parquet.get_engine is ORIGINAL


def child(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


# --- the hook ---------------------------------------------------------------------------------------------------------


def test_import_is_light_and_lazy():
    heavy = ("numpy", "pandas", "numba", "pyarrow")
    code = "import sys, numparq; numparq.pandas.register; "
    assert child(code + f"print([n for n in {heavy} if n in sys.modules])").strip() == "[]"


def test_without_registering_there_is_no_such_engine():
    with pytest.raises(ValueError, match="engine must be one of"):
        FRAME.to_parquet(engine="numparq")
    assert not hasattr(FRAME, "numparq")


def test_register_twice_and_unregister_twice():
    numparq.pandas.register()
    first = parquet.get_engine
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numparq.pandas.register()
    assert parquet.get_engine is first is not ORIGINAL
    numparq.pandas.unregister()
    numparq.pandas.unregister()
    assert parquet.get_engine is ORIGINAL
    assert not hasattr(FRAME, "numparq")


def test_registering_from_many_threads_wraps_once(registered):
    numparq.pandas.unregister()
    start = threading.Barrier(8)

    def register():
        start.wait()
        numparq.pandas.register()

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parquet.get_engine.__wrapped__ is ORIGINAL


def test_a_wrapper_around_ours_outlives_it(registered, monkeypatch):
    ours = parquet.get_engine
    theirs = lambda engine: ours(engine)  # noqa: E731
    parquet.get_engine = theirs
    numparq.pandas.unregister()
    assert parquet.get_engine is theirs
    with pytest.raises(ValueError, match="engine must be one of"):
        FRAME.to_parquet(engine="numparq")
    parquet.get_engine = ORIGINAL


def test_other_engines_are_left_as_they_are(registered):
    pytest.importorskip("pyarrow")
    assert type(parquet.get_engine("pyarrow")) is parquet.PyArrowImpl
    assert type(parquet.get_engine("auto")) is parquet.PyArrowImpl
    with pytest.raises(ValueError, match="engine must be one of"):
        parquet.get_engine("fast")
    with pytest.raises(ValueError, match="engine must be one of"):
        pd.read_parquet("there is no such file", engine="other")


def test_warnings_of_pandas_name_the_caller(registered, monkeypatch):
    monkeypatch.setattr(parquet, "FastParquetImpl", object)  # which is deprecated since pandas 3.1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parquet.get_engine("fastparquet")
    assert [warning.filename for warning in caught] == [__file__] * (pd.__version__ >= "3.1")


def test_default():
    data = numparq.to_parquet(FRAME)
    numparq.pandas.register(default=True)
    try:
        assert type(parquet.get_engine("auto")).__name__ == "NumparqImpl"
        tm.assert_frame_equal(pd.read_parquet(data), FRAME)  # pyarrow does not take bytes
        with pd.option_context("io.parquet.engine", "pyarrow"):
            assert type(parquet.get_engine("auto")).__name__ != "NumparqImpl"
        numparq.pandas.register()
        assert type(parquet.get_engine("auto")).__name__ != "NumparqImpl"
    finally:
        numparq.pandas.unregister()


def module(**changed):
    """What pandas.io.parquet is, with something in it changed."""
    made = types.ModuleType("pandas.io.parquet")
    made.__dict__.update({name: value for name, value in vars(parquet).items() if not name.startswith("__")})
    made.__dict__.update(changed)
    return made


class OtherImpl(parquet.BaseImpl):
    def read(self, source, columns=None, **kwargs):
        """Have other parameters."""


@pytest.mark.parametrize("version", ["3.0.0", "3.0.6", "3.1.1", "3.9.0"])
def test_known_versions(version):
    hook.check_pandas(module(), version)


@pytest.mark.parametrize(
    ("changed", "version", "trouble"),
    [
        ({}, "4.0.0", "that version is not known"),
        ({}, "2.3.3", "that version is not known"),
        ({"get_engine": lambda engine, path: None}, "3.1.1", r"get_engine are \(engine, path\)"),
        ({"get_engine": None}, "3.1.1", "there is no function pandas.io.parquet.get_engine"),
        ({"BaseImpl": OtherImpl}, "3.1.1", r"BaseImpl.read are \(source, columns, kwargs\)"),
        ({"read_parquet": lambda path: None}, "3.1.1", "read_parquet does not call get_engine"),
        ({"to_parquet": None}, "3.1.1", "to_parquet does not call get_engine"),
    ],
)
def test_another_pandas_is_refused(changed, version, trouble):
    with pytest.raises(UnsupportedError, match=trouble) as caught:
        hook.check_pandas(module(**changed), version)
    assert "Known are pandas 3.0 and 3.1" in str(caught.value)
    assert "numparq.read_parquet" in str(caught.value)


def test_what_the_engine_takes_of_pandas_is_missed_early():
    code = """
import pandas.io.common, numparq.pandas
del pandas.io.common.check_parent_directory
try:
    numparq.pandas.register()
except numparq.UnsupportedError as error:
    print(error)
"""
    assert "check_parent_directory" in child(code)


def test_where_the_hook_is_refused_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(pd, "__version__", "17.0")
    with pytest.raises(UnsupportedError, match=r"pandas 17\.0"):
        numparq.pandas.register()
    assert parquet.get_engine is ORIGINAL
    assert not hasattr(FRAME, "numparq")


@pytest.mark.parametrize("name", ["numparq.pandas", "numparq.pandas.hook"])
def test_docstrings(name):
    result = doctest.testmod(sys.modules[name])
    assert result.attempted
    assert not result.failed


# --- reading and writing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, Path])
def test_files(registered, tmp_path, kind):
    path = kind(tmp_path / "file.parquet")
    FRAME.to_parquet(path, engine="numparq")
    tm.assert_frame_equal(pd.read_parquet(path, engine="numparq"), FRAME)
    with numparq.ParquetFile(path) as file:
        assert file.is_own


def test_each_reads_what_the_other_writes(registered, tmp_path):
    pytest.importorskip("pyarrow")
    for writer, reader in (("numparq", "pyarrow"), ("pyarrow", "numparq")):
        FRAME.to_parquet(tmp_path / writer, engine=writer)
        tm.assert_frame_equal(pd.read_parquet(tmp_path / writer, engine=reader), FRAME)


def test_bytes_and_file_objects(registered, tmp_path):
    data = FRAME.to_parquet(engine="numparq", compression="zstd")
    tm.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="numparq"), FRAME)
    tm.assert_frame_equal(pd.read_parquet(data, engine="numparq"), FRAME)
    with open(tmp_path / "file", "w+b") as file:
        FRAME.to_parquet(file, engine="numparq")
        file.seek(0)
        tm.assert_frame_equal(pd.read_parquet(file, engine="numparq"), FRAME)


def test_columns_filters_and_index(registered):
    data = FRAME.to_parquet(engine="numparq", index=False)
    read = pd.read_parquet(data, "numparq", columns=["c", "a"])
    assert read.columns.tolist() == ["c", "a"]
    assert read.index.tolist() == [0, 1, 2]
    for filters in ([("a", ">", 1)], [[("a", "==", 2)], [("b", "==", "z")]], numparq.col("a") > 1):
        assert pd.read_parquet(data, "numparq", filters=filters)["a"].tolist() == [2, 3]


def test_numparqs_own_arguments(registered, tmp_path):
    FRAME.to_parquet(tmp_path / "file", engine="numparq", row_group_size=1, key_value_metadata={"who": "me"})
    with numparq.ParquetFile(tmp_path / "file") as file:
        assert file.num_row_groups == 3
        assert file.footer.key_value_metadata["who"] == b"me"
    read = pd.read_parquet(tmp_path / "file", engine="numparq", row_groups=[2], include=["row_number"])
    assert read["row_number"].tolist() == [2]
    with pytest.raises(TypeError, match="no_such_argument"):
        pd.read_parquet(tmp_path / "file", engine="numparq", no_such_argument=1)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_dtype_backend(registered, backend):
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    data = FRAME.to_parquet(engine="numparq")
    read = pd.read_parquet(data, engine="numparq", dtype_backend=backend)
    tm.assert_frame_equal(read, numparq.read_parquet(data, dtype_backend=backend))
    assert str(read["a"].dtype) == {"numpy_nullable": "Int64", "pyarrow": "int64[pyarrow]"}[backend]
    with pytest.raises(ValueError, match="dtype_backend numpy is invalid"):
        pd.read_parquet(data, engine="numparq", dtype_backend="numpy")


def test_attrs(registered):
    frame = FRAME.copy()
    frame.attrs = {"unit": "m"}
    assert pd.read_parquet(frame.to_parquet(engine="numparq"), engine="numparq").attrs == {"unit": "m"}


def test_what_is_no_frame(registered):
    with pytest.raises(ValueError, match="only supports IO with DataFrames"):
        parquet.to_parquet(FRAME["a"], engine="numparq")


def test_a_missing_folder_is_named(registered, tmp_path):
    with pytest.raises(OSError, match="non-existent directory"):
        FRAME.to_parquet(tmp_path / "none" / "file", engine="numparq")


def test_file_systems(registered, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    FRAME.to_parquet("memory://engine/a.parquet", engine="numparq", storage_options={"use_listings_cache": False})
    tm.assert_frame_equal(pd.read_parquet("memory://engine/a.parquet", engine="numparq", storage_options={}), FRAME)
    tm.assert_frame_equal(pd.read_parquet("/engine/a.parquet", engine="numparq", filesystem=memory), FRAME)
    with pytest.raises(ValueError, match="storage_options"):
        pd.read_parquet("/engine/a.parquet", engine="numparq", filesystem=memory, storage_options={"of": "no use"})
    FRAME.to_parquet("/engine/b.parquet", engine="numparq", filesystem=memory)
    assert memory.exists("/engine/b.parquet")
    FRAME.to_parquet(tmp_path / "file", engine="numparq")
    for url in (f"file://{tmp_path}/file", f"file://localhost{tmp_path}/file"):
        tm.assert_frame_equal(pd.read_parquet(url, engine="numparq"), FRAME)
    memory.rm("/engine", recursive=True)


def test_http_is_opened_by_pandas(registered, monkeypatch):
    data, asked = FRAME.to_parquet(engine="numparq"), []

    class Handles:
        handle = io.BytesIO(data)

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            asked.append("closed")

    def get_handle(path, mode, **options):
        asked.append((path, mode, options))
        return Handles()

    monkeypatch.setattr(parquet, "get_handle", get_handle)
    read = pd.read_parquet(
        "https://example.org/a", engine="numparq", columns=["a"], storage_options={"User-Agent": "x"}
    )
    tm.assert_frame_equal(read, FRAME[["a"]])
    options = {"is_text": False, "storage_options": {"User-Agent": "x"}}
    assert asked == [("https://example.org/a", "rb", options), "closed"]


def test_file_systems_of_pyarrow(registered, tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    local = fs.LocalFileSystem()
    FRAME.to_parquet(str(tmp_path / "file"), engine="numparq", filesystem=local)
    tm.assert_frame_equal(pd.read_parquet(str(tmp_path / "file"), engine="numparq", filesystem=local), FRAME)
    with pytest.raises(NotImplementedError, match="storage_options not supported with a pyarrow FileSystem"):
        pd.read_parquet(str(tmp_path / "file"), engine="numparq", filesystem=local, storage_options={"a": 1})


def test_no_file_system(registered, tmp_path):
    with pytest.raises(ValueError, match="filesystem must be a pyarrow or fsspec FileSystem, not a str"):
        FRAME.to_parquet(tmp_path / "file", engine="numparq", filesystem="s3")
    with pytest.raises(ValueError, match="storage_options are for URLs"):
        FRAME.to_parquet(tmp_path / "file", engine="numparq", storage_options={"a": 1})


# --- arguments of pyarrow's -------------------------------------------------------------------------------------------


def test_arguments_of_pyarrow_that_mean_something(registered):
    frame = pd.DataFrame({"a": ["x", "y", "x"]})
    data = frame.to_parquet(engine="numparq", use_threads=False, version="2.6", data_page_size=None, flavor=None)
    for options in ({"read_dictionary": ["a"]}, {"to_pandas_kwargs": {"categories": ["a"]}}):
        assert pd.read_parquet(data, engine="numparq", **options)["a"].dtype == "category"
    needless = {"use_threads": False, "memory_map": True, "pre_buffer": False, "coerce_int96_timestamp_unit": None}
    needless["to_pandas_kwargs"] = {"self_destruct": True, "use_threads": True, "types_mapper": None}
    tm.assert_frame_equal(pd.read_parquet(data, engine="numparq", **needless), frame)


def test_checksums(registered):
    data = bytearray(
        pd.DataFrame({"a": np.arange(1000)}).to_parquet(engine="numparq", compression=None, column_encoding="PLAIN")
    )
    data[2000] ^= 1
    with pytest.raises(numparq.CorruptPageError):
        pd.read_parquet(bytes(data), engine="numparq")
    pd.read_parquet(bytes(data), engine="numparq", page_checksum_verification=False)


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"coerce_timestamps": "ms"}, r"astype\(\"datetime64\[ms\]\"\)"),
        ({"flavor": "spark"}, "Spark reads"),
        ({"version": "1.0"}, "schema="),
        ({"use_deprecated_int96_timestamps": True}, "INT96"),
        ({"use_compliant_nested_type": False}, '"element"'),
        ({"store_decimal_as_integer": True}, "Node"),
        ({"basename_template": "part-{i}.parquet"}, "nobody else"),
        ({"partitioning_flavor": "filename"}, "key=value"),
    ],
)
def test_writing_refuses_what_it_cannot_do(registered, options, instead):
    with pytest.raises(UnsupportedError, match=instead) as caught:
        FRAME.to_parquet(engine="numparq", **options)
    assert f"{next(iter(options))}={next(iter(options.values()))!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"coerce_int96_timestamp_unit": "ms"}, "astype"),
        ({"to_pandas_kwargs": {"date_as_object": False}}, "astype"),
        ({"to_pandas_kwargs": {"types_mapper": {}.get}}, "dtype_backend"),
        ({"to_pandas_kwargs": {"strings_to_categorical": True}}, "categories="),
        ({"to_pandas_kwargs": {"integer_object_nulls": 1}}, "numpy_nullable"),
    ],
)
def test_reading_refuses_what_it_cannot_do(registered, options, instead):
    with pytest.raises(UnsupportedError, match=instead):
        pd.read_parquet(FRAME.to_parquet(engine="numparq"), engine="numparq", **options)


def test_unknown_arguments_of_to_pandas(registered):
    with pytest.raises(TypeError, match=r"knows no to_pandas_kwargs=\{'x'"):
        pd.read_parquet(FRAME.to_parquet(engine="numparq"), engine="numparq", to_pandas_kwargs={"x": 1})


# --- maps as dicts ----------------------------------------------------------------------------------------------------


def test_maps_as_dicts(registered, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    counts = pa.map_(pa.string(), pa.int64())
    table = pa.table(
        {
            "m": pa.array([[("a", 1), ("b", 2)], None, []], counts),
            "l": pa.array([[[("a", 1)], None], [], None], pa.list_(counts)),
            "s": pa.array(
                [{"x": [("a", 1)], "y": 1}, None, {"x": None, "y": 2}], pa.struct([("x", counts), ("y", pa.int64())])
            ),
            "n": pa.array([[("k", [("a", 1)])], None, None], pa.map_(pa.string(), counts)),
            "p": pa.array([[1], [2], None], pa.list_(pa.int64())),
            "f": [1, 2, 3],
        }
    )
    pq.write_table(table, tmp_path / "file")
    read = [
        pd.read_parquet(tmp_path / "file", engine=engine, to_pandas_kwargs={"maps_as_pydicts": "strict"})
        for engine in ("numparq", "pyarrow")
    ]
    tm.assert_frame_equal(*read)
    assert read[0]["n"][0] == {"k": {"a": 1}}
    assert read[0]["l"][0].tolist() == [{"a": 1}, None]


def test_maps_with_a_key_twice(registered):
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"m": [[("a", 1), ("a", 2)]]})
    data = frame.to_parquet(engine="numparq", schema={"m": pa.map_(pa.string(), pa.int64())})
    lossy = pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "lossy"})
    assert lossy["m"][0] == {"a": 2}
    with pytest.raises(SchemaError, match=r"twice.*'m'"):
        pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "strict"})
    with pytest.raises(ValueError, match="maps_as_pydicts is None"):
        pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "yes"})


# --- options of pandas ------------------------------------------------------------------------------------------------

TEXTS = pd.DataFrame(
    {
        "str": ["x", None],
        "string": pd.array(["x", None], "string"),
        "cat": pd.Categorical(["x", None], ordered=True),
    },
    index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"]),
)


@pytest.mark.parametrize("storage", ["auto", "python", "pyarrow"])
@pytest.mark.parametrize("backend", [None, "numpy_nullable"])
def test_the_storage_of_strings_is_that_of_the_option(registered, tmp_path, storage, backend):
    pytest.importorskip("pyarrow")
    options = {"dtype_backend": backend} if backend else {}
    for engine in ("numparq", "pyarrow"):
        TEXTS.to_parquet(tmp_path / engine, engine=engine)
    with pd.option_context("mode.string_storage", storage):
        expected = pd.read_parquet(tmp_path / "pyarrow", engine="pyarrow", **options)
        for writer in ("numparq", "pyarrow"):
            read = pd.read_parquet(tmp_path / writer, engine="numparq", **options)
            assert read["str"].dtype.storage == expected["str"].dtype.storage
            assert read["string"].dtype.storage == expected["string"].dtype.storage
            assert read.index.levels[0].dtype.storage == ("pyarrow" if storage == "auto" else storage)
            assert read["cat"].cat.categories.dtype.storage == ("pyarrow" if storage == "auto" else storage)


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning")
@pytest.mark.parametrize("backend", [None, "numpy_nullable"])
def test_strings_are_objects_where_inference_is_off(registered, tmp_path, backend):
    pytest.importorskip("pyarrow")
    options = {"dtype_backend": backend} if backend else {}
    TEXTS.to_parquet(tmp_path / "file", engine="pyarrow")
    with pd.option_context("future.infer_string", False):
        expected = pd.read_parquet(tmp_path / "file", engine="pyarrow", **options)
        read = pd.read_parquet(tmp_path / "file", engine="numparq", **options)
        tm.assert_frame_equal(read, expected)
        assert (read["str"].dtype == object) == (backend is None)


# --- df.numparq -------------------------------------------------------------------------------------------------------


def test_accessor_writes(registered, tmp_path):
    assert FRAME.numparq.to_parquet(tmp_path / "file", compression="zstd", index=False) is None
    assert numparq.read_parquet(tmp_path / "file").index.tolist() == [0, 1, 2]
    data = FRAME.numparq.to_bytes(row_group_size=2)
    assert numparq.ParquetFile(data).num_row_groups == 2
    assert FRAME.numparq.to_parquet() == FRAME.numparq.to_bytes()


def test_accessor_schema_is_what_is_written(registered):
    frame = FRAME.assign(d=[Decimal("1.25"), None, Decimal("100")], l=[[1], [], None])
    with numparq.ParquetFile(frame.numparq.to_bytes()) as file:
        assert str(frame.numparq.schema) == str(file.schema)
    assert frame.numparq.schema.columns == ["a", "b", "c", "d", "l", "i"]
    assert "decimal" in str(frame.numparq.schema).lower()
    with pytest.raises(SchemaError):
        _ = pd.DataFrame({"a": [1, "x"]}).numparq.schema


def test_accessor_lost(registered):
    frame = pd.DataFrame({"a": np.arange(2000)})
    data = bytearray(frame.numparq.to_bytes(row_group_size=1000, compression=None, column_encoding="PLAIN"))
    assert pd.read_parquet(bytes(data), engine="numparq").numparq.lost == []
    data[2000] ^= 1
    read = pd.read_parquet(bytes(data), engine="numparq", on_error="skip")
    (lost,) = read.numparq.lost
    assert lost[1] == 0
    assert lost[2] == "a"
    assert len(read) == 1000


# --- many files -------------------------------------------------------------------------------------------------------

SALES = pd.DataFrame(
    {"year": [2023, 2024, 2023, 2024], "town": ["a", "a", "c", "b"], "sold": [1, 2, 3, 4], "note": list("wxyz")}
)


def test_each_reads_the_partitions_of_the_other(registered, tmp_path):
    pytest.importorskip("pyarrow")
    for writer in ("numparq", "pyarrow"):
        SALES.to_parquet(tmp_path / writer, engine=writer, partition_cols=["year", "town"])
        for options in ({}, {"filters": [("year", "==", 2024)]}, {"columns": ["town", "sold"]}):
            frames = [pd.read_parquet(tmp_path / writer, engine=reader, **options) for reader in ("numparq", "pyarrow")]
            tm.assert_frame_equal(*frames)


def test_datasets_of_the_other_arguments(registered, tmp_path):
    SALES.to_parquet(tmp_path / "new" / "folder", engine="numparq", partition_cols=[], max_rows_per_file=3)
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 2
    tm.assert_frame_equal(pd.read_parquet(tmp_path / "new" / "folder", engine="numparq"), SALES)
    with pytest.raises(FileExistsError, match="existing_data_behavior"):
        SALES.to_parquet(tmp_path / "new" / "folder", engine="numparq", partition_cols=[])
    existing = {"existing_data_behavior": "overwrite_or_ignore", "max_partitions": 9, "basename_template": None}
    SALES.to_parquet(tmp_path / "new" / "folder", engine="numparq", partition_cols=[], **existing)
    assert len(pd.read_parquet(f"{tmp_path}/new/*", engine="numparq")) == 8


def test_partitions_of_nowhere(registered):
    with pytest.raises((TypeError, ValueError)):
        SALES.to_parquet(engine="numparq", partition_cols=["year"])


def test_datasets_on_a_file_system(registered):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    SALES.to_parquet("memory://engine/sales", engine="numparq", partition_cols=["year"])
    read = pd.read_parquet("memory://engine/sales", engine="numparq", filters=[("year", "=", 2023)], columns=["sold"])
    assert read["sold"].tolist() == [1, 3]
    read = pd.read_parquet("/engine/sales", engine="numparq", filesystem=memory, partitioning=None)
    assert read.columns.tolist() == ["town", "sold", "note"]
    memory.rm("/engine", recursive=True)


def test_lists_of_files(registered, tmp_path):
    for name in "ab":
        SALES.to_parquet(tmp_path / name, engine="numparq")
    read = pd.read_parquet([tmp_path / "a", tmp_path / "b"], engine="numparq")
    tm.assert_frame_equal(read, pd.concat([SALES, SALES], ignore_index=True))


def test_maps_as_dicts_of_many_files(registered, tmp_path):
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"k": [1, 2], "m": [[("a", 1)], [("b", 2)]]})
    frame.to_parquet(
        tmp_path / "d", engine="numparq", partition_cols=["k"], schema={"m": pa.map_(pa.string(), pa.int64())}
    )
    read = pd.read_parquet(tmp_path / "d", engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "strict"})
    assert read["m"].tolist() == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("storage", ["auto", "python"])
def test_partition_columns_have_the_storage_of_the_option(registered, tmp_path, storage):
    pytest.importorskip("pyarrow")
    SALES.to_parquet(tmp_path / "d", engine="pyarrow", partition_cols=["note"])
    with pd.option_context("mode.string_storage", storage):
        frames = [pd.read_parquet(tmp_path / "d", engine=engine) for engine in ("numparq", "pyarrow")]
        tm.assert_frame_equal(*frames)
        assert frames[0]["note"].cat.categories.dtype == frames[1]["note"].cat.categories.dtype
