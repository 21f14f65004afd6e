"""numparq in a zip file, as Spark's ``--py-files`` ships it: reads, writes, pickles and commands."""

from __future__ import annotations

import os
import subprocess

import pandas as pd
import pytest

import numparq
from support.zipped_package import python_without_numparq, zip_package

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import numparq
assert numparq.__file__ == sys.argv[1] + "/numparq/__init__.py", numparq.__file__
import pandas as pd
from numparq.format import LogicalType, SchemaNode

parts = (SchemaNode("metadata", repetition=0, physical=6), SchemaNode("value", repetition=0, physical=6))
variant = SchemaNode("v", logical=LogicalType("VARIANT"), children=parts)
frame = pd.DataFrame({"n": [1, None, 3], "s": ["x", None, "y"], "v": [{"a": 1}, [1.5, None], 3]})
numparq.to_parquet(frame, "zipped.parquet", schema={"v": variant})
read = numparq.read_parquet("zipped.parquet")
assert read.pop("v").tolist() == frame.pop("v").tolist(), read
pd.testing.assert_frame_equal(read, frame)
assert numparq.read_parquet("installed.parquet", filters="n > 1")["n"].tolist() == [3]
assert not [each for each in numparq.verify("zipped.parquet") if each.severity == "error"]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs Python with the zip file as the only numparq, and returns its output."""
    if os.name != "posix":
        pytest.skip("the Python without numparq is a shell script")
    folder = tmp_path_factory.mktemp("zipped")
    python, archive = python_without_numparq(folder), zip_package(folder)

    def run_python(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(archive)}
        done = subprocess.run(
            [python, *arguments, str(archive)], env=environment, capture_output=True, text=True, cwd=folder, timeout=500
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return done.stdout

    numparq.to_parquet(pd.DataFrame({"n": [1, None, 3]}), folder / "installed.parquet")
    return run_python


def test_zipped_package_reads_and_writes(run):
    run("-c", PROGRAM)


def test_zipped_package_runs_commands(run):
    assert run("-m", "numparq", "--version").startswith("numparq ")
