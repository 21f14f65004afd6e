"""A remote file that is replaced during a read, or while it is open, is an error: no frame has rows of two versions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Coalescing, Dataset, InvalidFileError, ParquetFile, col, read_parquet, to_parquet
from numparq.dataset import split_table

fsspec = pytest.importorskip("fsspec")
from support.io.object_store import ObjectStore, SequentialObjectStore  # noqa: E402

ROWS = 60_000
REPLACED = "the file was replaced during the read"
SMALL_REQUESTS = Coalescing(0, 100_000)


def encode(version: int, seed: int = 0) -> bytes:
    """Encode a file of about 1 MB, whose rows all say which version they are of."""
    number = np.arange(ROWS) + version * 10**7 + seed
    df = pd.DataFrame({"version": np.full(ROWS, version), "number": number, "text": np.array(["a", "b"] * (ROWS // 2))})
    return to_parquet(df, compression=None, column_encoding="PLAIN", use_dictionary=False, row_group_size=10_000)


OLD, NEW = encode(1), encode(2)
LONGER = to_parquet(pd.DataFrame({"version": np.full(ROWS * 2, 2), "number": np.arange(ROWS * 2), "text": "c"}))


class VersionedStore(ObjectStore):
    """A store whose file "t.parquet" is replaced after a number of requests; `marks` are what an info says of both."""

    marks = ({"ETag": "old"}, {"ETag": "new"})
    new = NEW

    def __init__(self, replaced_after: float = float("inf"), **options) -> None:
        super().__init__(**options)
        self.replaced_after = replaced_after
        self.pipe("/d/s.parquet", OLD)
        self.pipe("/d/t.parquet", OLD)
        self.reset()

    def is_new(self, path: str) -> bool:
        return path.endswith("t.parquet") and len(self.requests) > self.replaced_after

    def _marked(self, path: str, info: dict) -> dict:
        if info["type"] != "file" or not path.startswith("/d/"):
            return info
        data, marks = (self.new, self.marks[1]) if self.is_new(path) else (OLD, self.marks[0])
        return {"name": info["name"], "type": "file", "size": len(data), **marks}

    def info(self, path, **options):
        return self._marked(path, super().info(path, **options))

    def find(self, path, **options):
        return {name: self._marked(name, info) for name, info in super().find(path, **options).items()}

    def _answer(self, path, start, end):
        return self.new[start:end] if self.is_new(path) else super()._answer(path, start, end)


class SequentialStore(VersionedStore, SequentialObjectStore):
    """One that reads range after range."""


def _batches(table) -> pd.DataFrame:
    return pd.concat(list(table.iter_batches(batch_rows=5000)))


def _splits(store) -> pd.DataFrame:
    table = split_table("/d", split_bytes=400_000, filesystem=store)
    return pd.concat([table.reader.frame(split) for split in table.splits])


def _with_prefix(store, **options):
    return read_parquet("/d/t.parquet", filesystem=store, coalescing=SMALL_REQUESTS, **options)


def _opened(store):
    return ParquetFile("/d/t.parquet", filesystem=store, coalescing=SMALL_REQUESTS)


READS = {
    "read_parquet": _with_prefix,
    "columns": lambda store: _with_prefix(store, columns=["version"]),
    "filters": lambda store: _with_prefix(store, filters=col("text") == "a"),
    "nrows": lambda store: _with_prefix(store, nrows=55_000),
    "row_range": lambda store: _with_prefix(store, row_range=(1000, 58_000)),
    "skip": lambda store: _with_prefix(store, on_error="skip"),
    "pyarrow": lambda store: _with_prefix(store, dtype_backend="pyarrow").astype({"version": "int64"}),
    "file": lambda store: _opened(store).read(),
    "batches": lambda store: _batches(_opened(store)),
    "skipping batches": lambda store: pd.concat(list(_opened(store).iter_batches(batch_rows=5000, on_error="skip"))),
    "to_arrow": lambda store: _opened(store).to_arrow().to_pandas(),
    "dataset": lambda store: read_parquet("/d", filesystem=store, coalescing=SMALL_REQUESTS),
    "list": lambda store: read_parquet(["/d/s.parquet", "/d/t.parquet"], filesystem=store, coalescing=SMALL_REQUESTS),
    "dataset's batches": lambda store: _batches(Dataset("/d", filesystem=store, coalescing=SMALL_REQUESTS)),
    "splits": _splits,
}


def attempt(read, store) -> set[int] | str:
    """Return the versions of the rows that a read returns, or its error's message."""
    try:
        return set(read(store)["version"])
    except Exception as error:  # an Arrow stream has errors of pyarrow
        return str(error)


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("kind", [VersionedStore, SequentialStore])
@pytest.mark.parametrize("read", READS)
def test_no_frame_has_rows_of_two_versions(read, kind):
    store = kind()
    assert READS[read](store)["version"].eq(1).all()
    results = [attempt(READS[read], kind(after)) for after in range(len(store.requests))]
    refused = [result for result in results if isinstance(result, str)]
    assert refused
    # A split that is replaced before it is opened is refused then.
    assert all(REPLACED in message or "divide it again" in message for message in refused)
    assert all(len(result) == 1 for result in results if isinstance(result, set))


@pytest.mark.parametrize(
    "marks",
    [
        ({"ETag": "a"}, {"ETag": "b"}),
        ({"etag": 'W/"a"'}, {"etag": 'W/"b"'}),
        ({"Last-Modified": "Mon, 04 May 2026 03:02:01 GMT"}, {"Last-Modified": "Mon, 04 May 2026 03:02:02 GMT"}),
        ({"mtime": 1.5}, {"mtime": 1.75}),
    ],
)
def test_each_kind_of_version(marks, monkeypatch):
    monkeypatch.setattr(VersionedStore, "marks", marks)
    assert read_parquet("/d/t.parquet", filesystem=VersionedStore())["version"].eq(1).all()
    with pytest.raises(InvalidFileError, match=rf"{REPLACED}.*open it and read again.*/d/t\.parquet"):
        read_parquet("/d/t.parquet", filesystem=VersionedStore(2), coalescing=SMALL_REQUESTS)


@pytest.mark.parametrize("after", range(8))
@pytest.mark.parametrize("new", [LONGER, NEW[:-1000], OLD + b"x", b"", b"x" * len(OLD)])
def test_file_of_another_size_or_no_parquet_file(new, after, monkeypatch):
    monkeypatch.setattr(VersionedStore, "new", new)
    if len(new) != len(OLD):
        monkeypatch.setattr(VersionedStore, "marks", ({}, {}))
    with pytest.raises(InvalidFileError, match=REPLACED):
        _with_prefix(VersionedStore(after))
    with pytest.raises(InvalidFileError, match=REPLACED):
        read_parquet("/d", filesystem=VersionedStore(after + 1), coalescing=SMALL_REQUESTS)


def test_file_replaced_while_it_is_open():
    store = VersionedStore()
    with ParquetFile("/d/t.parquet", filesystem=store) as file, Dataset("/d", filesystem=store) as dataset:
        assert len(file.read(["version"])) == ROWS
        assert len(dataset.read(["version"])) == 2 * ROWS
        store.replaced_after = 0
        for read in (
            lambda: file.read(["number"]),
            lambda: file.count_rows(col("text") == "b"),
            lambda: list(file.iter_batches()),
            lambda: dataset.read(["number"]),
            lambda: dataset.count_rows(col("text") == "b"),
        ):
            with pytest.raises(InvalidFileError, match=REPLACED):
                read()
    assert read_parquet("/d/t.parquet", filesystem=store)["version"].eq(2).all()


def test_no_batch_of_the_new_version_is_seen():
    store = VersionedStore()
    batches = _opened(store).iter_batches(batch_rows=5000, memory_limit=4 << 20)
    assert next(batches)["version"].eq(1).all()
    store.replaced_after = 0
    seen = []
    with pytest.raises(InvalidFileError, match=REPLACED):
        seen.extend(batch["version"].eq(1).all() for batch in batches)
    assert len(seen) < ROWS // 5000 - 1
    assert all(seen)


def test_file_that_is_gone_after_the_read_was_not_replaced():
    class Vanishing(VersionedStore):
        def info(self, path, **options):
            if len(self.requests) > 2:
                raise FileNotFoundError(path)
            return super().info(path, **options)

    assert read_parquet("/d/t.parquet", filesystem=Vanishing())["version"].eq(1).all()


def test_costs():
    store = VersionedStore()
    store.pipe("/small.parquet", to_parquet(pd.DataFrame({"a": [1]})))
    store.reset()
    read_parquet("/small.parquet", filesystem=store)
    assert (len(store.requests), store.infos) == (1, 1), "one request has the bytes of one version"
    with ParquetFile("/d/t.parquet", filesystem=store) as file:
        store.reset()
        for count in (1, 2):
            file.read(["number"])
            assert store.infos == count, "one look at the end of each read"
        file.count_rows()
        file.head(0)
        assert store.infos == 2
    with Dataset("/d", filesystem=store) as dataset:
        dataset.read(["number"])
        store.reset()
        dataset.read(["number"])
        assert store.infos == (2 if store.requests else 0)


def test_small_files_of_a_dataset_cost_no_look():
    store = ObjectStore()
    data = to_parquet(pd.DataFrame({"a": range(1000)}))
    for number in range(20):
        store.pipe(f"/many/{number}.parquet", data)
    store.reset()
    assert len(read_parquet("/many", filesystem=store)) == 20_000
    assert store.infos == 1  # of the folder


def test_stale_listing_of_the_file_system():
    """A file system that keeps listings, as s3fs does, is asked afresh: its old sizes and versions are no reason."""

    class Caching(VersionedStore):
        def __init__(self) -> None:
            super().__init__()
            self.kept: dict = {}

        def find(self, path, **options):
            return self.kept.setdefault(path, super().find(path, **options))

        def info(self, path, **options):
            folder = self.kept.get(path.rpartition("/")[0], {})
            return folder[path] if path in folder else super().info(path, **options)

        def invalidate_cache(self, path=None):
            while path:
                self.kept.pop(path, None)
                path = path.rpartition("/")[0]

    store = Caching()
    read_parquet("/d", filesystem=store)
    store.replaced_after, store.marks = 0, (VersionedStore.marks[0], {"ETag": "newer"})
    assert set(read_parquet("/d", filesystem=store)["version"]) == {1, 2}
    assert read_parquet("/d/t.parquet", filesystem=store)["version"].eq(2).all()


def test_pyarrow_file_systems(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    folder = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    (tmp_path / "t.parquet").write_bytes(OLD)
    with ParquetFile("t.parquet", filesystem=folder) as file:
        assert file.read()["version"].eq(1).all()
        (tmp_path / "t.parquet").write_bytes(NEW)
        with pytest.raises(InvalidFileError, match=REPLACED):
            file.read(["number"])
    assert numparq.read_parquet("t.parquet", filesystem=folder)["version"].eq(2).all()
