"""Bit widths of dictionary indices."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

import numparq
from numparq.column.encodings import index_bit_width

READ = "import sys, fastparquet; print(len(fastparquet.ParquetFile(sys.argv[1]).to_pandas()))"


def test_widths():
    assert [index_bit_width(count) for count in (0, 1, 2, 3, 4, 5, 256, 257)] == [1, 1, 1, 2, 2, 3, 8, 9]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_fastparquet_reads_a_dictionary_of_one_entry(tmp_path, version):
    """It divides by the bit width in pages of version 2, and dies of SIGFPE."""
    pytest.importorskip("fastparquet")
    frame = pd.DataFrame({"c": pd.Categorical(["x"] * 5)})
    numparq.to_parquet(frame, tmp_path / "x.parquet", data_page_version=version)
    done = subprocess.run(
        [sys.executable, "-c", READ, tmp_path / "x.parquet"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "5")
    assert numparq.read_parquet(tmp_path / "x.parquet")["c"].tolist() == ["x"] * 5
