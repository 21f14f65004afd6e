"""pandas 2 is refused in one sentence, whatever is used first."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import pandas
pandas.__version__ = "2.3.1"
import numparq
for name in ("read_parquet", "to_parquet", "ParquetFile", "ParquetWriter", "Dataset", "DatasetWriter", "salvage"):
    try:
        getattr(numparq, name)
    except ImportError as error:
        print(error)
try:
    numparq.pandas.register()
except ImportError as error:
    print(error)
from numparq.cli import main
print(main(["head", "rides.parquet"]))
"""


def test_pandas_2_is_refused_in_one_sentence():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    sentence = "numparq needs pandas 3.0 or newer; version 2.3.1 is installed: pip install -U pandas"
    assert run.stdout.splitlines() == [sentence] * 8 + ["1"]
    assert run.stderr == f"numparq: {sentence}\n"
