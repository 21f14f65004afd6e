"""Write and read a small file with kernels of the CPU level that is the argument: a program for emulated CPUs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pandas as pd

import numparq
from numparq.cli.doctor import examine


def main(level: str) -> None:
    kernels = examine()["kernels"]
    assert (kernels["runs"], kernels["level"]) == ("library", level), kernels
    frame = pd.DataFrame(
        {
            "number": range(2000),
            "text": [f"value {number} of many" if number % 7 else None for number in range(2000)],
            "short": ["é中x", "", "a", "bc"] * 500,
            "float": [number / 7 for number in range(2000)],
            "raw": [b"ab", b"", b"\xff" * 20, b"c"] * 500,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.parquet")
        numparq.to_parquet(frame, path)  # pages have CRCs, which a read verifies
        pd.testing.assert_frame_equal(numparq.read_parquet(path), frame)
        assert len(numparq.read_parquet(path, filters="number > 1990 and text like '%99%'")) == 8


if __name__ == "__main__":
    main(sys.argv[1])
