"""Arrow reads of random nested types: valid, and equal to pyarrow's. pyarrow may crash, so processes of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa
import pyarrow.parquet as pq

import numparq
from support.arrow_reads import check_reads
from support.files.edited_footers import THRIFT, write_with_footer

TESTS = Path(__file__).resolve().parents[1]


def in_fork(check):
    """Run a check in a forked process; return its exit status, negative for a signal."""
    child = os.fork()
    if not child:
        status = 1
        try:
            problem = check()
            print(problem or "", file=sys.stderr)
            status = 0 if problem is None else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@forking
@pytest.mark.parametrize(
    "element", [pa.map_(pa.string(), pa.int32()), pa.list_(pa.string()), pa.struct({"a": pa.list_(pa.int8())})]
)
def test_null_fixed_size_lists_of_nested_values(element):
    """pyarrow 26 reads behind the offsets of an empty child when it casts such lists."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": pa.nulls(100_000, pa.list_(element, 2))}), buffer)

    def read():
        array = pa.table(numparq.ParquetFile(buffer))["a"]
        array.validate(full=True)
        frame = numparq.read_parquet(buffer, dtype_backend="pyarrow")
        return None if array.null_count == frame["a"].isna().sum() == 100_000 else str(array)

    assert in_fork(read) == 0


@pytest.mark.slow
@forking
def test_random_types():
    assert in_fork(lambda: check_reads(0, 30)) == 0


@pytest.mark.slow
def test_many_random_types():
    command = [sys.executable, "-m", "support.arrow_reads", "100", "2000"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def chunked(make, arrow_type):
    """Write three chunks of a hundred texts each, with a dictionary of its own."""
    texts = [[f"{number}" for number in range(100 * part, 100 * part + 100)] for part in range(3)]
    buffer = io.BytesIO()
    table = pa.table({"a": pa.chunked_array([pa.array(make(part), arrow_type) for part in texts])})
    with pq.ParquetWriter(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue(), [row for part in texts for row in make(part)]


@pytest.mark.parametrize("nested", [False, True])
def test_more_values_than_the_dictionary_index_can_number(nested):
    kind = pa.dictionary(pa.int8(), pa.string())
    data, expected = chunked(lambda texts: [texts], pa.list_(kind)) if nested else chunked(list, kind)
    streamed = pa.table(numparq.ParquetFile(data))["a"]
    frame = numparq.read_parquet(data, dtype_backend="pyarrow")["a"].array.__arrow_array__()
    wide = pa.dictionary(pa.int32(), pa.string())
    assert frame.type == (pa.list_(pa.field("element", wide)) if nested else wide)
    assert streamed.type == (frame.type if nested else kind)
    for array in (streamed, frame):
        array.validate(full=True)
        assert array.to_pylist() == expected


def test_lists_of_another_size_than_claimed():
    """A hint that the values contradict: a frame ignores it, a stream has declared it before."""
    claim = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([[1, 2]], pa.list_(pa.int64(), 2))}), claim)
    hint = pq.read_metadata(claim).metadata[b"ARROW:schema"]
    keys = [THRIFT.KeyValue(key="ARROW:schema", value=hint.decode())]
    data = write_with_footer(pa.table({"a": [[1, 2], [3]]}), lambda footer: setattr(footer, "key_value_metadata", keys))
    frame = numparq.read_parquet(data, dtype_backend="pyarrow")
    assert frame["a"].array.__arrow_array__().type == pa.list_(pa.field("element", pa.int64()))
    with pytest.raises(numparq.UnsupportedError, match=r"do not fit the stream's type .*list.*\[2\]; read the column"):
        numparq.ParquetFile(data).iter_batches().reader().read_all()
