"""numparq as a pandas engine: arguments, files and filesystems."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pandas.testing as tm
import pytest
from pandas.io import parquet

import numparq
from numparq.errors import SchemaError, UnsupportedError
from support.pandas_engine import FRAME


@pytest.mark.parametrize("kind", [str, Path])
def test_round_trip_of_a_file(registered_engine, tmp_path, kind):
    path = kind(tmp_path / "file.parquet")
    FRAME.to_parquet(path, engine="numparq")
    tm.assert_frame_equal(pd.read_parquet(path, engine="numparq"), FRAME)
    with numparq.ParquetFile(path) as file:
        assert file._file.is_written_by_numparq


def test_files_are_exchanged_with_pyarrow(registered_engine, tmp_path):
    pytest.importorskip("pyarrow")
    for writer, reader in (("numparq", "pyarrow"), ("pyarrow", "numparq")):
        FRAME.to_parquet(tmp_path / writer, engine=writer)
        tm.assert_frame_equal(pd.read_parquet(tmp_path / writer, engine=reader), FRAME)


def test_bytes_and_file_objects(registered_engine, tmp_path):
    data = FRAME.to_parquet(engine="numparq", compression="zstd")
    tm.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="numparq"), FRAME)
    tm.assert_frame_equal(pd.read_parquet(data, engine="numparq"), FRAME)
    with open(tmp_path / "file", "w+b") as file:
        FRAME.to_parquet(file, engine="numparq")
        file.seek(0)
        tm.assert_frame_equal(pd.read_parquet(file, engine="numparq"), FRAME)


def test_columns_filters_and_index(registered_engine):
    data = FRAME.to_parquet(engine="numparq", index=False)
    read = pd.read_parquet(data, "numparq", columns=["c", "a"])
    assert read.columns.tolist() == ["c", "a"]
    assert read.index.tolist() == [0, 1, 2]
    for filters in ([("a", ">", 1)], [[("a", "==", 2)], [("b", "==", "z")]], numparq.col("a") > 1):
        assert pd.read_parquet(data, "numparq", filters=filters)["a"].tolist() == [2, 3]


def test_numparq_arguments_are_passed_through(registered_engine, tmp_path):
    FRAME.to_parquet(tmp_path / "file", engine="numparq", row_group_size=1, key_value_metadata={"who": "me"})
    with numparq.ParquetFile(tmp_path / "file") as file:
        assert file.num_row_groups == 3
        assert file._file.footer.key_value_metadata["who"] == b"me"
    read = pd.read_parquet(tmp_path / "file", engine="numparq", row_groups=[2], include=["row_number"])
    assert read["row_number"].tolist() == [2]
    with pytest.raises(TypeError, match="no_such_argument"):
        pd.read_parquet(tmp_path / "file", engine="numparq", no_such_argument=1)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_dtype_backend(registered_engine, backend):
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    data = FRAME.to_parquet(engine="numparq")
    read = pd.read_parquet(data, engine="numparq", dtype_backend=backend)
    tm.assert_frame_equal(read, numparq.read_parquet(data, dtype_backend=backend))
    assert str(read["a"].dtype) == {"numpy_nullable": "Int64", "pyarrow": "int64[pyarrow]"}[backend]
    with pytest.raises(ValueError, match="dtype_backend numpy is invalid"):
        pd.read_parquet(data, engine="numparq", dtype_backend="numpy")


def test_attrs_round_trip(registered_engine):
    frame = FRAME.copy()
    frame.attrs = {"unit": "m"}
    assert pd.read_parquet(frame.to_parquet(engine="numparq"), engine="numparq").attrs == {"unit": "m"}


def test_series_is_refused(registered_engine):
    with pytest.raises(ValueError, match="only supports IO with DataFrames"):
        parquet.to_parquet(FRAME["a"], engine="numparq")


def test_missing_directory_is_refused(registered_engine, tmp_path):
    with pytest.raises(OSError, match="non-existent directory"):
        FRAME.to_parquet(tmp_path / "none" / "file", engine="numparq")


def test_fsspec_filesystems_and_file_urls(registered_engine, tmp_path):
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


def test_http_is_opened_by_pandas(registered_engine, monkeypatch):
    data, calls = FRAME.to_parquet(engine="numparq"), []

    class Handles:
        handle = io.BytesIO(data)

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            calls.append("closed")

    def get_handle(path, mode, **options):
        calls.append((path, mode, options))
        return Handles()

    monkeypatch.setattr(parquet, "get_handle", get_handle)
    read = pd.read_parquet(
        "https://example.org/a", engine="numparq", columns=["a"], storage_options={"User-Agent": "x"}
    )
    tm.assert_frame_equal(read, FRAME[["a"]])
    options = {"is_text": False, "storage_options": {"User-Agent": "x"}}
    assert calls == [("https://example.org/a", "rb", options), "closed"]


def test_pyarrow_filesystems(registered_engine, tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    local = fs.LocalFileSystem()
    FRAME.to_parquet(str(tmp_path / "file"), engine="numparq", filesystem=local)
    tm.assert_frame_equal(pd.read_parquet(str(tmp_path / "file"), engine="numparq", filesystem=local), FRAME)
    with pytest.raises(NotImplementedError, match="storage_options not supported with a pyarrow FileSystem"):
        pd.read_parquet(str(tmp_path / "file"), engine="numparq", filesystem=local, storage_options={"a": 1})


def test_invalid_filesystem_is_refused(registered_engine, tmp_path):
    with pytest.raises(ValueError, match="filesystem must be a pyarrow or fsspec FileSystem, not a str"):
        FRAME.to_parquet(tmp_path / "file", engine="numparq", filesystem="s3")
    with pytest.raises(ValueError, match="storage_options need a URL"):
        FRAME.to_parquet(tmp_path / "file", engine="numparq", storage_options={"a": 1})


def test_supported_and_ignored_pyarrow_arguments(registered_engine):
    frame = pd.DataFrame({"a": ["x", "y", "x"]})
    data = frame.to_parquet(engine="numparq", use_threads=False, version="2.6", data_page_size=None, flavor=None)
    for options in ({"read_dictionary": ["a"]}, {"to_pandas_kwargs": {"categories": ["a"]}}):
        assert pd.read_parquet(data, engine="numparq", **options)["a"].dtype == "category"
    ignored = {"use_threads": False, "memory_map": True, "pre_buffer": False, "coerce_int96_timestamp_unit": None}
    ignored["to_pandas_kwargs"] = {"self_destruct": True, "use_threads": True, "types_mapper": None}
    tm.assert_frame_equal(pd.read_parquet(data, engine="numparq", **ignored), frame)


def test_page_checksum_verification_argument(registered_engine):
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
        ({"basename_template": "part-{i}.parquet"}, "unique names"),
        ({"partitioning_flavor": "filename"}, "key=value"),
    ],
)
def test_unsupported_pyarrow_write_arguments(registered_engine, options, instead):
    with pytest.raises(UnsupportedError, match=instead) as caught:
        FRAME.to_parquet(engine="numparq", **options)
    assert f"{next(iter(options))}={next(iter(options.values()))!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"coerce_int96_timestamp_unit": "ms"}, "astype"),
        ({"to_pandas_kwargs": {"types_mapper": {}.get}}, "dtype_backend"),
        ({"to_pandas_kwargs": {"strings_to_categorical": True}}, "categories="),
        ({"to_pandas_kwargs": {"integer_object_nulls": 1}}, "numpy_nullable"),
    ],
)
def test_unsupported_pyarrow_read_arguments(registered_engine, options, instead):
    with pytest.raises(UnsupportedError, match=instead):
        pd.read_parquet(FRAME.to_parquet(engine="numparq"), engine="numparq", **options)


@pytest.mark.parametrize(("as_object", "dtype"), [(True, "object"), (False, "datetime64[ms]")])
def test_dates_as_objects(registered_engine, as_object, dtype):
    data = pd.DataFrame({"d": [datetime.date(2020, 2, 29), None]}).to_parquet(engine="numparq")
    found = pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"date_as_object": as_object})
    assert str(found["d"].dtype) == dtype


def test_unknown_to_pandas_kwargs(registered_engine):
    with pytest.raises(TypeError, match=r"does not support to_pandas_kwargs=\{'x'"):
        pd.read_parquet(FRAME.to_parquet(engine="numparq"), engine="numparq", to_pandas_kwargs={"x": 1})


def test_maps_as_dicts(registered_engine, tmp_path):
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


def test_maps_with_duplicate_keys(registered_engine):
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"m": [[("a", 1), ("a", 2)]]})
    data = frame.to_parquet(engine="numparq", schema={"m": pa.map_(pa.string(), pa.int64())})
    lossy = pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "lossy"})
    assert lossy["m"][0] == {"a": 2}
    with pytest.raises(SchemaError, match=r"duplicate key.*'m'"):
        pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "strict"})
    with pytest.raises(ValueError, match="maps_as_pydicts must be None"):
        pd.read_parquet(data, engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "yes"})


TEXTS = pd.DataFrame(
    {
        "str": ["x", None],
        "string": pd.array(["x", None], "string"),
        "cat": pd.Categorical(["x", None], ordered=True),
    },
    index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"]),
)


@pytest.mark.quick_cases(6)  # of all storages: dtypes are cached with the option of the first read
@pytest.mark.parametrize("storage", ["auto", "python", "pyarrow"])
@pytest.mark.parametrize("backend", [None, "numpy_nullable"])
def test_string_storage_follows_the_option(registered_engine, tmp_path, storage, backend):
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
def test_strings_are_objects_without_infer_string(registered_engine, tmp_path, backend):
    pytest.importorskip("pyarrow")
    options = {"dtype_backend": backend} if backend else {}
    TEXTS.to_parquet(tmp_path / "file", engine="pyarrow")
    with pd.option_context("future.infer_string", False):
        expected = pd.read_parquet(tmp_path / "file", engine="pyarrow", **options)
        read = pd.read_parquet(tmp_path / "file", engine="numparq", **options)
        tm.assert_frame_equal(read, expected)
        assert (read["str"].dtype == object) == (backend is None)
