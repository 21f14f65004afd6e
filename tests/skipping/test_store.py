"""Stores of numparq's own: build, refresh, compact, drop, and files that change."""

from __future__ import annotations

import json
import math
import os
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
import numparq.dataset
from numparq import InvalidFileError, SchemaError, UnsupportedError, col
from numparq.dataset.write.shared_job import SharedJob
from numparq.format.key_values.spark import ROW_METADATA
from numparq.skipping import BloomFilter, MinMax, Store, ValueList
from numparq.skipping.index_files import FileListing
from support.io.killed_process import run_killed_at_step
from support.io.object_store import ObjectStore
from support.random_stores import recent_files
from support.store_parts import bounds, lists, write_part

x = col("x")


@pytest.fixture(autouse=True)
def at_once():
    with recent_files():
        yield


def write(folder: Path, name: str, **columns) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    numparq.to_parquet(pd.DataFrame(columns), path)
    return path


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    for number in range(5):
        write(folder, f"{number}.parquet", x=[number * 10, number * 10 + 9], s=[f"s{number}", "all"])
    return folder


def names(paths) -> list[str]:
    return [path.rpartition("/")[2].partition(".")[0] for path in paths]


def kept(store: Store, filters, dataset=None) -> list[str]:
    found = store.select(filters, dataset)
    return names([*found.kept, *found.unknown])


def test_build_select_and_drop(data, tmp_path):
    indexes = [MinMax("x"), ValueList("s"), BloomFilter("x")]
    store = Store.build(data, base=tmp_path / "stores", indexes=indexes)
    assert store.last_change.added == 5
    assert kept(store, x == 19) == ["1"]
    assert kept(store, "s = 's3'") == ["3"]
    assert kept(store, "s = 'all' and x < 15") == ["0", "1"]
    assert Store.find(tmp_path / "stores", data).folder == store.folder
    with pytest.raises(FileExistsError, match=r"refresh\(\) or drop\(\)"):
        Store.build(data, base=tmp_path / "stores")
    store.drop()
    assert not os.path.exists(store.folder)


def test_columns_and_json_are_xskippers(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x"), ValueList("s"), BloomFilter("s", fpp=0.02, ndv=50)])
    (part,) = store.parts()
    assert part.file.schema.columns == ["obj_name", "x_minmax_1", "s_valuelist_1", "s_bloomfilter_1"]
    schema = json.loads(part.file.footer.key_value_metadata.text(ROW_METADATA))
    assert schema["fields"][0]["metadata"] == {"tableIdentifier": str(data), "version": 4}
    assert [field["type"] for field in schema["fields"][1:3]] == [
        {
            "type": "struct",
            "fields": [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("min", "max")],
        },
        {"type": "array", "elementType": "string", "containsNull": True},
    ]
    assert schema["fields"][3]["metadata"]["index"]["params"] == {
        "io.xskipper.index.bloom.fpp": "0.02",
        "io.xskipper.index.bloom.ndv": "50",
    }
    frame = numparq.read_parquet(store.folder)
    assert frame["x_minmax_1"].tolist() == [{"min": n * 10, "max": n * 10 + 9} for n in range(5)]
    assert frame["obj_name"].tolist() == sorted(frame["obj_name"])
    assert frame["obj_name"][0] == f"{data}/0.parquet#{os.stat(data / '0.parquet').st_mtime_ns // 10**6}"


def test_default_indexes(tmp_path):
    write(tmp_path / "d", "a.parquet", x=[1], s=["a"], l=[[1]], b=[b"a"])
    store = Store.build(tmp_path / "d", base=tmp_path)
    assert [str(index) for index in store.indexes] == ["minmax on x", "minmax on s"]


def test_new_changed_and_gone_files(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    write(data, "1.parquet", x=[100], s=["a"])
    write(data, "5.parquet", x=[200], s=["a"])
    os.remove(data / "0.parquet")
    assert kept(store, x == 100, data) == ["1", "5"], "not known as they are"
    assert numparq.read_parquet(data, filters=x == 100, skipping=store)["s"].tolist() == ["a"]
    change = store.refresh()
    assert (change.added, change.removed) == (2, 2)
    assert kept(store, x == 100, data) == ["1"]
    assert store.refresh() == type(change)(), "nothing to do"


def test_few_new_files_are_appended(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    before = os.listdir(store.folder)
    write(data, "5.parquet", x=[200], s=["a"])
    assert store.refresh().added == 1
    assert set(before) < set(os.listdir(store.folder))
    for number in range(6, 16):
        write(data, f"{number}.parquet", x=[number * 100], s=["a"])
        store.refresh()
        assert len(store.parts()) <= 8
    assert kept(store, x == 900) == ["9"]
    assert store.compact().added == 0
    assert len(store.parts()) == 1
    assert kept(store, x == 900) == ["9"]


def test_same_size_and_times(data, tmp_path):
    """A file is another one after a later change, although size and time of modification are restored."""
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    path = data / "1.parquet"
    status = os.stat(path)
    write(data, "1.parquet", x=[55, 56], s=["s1", "all"])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(path).st_size == status.st_size
    assert kept(store, x == 55, data) == ["1"]
    assert len(numparq.read_parquet(data, filters=x == 55, skipping=store)) == 1
    store.refresh()
    assert kept(store, x == 55, data) == ["1"]
    assert kept(store, x == 19, data) == []


def test_a_file_that_changes_while_it_is_read_has_no_row(data, tmp_path, monkeypatch):
    build = FileListing.wait

    def wait_and_change(listing):
        build(listing)
        write(data, "1.parquet", x=[1000], s=["a"])

    monkeypatch.setattr(FileListing, "wait", wait_and_change)
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    assert [(name.rpartition("/")[2], reason) for name, reason in store.last_change.failures] == [
        ("1.parquet", "it changed while it was read")
    ]
    assert kept(store, x == 1000, data) == ["1"]


def test_files_that_cannot_be_indexed_are_read(data, tmp_path):
    (data / "5.parquet").write_bytes(b"PAR1 no file PAR1")
    write(data, "6.parquet", x=["text"], s=["a"])
    write(data, "7.parquet", s=["a"])
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    assert sorted(names(name for name, _ in store.last_change.failures)) == ["5", "6"]
    assert kept(store, x == 19, data) == ["1", "5", "6"], "7 has no x, hence only nulls"


def test_two_refreshes(data, tmp_path, monkeypatch):
    """One that replaces parts which another has replaced tries again."""
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    for number in range(3):
        write(data, f"{number}.parquet", x=[1000], s=["a"])
    begin, calls = SharedJob.begin.__func__, []

    def begin_after_another(cls, *arguments, **options):
        if not calls:
            calls.append(1)
            Store(store.folder).compact()
        return begin(cls, *arguments, **options)

    monkeypatch.setattr(SharedJob, "begin", classmethod(begin_after_another))
    change = store.refresh()
    assert calls
    assert (change.added, change.removed) == (0, 0)
    assert kept(store, x == 1000, data) == ["0", "1", "2"]


def test_a_failed_refresh_changes_nothing(data, tmp_path, monkeypatch):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    before = sorted(os.listdir(store.folder))
    write(data, "9.parquet", x=[1000], s=["a"])

    def fail(job, messages):
        raise OSError("no space")

    monkeypatch.setattr(SharedJob, "commit", fail)
    for change in (store.refresh, store.compact):
        with pytest.raises(OSError, match="no space"):
            change()
        assert sorted(os.listdir(store.folder)) == before


def test_upgrade_of_earlier_versions(data, tmp_path):
    """Cells of versions 1 to 3 are converted; a file is not read again if its row is current."""
    ids = [f"{data}/{n}.parquet#{os.stat(data / f'{n}.parquet').st_mtime_ns // 10**6}" for n in range(5)]
    cells = {
        "x_minmax": bounds(pa.int64(), [(n * 10, n * 10 + 9) for n in range(5)]),
        "s_valuelist": lists(pa.string(), [["only here"]] * 5),
    }
    indexes = {"x_minmax": ("minmax", "x"), "s_valuelist": ("valuelist", "s")}
    write_part(tmp_path / "old", indexes, cells, ids, version=1)
    store = Store(tmp_path / "old")
    with pytest.raises(ValueError, match="no local directory; pass the dataset's path"):
        store.refresh()
    change = store.refresh(data)
    assert (change.added, change.removed) == (0, 0)
    (part,) = store.parts()
    assert part.schema.version == 4
    assert part.schema.identifier == str(data)
    assert part.file.schema.columns == ["obj_name", "x_minmax_1", "s_valuelist_1"]
    assert kept(store, "s = 'only here'") == ["0", "1", "2", "3", "4"]


def test_version_0_is_indexed_again(data, tmp_path):
    cells = {"x:_minmax": pa.array([b"class"] * 5)}
    write_part(tmp_path / "old", {"x:_minmax": ("minmax", "x")}, cells, version=0)
    store = Store(tmp_path / "old")
    assert store.refresh(data).added == 5
    assert kept(store, x == 19) == ["1"]


def test_bounds_from_footers_are_indexed_again(tmp_path):
    """Xskipper's bounds of Parquet files may hide NaNs."""
    (tmp_path / "d").mkdir()
    path = tmp_path / "d/a.parquet"
    path.write_bytes(_table(x=pa.array([1.0, math.nan])))
    name = f"{path}#{os.stat(path).st_mtime_ns // 10**6}"
    write_part(tmp_path / "old", {"c": ("minmax", "x")}, {"c": bounds(pa.float64(), [(1.0, 1.0)])}, [name])
    store = Store(tmp_path / "old")
    assert kept(store, x.is_nan()) == ["a"]
    store.refresh(tmp_path / "d")
    assert kept(store, x.is_nan()) == ["a"]
    assert kept(store, x < 1) == []


def test_damaged_parts_are_replaced(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    write(data, "5.parquet", x=[200], s=["a"])
    store.refresh()
    paths = sorted(Path(store.folder).glob("*.parquet"))
    paths[0].write_bytes(b"PAR1 damaged PAR1")
    assert store.refresh().added == 5
    assert not paths[0].exists()
    assert kept(store, x == 19) == ["1"]


def test_partitions(tmp_path):
    for year in (2020, 2021):
        write(tmp_path / "d", f"year={year}/part-{year}.parquet", x=[year])
    store = Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("x")])
    found = store.select((col("year") == 2020) & (x == 2021))
    assert (names(found.outside), names(found.skipped)) == (["part-2021"], ["part-2020"])
    either = store.select((col("year") == 2020) | (x == 2021))
    assert names(either.kept) == ["part-2020", "part-2021"]
    dataset = numparq.Dataset(tmp_path / "d", skipping=store)
    assert len(dataset.read(filters=(col("year") == 2020) | (x == 2021))) == 2
    assert len(dataset.read(filters=(col("year") == 2021) & (x == 2020))) == 0
    # A partition key hides a column, and an index of that name.
    write(tmp_path / "h", "x=5/a.parquet", x=[1], y=[1])
    hidden = Store.build(tmp_path / "h", base=tmp_path, indexes=[MinMax("x")])
    assert len(numparq.read_parquet(tmp_path / "h/x=5", filters=x == 1, skipping=hidden)) == 1


def test_nested_columns_and_names(tmp_path):
    write(tmp_path / "d", "a.parquet", S=[{"Inner": 1}, {"Inner": 5}], **{"X#y": [1, 2]})
    store = Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("S.Inner"), MinMax("x#Y")])
    assert store.parts()[0].file.schema.columns[1:] == ["s$#$inner_minmax_9", "x##y_minmax_4"]
    assert kept(store, col("S.Inner") == 7) == []
    assert kept(store, col(("S", "Inner")) == 5) == ["a"]
    assert kept(store, col("X#y") == 5) == []


def test_indexes_that_cannot_be_built(tmp_path):
    write(tmp_path / "d", "a.parquet", x=[1.5])
    write(tmp_path / "l", "a.parquet", l=[[1]])
    write(tmp_path / "d", "b.parquet", x=[2.5], X=[2])
    with pytest.raises(ValueError, match="two indexes minmax"):
        Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("x"), MinMax("X")])
    with pytest.raises(SchemaError, match="begin alike"):
        Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("a"), MinMax("a_minmax_1x")])
    with pytest.raises(ValueError, match="either base or folder"):
        Store.build(tmp_path / "d")
    with pytest.raises(ValueError, match="inside of the dataset"):
        Store.build(tmp_path / "d", folder=tmp_path / "d/store")
    with pytest.raises(ValueError, match="of a directory"):
        Store.build(tmp_path / "d/a.parquet", base=tmp_path)
    failures = dict(Store.build(tmp_path / "d", folder=tmp_path / "f", indexes=[MinMax("x")]).last_change.failures)
    assert list(map(os.path.basename, failures)) == ["b.parquet"], "two columns that differ in case"
    with pytest.raises(UnsupportedError, match="Bloom filters hold integers and strings, not double"):
        Store.build(tmp_path / "d", folder=tmp_path / "g", indexes=[BloomFilter("x")])
    with pytest.raises(UnsupportedError, match=r"no file can be indexed; the first: .* inside lists"):
        Store.build(tmp_path / "l", folder=tmp_path / "h", indexes=[MinMax("l.list.element")])


def test_an_index_of_others_is_not_refreshed(data, tmp_path):
    cells = {"c": lists(pa.string(), [["a"]])}
    write_part(tmp_path / "old", {"c": ("regexvaluelist", "x")}, cells)
    with pytest.raises(InvalidFileError, match="regexvaluelist on x cannot be built here"):
        Store(tmp_path / "old").refresh(data)


def test_values_of_many_types(tmp_path):
    """Bounds of every type that a store can have are those that a query compares with."""
    values = {
        "i8": pa.array([1, 5], pa.int8()),
        "u8": pa.array([1, 255], pa.uint8()),
        "u32": pa.array([1, 2**32 - 1], pa.uint32()),
        "u64": pa.array([1, 2**64 - 1], pa.uint64()),
        "f2": pa.array(np.array([1, 1.5], np.float16)),
        "f4": pa.array([1, 0.1], pa.float32()),
        "b": pa.array([True, True]),
        "d": pa.array([1, 2], pa.date32()),
        "ms": pa.array([1, 2], pa.timestamp("ms")),
        "ns": pa.array([1001, 1999], pa.timestamp("ns")),
        "utc": pa.array([1, 2], pa.timestamp("us", "UTC")),
        "dec": pa.array([Decimal(1), Decimal(2)], pa.decimal128(25, 2)),
        "small": pa.array([Decimal(1), Decimal(2)], pa.decimal128(5, 2)),
    }
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table(values), tmp_path / "d/a.parquet")
    pq.write_table(pa.table(values).slice(0, 0), tmp_path / "d/b.parquet")
    store = Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax(name) for name in values])
    assert store.last_change.failures == []
    for name, array in values.items():
        for value in array.to_pylist():
            literal = np.float16(value) if name == "f2" else value
            assert kept(store, col(name) == literal) == ["a"], (name, value)
        top = array.to_pylist()[-1]
        assert kept(store, col(name) > (max(array.to_pylist()) if name != "b" else top)) == [] or name in (
            "ns",
            "f4",
            "f2",
        )


def test_strings_are_bounded_in_javas_order(tmp_path):
    write(tmp_path / "d", "a.parquet", s=["\U00010000", "\ue000", "b"])
    store = Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("s")])
    assert numparq.read_parquet(store.folder)["s_minmax_1"][0] == {"min": "b", "max": "\ue000"}
    for value in ("\U00010000", "\ue000", "b"):
        assert kept(store, col("s") == value) == ["a"]


def test_nan_is_the_greatest_value(tmp_path):
    (tmp_path / "d").mkdir()
    for name, values in (("a", [1.0, math.nan]), ("b", [1.0, 2.0]), ("c", [math.nan])):
        (tmp_path / f"d/{name}.parquet").write_bytes(_table(x=pa.array(values)))
    store = Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("x")])
    cells = numparq.read_parquet(store.folder)["x_minmax_1"].tolist()
    assert repr(cells) == "[{'min': 1.0, 'max': nan}, {'min': 1.0, 'max': 2.0}, {'min': nan, 'max': nan}]"
    assert kept(store, x.is_nan()) == ["a", "c"]


def test_dtypes_and_columns_are_those_of_all_files(tmp_path):
    """Nulls, columns and types of skipped files count as if they had been read."""
    folder = tmp_path / "d"
    write(folder, "a.parquet", x=[1, 2], n=[1, 2])
    (folder / "b.parquet").write_bytes(_table(x=pa.array([10]), n=pa.array([None], pa.int64()), z=pa.array(["z"])))
    (folder / "c.parquet").write_bytes(_table(n=pa.array([1.5]), x=pa.array([20], pa.int32())))
    store = Store.build(folder, base=tmp_path, indexes=[MinMax("n")])
    dataset = numparq.Dataset(folder)
    for filters in (col("n") == 1, col("n") > 100, col("n").is_not_null()):
        want = dataset.read(filters=filters)
        got = numparq.read_parquet(folder, filters=filters, skipping=store.folder)
        pd.testing.assert_frame_equal(got, want)
    assert list(want.columns) == ["x", "n", "z"]


def _table(**columns) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def test_categories_are_those_of_all_files(tmp_path):
    for number, letter in enumerate("ab"):
        frame = pd.DataFrame({"x": [number], "c": pd.Categorical([letter])})
        (tmp_path / "d").mkdir(exist_ok=True)
        numparq.to_parquet(frame, tmp_path / f"d/{letter}.parquet")
    store = Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("x")])
    for columns in (None, ["x"]):
        want = numparq.read_parquet(tmp_path / "d", columns, filters=x == 1)
        pd.testing.assert_frame_equal(
            numparq.read_parquet(tmp_path / "d", columns, filters=x == 1, skipping=store), want
        )


def test_runtime_filters(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    keys = numparq.RuntimeFilter("x", [19])
    got = numparq.read_parquet(data, runtime_filters=[keys], skipping=store)
    assert got["x"].tolist() == [19]
    dataset = numparq.Dataset(data, skipping=store)
    assert len(dataset.plan(filters=x == 19).files) == 1
    assert "skipping (minmax on x: 4 files)" in dataset.plan(filters=x == 19).explain()


def test_columns_matched_otherwise(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    plan = numparq.Dataset(data, skipping=store, resolve="position").plan(filters=x == 19)
    assert not any(cut.by.startswith("skipping") for cut in plan.cuts)


def test_wrong_arguments(data):
    with pytest.raises(TypeError, match=r"skipping must be a numparq.skipping.Store, not int"):
        numparq.read_parquet(data, filters=x == 1, skipping=5)
    with pytest.raises(TypeError, match=r"skipping must be a numparq.skipping.Store, not str"):
        numparq.Dataset(data, skipping="store")
    with pytest.raises(ValueError, match="fpp must be between 0 and 1"):
        BloomFilter("x", fpp=1)
    with pytest.raises(ValueError, match="ndv must be a positive integer"):
        BloomFilter("x", ndv=0)


def test_moved_dataset_is_unknown(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    os.rename(data, tmp_path / "moved")
    found = store.select(x == 19, tmp_path / "moved")
    assert len(found.unknown) == 5
    with pytest.raises(FileNotFoundError):
        store.refresh()
    assert store.refresh(tmp_path / "moved").added == 5


def test_no_rows_and_no_files(tmp_path):
    pq_folder = tmp_path / "d"
    pq_folder.mkdir()
    (pq_folder / "a.parquet").write_bytes(_table(x=pa.array([], pa.int64())))
    store = Store.build(pq_folder, base=tmp_path, indexes=[MinMax("x"), ValueList("x"), BloomFilter("x")])
    assert kept(store, x == 1) == []
    want = numparq.read_parquet(pq_folder / "*.parquet", filters=x == 1)
    pd.testing.assert_frame_equal(numparq.read_parquet(pq_folder, filters=x == 1, skipping=store), want)


def test_legacy_calendar_has_no_rows(tmp_path):
    keys = {"org.apache.spark.version": "2.4.0"}
    table = pa.table({"x": pa.array([1], pa.date32())}).replace_schema_metadata(keys)
    (tmp_path / "d").mkdir()
    pq.write_table(table, tmp_path / "d/a.parquet")
    with pytest.raises(UnsupportedError, match="legacy calendar"):
        Store.build(tmp_path / "d", base=tmp_path, indexes=[MinMax("x")])


class TimedStore(ObjectStore):
    """Counts requests, and tells when files were modified."""

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        found = super().find(path, maxdepth, withdirs, True, **options)
        timed = {name: {**each, "mtime": each.get("created")} for name, each in found.items()}
        return timed if detail else list(timed)


def test_requests_on_an_object_store():
    """A look-up reads the parts and the file that matches, not the footers of all files."""
    objects = TimedStore()
    for number in range(50):
        frame = pd.DataFrame({"x": np.arange(100) + 100 * number, "user": [f"u{number}-{n}" for n in range(100)]})
        objects.pipe(f"/data/{number:02}.parquet", numparq.to_parquet(frame))
    indexes = [MinMax("x"), BloomFilter("user")]
    store = Store.build("/data", folder="/store", indexes=indexes, filesystem=objects)
    assert store.last_change.failures == []
    assert store.dataset == "/data"
    for filters in (x == 4321, "user = 'u7-5'"):
        objects.reset()
        want = numparq.read_parquet("/data", filters=filters, filesystem=objects)
        without = len(objects.requests), objects.num_bytes
        objects.reset()
        fresh = Store("/store", filesystem=objects)
        got = numparq.read_parquet("/data", filters=filters, filesystem=objects, skipping=fresh)
        pd.testing.assert_frame_equal(got, want)
        assert without[0] >= 50
        assert len(objects.requests) <= 6
        assert objects.num_bytes < without[1] / 3
    objects.pipe("/data/07.parquet", numparq.to_parquet(pd.DataFrame({"x": [4321], "user": ["new"]})))
    got = numparq.read_parquet("/data", filters=x == 4321, filesystem=objects, skipping=store)
    assert len(got) == 2
    assert store.refresh().added == 1
    assert len(store.select(x == 4321, "/data").kept) == 2
    store.drop()
    assert not objects.exists("/store") or not objects.ls("/store")


def test_pickles_open_the_store_again(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    assert kept(pickle.loads(pickle.dumps(store)), x == 19) == ["1"]
    dataset = pickle.loads(pickle.dumps(numparq.Dataset(data, skipping=store)))
    assert len(dataset.plan(filters=x == 19).files) == 1


def test_splits_skip_files(data, tmp_path):
    store = Store.build(data, base=tmp_path, indexes=[MinMax("x")])
    table = numparq.dataset.split_table(str(data), filters=x == 19, pruners=[store])
    assert [len(split.files) for split in table.splits] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["build", "refresh", "compact", "drop"])
def test_killed_at_any_step(tmp_path, change):
    """The store is the one before or the one after, a read is right, and the next refresh completes it."""
    step = 0
    while True:
        folder = tmp_path / str(step)
        for number in range(4):
            write(folder / "data", f"{number}.parquet", x=[number * 10])

        def build(folder=folder):
            return Store.build(folder / "data", folder=folder / "store", indexes=[MinMax("x")], threads=1)

        if change != "build":
            build()
            write(folder / "data", "9.parquet", x=[90])
            write(folder / "data", "1.parquet", x=[91])
        changes = {
            "build": build,
            "refresh": lambda folder=folder: Store(folder / "store").refresh(threads=1),
            "compact": lambda folder=folder: Store(folder / "store").compact(threads=1),
            "drop": lambda folder=folder: Store(folder / "store").drop(),
        }
        was_killed = run_killed_at_step(step, changes[change])
        (folder / "store").mkdir(exist_ok=True)
        store = Store(folder / "store")
        for value in (0, 10, 90, 91):
            want = numparq.read_parquet(folder / "data", filters=x == value)
            got = numparq.read_parquet(folder / "data", filters=x == value, skipping=store)
            pd.testing.assert_frame_equal(got, want)
        assert len(store.select(x == 0).skipped) in (0, 3, 4)
        if store.parts():
            store.refresh(threads=1)
        else:
            build()
        assert kept(store, x == 20, folder / "data") == ["2"]
        if not was_killed:
            break
        step += 1
    assert step > 1


@pytest.mark.parametrize("columns", [{"X": [1], "x": [2]}, {"x.y": [1], "x": [{"y": 2}]}])
def test_ambiguous_names_skip_nothing(tmp_path, columns):
    """Xskipper ignores case, and a name with a dot may be a column or a path: its cells may be of the other one."""
    paths = [write(tmp_path / "d", f"{letter}.parquet", **columns) for letter in "ab"]
    name = next(iter(columns))
    ids = [f"{path}#{os.stat(path).st_mtime_ns // 10**6}" for path in paths]
    write_part(tmp_path / "s", {"c": ("minmax", name.lower())}, {"c": bounds(pa.int64(), [(2, 2)] * 2)}, ids)
    for filters in (col(name) == 1, col(name) == 2):
        want = numparq.read_parquet(tmp_path / "d", filters=filters)
        got = numparq.read_parquet(tmp_path / "d", filters=filters, skipping=tmp_path / "s")
        pd.testing.assert_frame_equal(got, want)
    assert len(want) + len(numparq.read_parquet(tmp_path / "d", filters=col(name) == 1)) == 2
