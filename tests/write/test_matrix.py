"""Written files read back equal: dtypes, nulls, encodings, nestings, codecs, page versions and sizes."""

from __future__ import annotations

import itertools
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from support.data import write_matrix as matrix

CASES = matrix.all_cases()
QUICK = matrix.group_by_file(dict.fromkeys([*matrix.covering_subset(CASES, 2), *matrix.full_columns_only(CASES)]))
# Every case of one codec; of the others, those where any three parameters have each combination of their values.
FULL = matrix.group_by_file(
    dict.fromkeys([*(case for case in CASES if case.codec == "snappy"), *matrix.covering_subset(CASES, 3)])
)
SHORT_SPLIT = "BYTE_STREAM_SPLIT", matrix.FIXED
# What readers do not support: (encodings of fixed-length bytes, kinds).
UNSUPPORTED = {
    "pyarrow": ((), ()),
    # duckdb reads decimals of more than 38 digits as doubles, and polars does not read them.
    "duckdb": (("BYTE_STREAM_SPLIT",), ("decimal-60-5",)),
    "polars": (("BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"), ("decimal-60-5",)),
}


def is_readable(reader, case):
    encodings, kinds = UNSUPPORTED[reader]
    fixed = matrix.KINDS[case.kind].encodings == matrix.FIXED
    return case.kind not in kinds and not (fixed and case.encoding in encodings)


def by_pyarrow(path, columns):
    return pq.read_table(path, columns=columns, page_checksum_verification=True)


def by_duckdb(path, columns):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        names = ", ".join(f'"{name}"' for name in columns)
        return connection.sql(f"select {names} from '{path}'").to_arrow_table()


def by_polars(path, columns):
    return pytest.importorskip("polars").read_parquet(path, columns=columns).to_arrow()


READERS = {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a function that writes a file once for all its readers; only the latest file is cached."""
    cache = {}

    def write(name, cases):
        if (name, len(cases)) not in cache:
            cache.clear()
            path = tmp_path_factory.mktemp("matrix") / "file.parquet"
            cache[name, len(cases)] = path, *matrix.write(cases, path)[1:]
        return cache[name, len(cases)]

    return write


def label(file):
    return "-".join(str(part) for part in file)


def check_reader(reader, files, file, cases):
    path, _, table = files(file, cases)
    columns = [case.column for case in cases if is_readable(reader, case)]
    assert matrix.differences(READERS[reader](path, columns), table.select(columns)) == {}


def check_numparq(files, file, cases):
    """numparq reads every column."""
    path, _, table = files(file, cases)
    names = [case.column for case in cases]
    got = numparq.read_parquet(path, columns=names, dtype_backend="pyarrow")
    assert matrix.differences({name: pa.array(got[name]) for name in names}, table.select(names)) == {}


def check_footer(files, file, cases):
    """The encodings are the requested ones, and all chunks have metadata for pruning."""
    metadata = pq.read_metadata(files(file, cases)[0])
    encodings = {case.path: case.encoding for case in cases}
    codec = {None: "UNCOMPRESSED", "lz4_hadoop": "UNKNOWN"}.get(file[0], str(file[0]).upper())
    for group, column in itertools.product(range(metadata.num_row_groups), range(metadata.num_columns)):
        chunk = metadata.row_group(group).column(column)
        encoding = encodings.get(chunk.path_in_schema)
        assert codec == chunk.compression
        assert encoding in (None, "RLE_DICTIONARY") or encoding in chunk.encodings
        assert chunk.has_offset_index
        assert chunk.is_stats_set
        # A page of NaNs has no bounds, and 64 bytes of 255 cannot be incremented to an upper bound.
        if not {"float", "binary"} & set(re.split(r"\W|\d", chunk.path_in_schema)):
            assert chunk.has_column_index, chunk.path_in_schema


CHECKS = [*READERS, "numparq", "footer"]


def run_check(check, files, file, cases):
    if check in READERS:
        check_reader(check, files, file, cases)
    else:
        {"numparq": check_numparq, "footer": check_footer}[check](files, file, cases)


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("file", QUICK, ids=label)
def test_covering_subset(files, file):
    for check in CHECKS:
        run_check(check, files, file, QUICK[file])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "check"),
    list(itertools.product(FULL, CHECKS)),
    ids=lambda value: value if isinstance(value, str) else label(value),
)
def test_full_product(files, file, check):
    run_check(check, files, file, FULL[file])
