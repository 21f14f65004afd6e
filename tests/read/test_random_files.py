"""Random tables, written and read with random options, compared with pyarrow."""

from __future__ import annotations

import datetime
import decimal
import io
import os

import numpy as np
import pandas as pd
import pytest

from numparq import read_parquet
from numparq.column.jobs import schedule
from numparq.column.read import decompress, page_sources, pages
from support.compare import write_by_pyarrow

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FUZZ = int(os.environ.get("NUMPARQ_FUZZ", "1"))  # factor for the number of cases of the slow tests
SIZES = (
    (page_sources, "WINDOW_BYTES"),
    (decompress, "BATCH_BYTES"),
    (pages, "MIN_RUN_BYTES"),
    (schedule, "MIN_SHARE_BYTES"),
    (schedule, "SINGLE_THREAD_BYTES"),
    (schedule, "MIN_SHARED_TASK_BYTES"),
    (schedule, "MAX_COALESCED_BYTES"),
)

TYPES = {
    "int8": (pa.int8(), lambda n: n % 256 - 128),
    "uint16": (pa.uint16(), lambda n: n % 65536),
    "int32": (pa.int32(), lambda n: n - 2**20),
    "uint32": (pa.uint32(), lambda n: n),
    "int64": (pa.int64(), lambda n: n - 2**20),
    "uint64": (pa.uint64(), lambda n: n * 3),
    "half": (pa.float16(), lambda n: np.float16(n % 1000)),
    "float": (pa.float32(), lambda n: float(n % 10**6)),
    "double": (pa.float64(), lambda n: n / 7),
    "bool": (pa.bool_(), lambda n: n % 3 == 0),
    "text": (pa.string(), lambda n: f"{'ü' * (n % 5)}{n}"),
    "bytes": (pa.binary(), lambda n: str(n).encode() * (n % 4)),
    "fixed": (pa.binary(7), lambda n: f"{n % 10**7:07d}".encode()),
    "date": (pa.date32(), lambda n: datetime.date.fromordinal(700_000 + n % 100_000)),
    "time": (pa.time64("us"), lambda n: datetime.time(n % 24, n % 60, n % 59, n % 10**6)),
    "moment": (pa.timestamp("ms"), lambda n: datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=n)),
    "nanos": (pa.timestamp("ns", "UTC"), lambda n: n * 10**9),
    "span": (pa.duration("us"), lambda n: datetime.timedelta(seconds=n)),
    "decimal": (pa.decimal128(12, 3), lambda n: decimal.Decimal(n) / 8),
    "wide": (pa.decimal128(30, 1), lambda n: decimal.Decimal(n * 10**15)),
    "category": (pa.dictionary(pa.int32(), pa.string()), lambda n: f"c{n % 40}"),
    "nothing": (pa.null(), lambda n: None),
}


def random_column(rng, kind, rows):
    """Build a column with random runs and repeats, and scattered or consecutive nulls."""
    arrow_type, make = TYPES[kind]
    numbers = rng.integers(0, rng.choice([2, 30, 2**21]), rows)
    repeat = int(rng.choice([1, 1, 3, 100]))
    numbers = np.repeat(numbers, repeat)[:rows]
    missing = np.zeros(rows, bool)
    share = rng.choice([0, 0, 0.05, 0.5, 1])
    if share:
        stretch = int(rng.choice([1, 1, 20]))
        missing = np.repeat(rng.random(rows // stretch + 1) < share, stretch)[:rows]
    values = [None if null else make(number) for number, null in zip(numbers.tolist(), missing.tolist(), strict=True)]
    if isinstance(arrow_type, pa.DictionaryType):
        return pa.array(values, arrow_type.value_type).dictionary_encode()
    return pa.array(values, arrow_type)


def random_table(rng):
    rows = int(rng.choice([0, 1, 2, 7, 8, 9, 100, 1000, 5000]))
    kinds = rng.choice(list(TYPES), int(rng.integers(1, 9)), replace=False).tolist()
    columns = {kind: random_column(rng, kind, rows) for kind in kinds}
    nullable = {
        kind: column.null_count > 0 or kind == "nothing" or bool(rng.random() < 0.7) for kind, column in columns.items()
    }
    schema = pa.schema([pa.field(kind, column.type, nullable[kind]) for kind, column in columns.items()])
    return pa.table(list(columns.values()), schema=schema)


def random_write_options(rng, table):
    def pick(*choices):
        return choices[int(rng.integers(0, len(choices)))]

    options = {
        "row_group_size": pick(1 << 20, max(table.num_rows // 3, 1), 64),
        "data_page_size": pick(1 << 20, 1, 64, 1000),
        "write_batch_size": pick(1024, 1, 10, 33),
        "data_page_version": pick("1.0", "2.0"),
        "compression": pick("none", "snappy", "gzip", "zstd", "brotli", "lz4"),
        "use_dictionary": pick(True, False, table.column_names[::2]),
        "dictionary_pagesize_limit": pick(1 << 20, 50, 500),
        "write_statistics": pick(True, False, table.column_names[:1]),
        "write_page_checksum": pick(True, False),
        "write_page_index": pick(True, False),
        "store_schema": pick(True, True, False),
    }
    rows = table.num_rows
    if rows > 1000:  # not thousands of row groups or pages of one value
        options |= {"row_group_size": max(options["row_group_size"], 500), "write_batch_size": 100}
    return options


def random_selection(rng, table):
    options = {"threads": int(rng.integers(1, 4))}
    if rng.random() < 0.6:
        options["columns"] = rng.permutation(table.column_names)[: int(rng.integers(1, 9))].tolist()
    if rng.random() < 0.6:
        options["row_range"] = tuple(sorted(rng.integers(0, table.num_rows + 2, 2).tolist()))
    backend = rng.choice(["numpy", "numpy", "numpy_nullable", "pyarrow"])
    if backend != "numpy":
        options["dtype_backend"] = str(backend)
    return options


def to_pandas_by_pyarrow(table, dtype_backend=None):
    """Return the frame that pandas reads from a file with these rows."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return pd.read_parquet(buffer, engine="pyarrow", **({"dtype_backend": dtype_backend} if dtype_backend else {}))


def categories_as_objects(frame):
    """Convert categories to objects: which categories exist depends on the rows read."""
    names = [name for name in frame if "dictionary" in str(frame[name].dtype) or frame[name].dtype == "category"]
    return frame.astype(dict.fromkeys(names, "object"))


def random_sizes(rng, monkeypatch):
    """Shrink windows, batches and jobs, so that small files are divided as large ones are."""
    for module, name in SIZES:
        monkeypatch.setattr(module, name, int(rng.choice([1, 50, 400, 5000, 1 << 20])))


def check_seed(seed, monkeypatch):
    rng = np.random.default_rng([seed, 0])
    table = random_table(rng)
    write_options = random_write_options(rng, table)
    data = write_by_pyarrow(table, **write_options)
    stored = pq.read_table(io.BytesIO(data))
    for number in range(4):
        if number == 2:
            random_sizes(rng, monkeypatch)
        options = random_selection(rng, table)
        first, stop = options.get("row_range", (0, table.num_rows))
        rows = stored.select(options.get("columns", table.column_names)).slice(first, stop - first)
        expected = to_pandas_by_pyarrow(rows, options.get("dtype_backend"))
        try:
            got = read_parquet(data, **options)
            pd.testing.assert_frame_equal(categories_as_objects(got), categories_as_objects(expected), check_exact=True)
        except Exception as error:
            sizes = [getattr(*size) for size in SIZES]
            error.add_note(f"seed {seed}: {table.num_rows} rows, {write_options}, {options}, {sizes}")
            raise
    monkeypatch.undo()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(8))
def test_random_files(part, monkeypatch):
    for seed in range(part * 25, part * 25 + 25):
        check_seed(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4 * FUZZ))
def test_many_random_files(part, monkeypatch):
    for seed in range(10_000 + part * 200, 10_200 + part * 200):
        check_seed(seed, monkeypatch)
