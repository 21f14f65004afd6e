"""Data-skipping stores: look-ups over many small files, and among many entries."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import numparq
from asv_benchmarks.environment import SCALE
from asv_benchmarks.files import default_folder
from numparq.dataset.listing.files import DataFile
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.file_query import FileQuery
from numparq.dataset.write.shared_job import SharedJob
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.skipping import BloomFilter, MinMax, Store, ValueList
from numparq.skipping.cell_types import CellType
from numparq.skipping.metadata import StoreIndex, index_column
from numparq.skipping.own_metadata import OwnMetadata
from numparq.skipping.rows import StoreRow
from numparq.skipping.spark_bloom import build_cell, hash_texts
from numparq.skipping.write import PartLayout, cells_type, divide_rows, write_part

FILES, ENTRIES, ROWS, USERS = 5_000, 100_000, 1_000, 300
FILTERS = {"value list": "device = 'd3'", "min max": "ts between 3000 and 3100", "bloom filter": "user = 'u77'"}
LONG, TEXT = CellType("long", INT64), CellType("string", BYTE_ARRAY, 0, LogicalType("STRING"))


class SmallFiles:
    """One look-up over many small local files."""

    params = tuple(FILTERS)
    param_names = ("index",)
    number = 1
    warmup_time = 0.0
    timeout = 1200.0

    def setup(self, name: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="skipping-", dir=default_folder())
        self.data = Path(self.folder.name, "data")
        self.data.mkdir()
        rng = np.random.default_rng(0)
        for number in range(max(int(FILES * SCALE), 20)):
            frame = pd.DataFrame({"ts": np.arange(ROWS) + ROWS * number, "device": f"d{number}"})
            frame["user"] = [f"u{user}" for user in rng.integers(0, 10**6, ROWS)]
            numparq.to_parquet(frame, self.data / f"{number:05}.parquet")
        indexes = [MinMax("ts"), ValueList("device"), BloomFilter("user")]
        self.store = Store.build(self.data, folder=Path(self.folder.name, "store"), indexes=indexes).folder

    def teardown(self, name: str) -> None:
        self.folder.cleanup()

    def time_with_store(self, name: str) -> pd.DataFrame:
        return numparq.read_parquet(self.data, filters=FILTERS[name], skipping=self.store)

    def time_without_store(self, name: str) -> pd.DataFrame:
        return numparq.read_parquet(self.data, filters=FILTERS[name])


class ManyEntries:
    """From a query to the list of files that may match, among many entries of a store."""

    params = tuple(FILTERS)
    param_names = ("index",)
    number = 1
    warmup_time = 0.0
    timeout = 1200.0

    def setup(self, name: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="skipping-", dir=default_folder())
        kinds = {"ts": ("minmax", LONG), "device": ("valuelist", TEXT), "user": ("bloomfilter", TEXT)}
        indexes = [
            StoreIndex(kind, (column,), index_column(kind, [column]), type=cells_type(kind, cell))
            for column, (kind, cell) in kinds.items()
        ]
        layout = PartLayout("/data", {}, indexes, [cell for _, cell in kinds.values()])
        rng = np.random.default_rng(0)
        cells = [
            build_cell(hash_texts([b"u%d" % user for user in rng.integers(0, 10**6, USERS)]), USERS, 0.01)
            for _ in range(100)
        ]
        rows = []
        for number in range(max(int(ENTRIES * SCALE), 100)):
            low, high = ((number * ROWS + at).to_bytes(8, "little") for at in (0, ROWS - 1))
            row = [(low, high), [b"d%d" % number], cells[number % 100]]
            rows.append(StoreRow(f"/data/{number:07}.parquet#1000", {}, row))
        job = SharedJob.begin(self.folder.name, compression="snappy", store_schema=False, max_rows_per_page=1000)
        own = OwnMetadata("/data")
        job.commit([write_part(job, number, layout, part, own) for number, part in enumerate(divide_rows(rows))])
        names = [row.object_name.rpartition("#")[0] for row in rows]
        self.files = [DataFile(each, each, 1, "1", (), 1.0) for each in names]
        self.query = FileQuery(FILTERS[name], (), DatasetPartitions((), []), _Elsewhere(), "name")

    def teardown(self, name: str) -> None:
        self.folder.cleanup()

    def time_keep(self, name: str) -> np.ndarray:
        return Store(self.folder.name).for_query(self.query).keep(self.files)

    def track_files_left(self, name: str) -> int:
        return int(self.time_keep(name).sum())

    track_files_left.unit = "files"


class _Elsewhere:
    """A file system whose listings have times, so that no file is looked up."""

    protocol = "elsewhere"
