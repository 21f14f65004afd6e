"""Sub-microsecond INT96 timestamps are found anywhere, also beyond the range of nanoseconds since 1970."""

from __future__ import annotations

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

import numparq  # noqa: E402
from numparq.dataset.splits.table import split_table  # noqa: E402
from numparq.errors import UnsupportedError  # noqa: E402
from numparq.file.readable_file import ReadableFile  # noqa: E402
from numparq.format.physical_type import FIXED_LEN_BYTE_ARRAY, INT96  # noqa: E402
from numparq.format.thrift.encode import encode_struct  # noqa: E402
from numparq.tools.optimize.checksum import checksum_pieces  # noqa: E402
from numparq.tools.optimize.rewrite_plan import RewritePiece  # noqa: E402
from numparq.tools.verify.thrift import read_struct  # noqa: E402

LAST_DAY, SOME_DAY, FIRST_DAY = 5_373_484, 2_458_850, 1_721_426  # 9999-12-31, 2020-01-01, 0001-01-01, Julian days


def int96_bytes(day, nanoseconds):
    return np.array([nanoseconds], "<i8").tobytes() + np.array([day], "<i4").tobytes()


def int96_file(path, column):
    """Write 12-byte values and change their type to INT96 in the footer."""
    pq.write_table(
        pa.table({"t": column, "n": [1] * len(column)}),
        path,
        store_schema=False,
        write_statistics=False,
        row_group_size=2,
    )
    with numparq.ParquetFile(path) as file:
        content, _ = read_struct("FileMetaData", file._file.footer.data.tobytes(), lambda check, message: None)
        start = file._file.footer_start
    for element in content["schema"]:
        if element.get("type") == FIXED_LEN_BYTE_ARRAY:
            element["type"] = INT96
            del element["type_length"]
    for group in content["row_groups"]:
        for chunk in group["columns"]:
            if chunk["meta_data"]["type"] == FIXED_LEN_BYTE_ARRAY:
                chunk["meta_data"]["type"] = INT96
    footer = encode_struct("FileMetaData", content)
    path.write_bytes(path.read_bytes()[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("kind", ["flat", "list", "map"])
@pytest.mark.parametrize(
    ("moment", "is_fine"),
    [
        (int96_bytes(LAST_DAY, 86_399_999_999_999), True),
        (int96_bytes(LAST_DAY, 86_399_999_999_000), False),
        (int96_bytes(FIRST_DAY, 1), True),
        (int96_bytes(SOME_DAY, 1_000_500), True),
        (int96_bytes(SOME_DAY, 0), False),
    ],
)
def test_sub_microsecond_int96_beyond_nanosecond_range(tmp_path, kind, moment, is_fine):
    values = [int96_bytes(SOME_DAY, 1000), None, moment, int96_bytes(LAST_DAY, 0)]
    types = {"flat": pa.binary(12), "list": pa.list_(pa.binary(12)), "map": pa.map_(pa.string(), pa.binary(12))}
    wrapped = {"flat": values, "list": [[value] for value in values], "map": [{"k": value} for value in values]}[kind]
    int96_file(tmp_path / "a.parquet", pa.array(wrapped, types[kind]))
    table = split_table([str(tmp_path / "a.parquet")], partitioning=None)
    pieces = [RewritePiece("", split) for split in table.splits]
    if is_fine:
        with pytest.raises(UnsupportedError, match=r"would be truncated.*a\.parquet', row group 1, column 't'"):
            checksum_pieces(table.reader, pieces)
    else:
        assert checksum_pieces(table.reader, pieces).rows == 4


def test_nanoseconds_of_encrypted_files_are_found():
    """Column metadata are decrypted before a copy of the footer declares the columns as bytes."""
    from numparq.tools.optimize.checksum import _column_values, _with_int96_as_bytes
    from support.encryption.pyarrow_files import MaterialKeys, encrypt

    times = pa.array([1_000, 1_001, None], pa.timestamp("ns"))
    for columns in (None, ["t"]):
        content = encrypt(pa.table({"t": times}), columns, use_deprecated_int96_timestamps=True)
        with ReadableFile(content, decryption=MaterialKeys()) as file:
            ((_, name, values),) = _column_values(_with_int96_as_bytes(file), ["t"], [])
            assert name == "t"
            nanoseconds = [None if item is None else int.from_bytes(item[:8], "little") for item in values.to_pylist()]
            assert nanoseconds == [1_000, 1_001, None]
