"""Key look-ups through the public API: arguments, strings, changed files, threads."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import numparq
from numparq import ParquetError, col
from support.data.keyed_table import ROWS, keyed_file, keyed_frame


@pytest.mark.parametrize("threads", [0, -1, "2", True])
def test_threads_argument_is_checked(threads) -> None:
    data = keyed_file()
    for _ in range(3):
        with pytest.raises((ValueError, TypeError), match="threads"):
            numparq.read_parquet(data, filters=col("key") == 30, threads=threads)
        numparq.read_parquet(data, filters=col("key") == 30)


def test_invalid_utf8_is_an_error() -> None:
    frame = keyed_frame()
    data = keyed_file(frame[["key", "text"]], compression=None, write_page_checksum=False)
    data = data.replace(b"name 03210", b"name \xff3210")
    for _ in range(3):
        with pytest.raises(ParquetError, match=r"UTF-8.*row group 2, column 'text'") as caught:
            numparq.read_parquet(data, filters=col("key") == 3 * 3210)
        assert "page" in str(caught.value)
        assert numparq.read_parquet(data, filters=col("key") == 3 * 3220)["text"].tolist() == ["name 03220"]


def test_changed_file_is_an_error(tmp_path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(keyed_file())
    with numparq.ParquetFile(path) as file:
        for _ in range(3):
            assert len(file.read(filters=col("key") == 30)) == 1
        path.write_bytes(keyed_file(key_value_metadata={"other": "file"}))
        os.utime(path, (1, 1))
        with pytest.raises(ParquetError, match="changed"):
            file.read(filters=col("key") == 30)


def test_concurrent_lookups(tmp_path) -> None:
    path, failures = tmp_path / "file.parquet", []
    data = keyed_file()
    path.write_bytes(data)

    def work(seed: int) -> None:
        for row in np.random.default_rng(seed).integers(0, ROWS, 60).tolist():
            got = numparq.read_parquet(path, ["key", "text"], filters=col("key") == 3 * row)
            if got.to_numpy().tolist() != [[3 * row, f"name {row:05}"]]:
                failures.append((row, got))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
