"""Files read with pyarrow blocked: the frames are equal except for the storage of strings."""

from __future__ import annotations

import json
import subprocess
import sys

import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
from support.compare import write_by_pandas, write_by_pyarrow  # noqa: E402
from support.data.pandas_frames import BASE, EXTENSIONS, INDEXES, LABELS, NULLS, VALUES, array_of  # noqa: E402

BLOCK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
sys.meta_path.insert(0, Blocker())
"""

DESCRIBE = '''
import pandas as pd

def text_of(value):
    return "<null>" if value is None or value is pd.NA or value is pd.NaT or value != value else repr(value)

def texts(values):
    return [text_of(value) for value in values]

def describe(frame):
    """Everything of a frame that has to be equal, as text."""
    index = frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    return {
        "index": [[str(level.dtype), type(level).__name__, str(level.name), texts(level)] for level in levels],
        "labels": [type(frame.columns).__name__, str(frame.columns.dtype), str(list(frame.columns.names)),
                   texts(frame.columns)],
        "columns": [[str(column.dtype), texts(column)] for column in columns],
        "categories": [texts(column.cat.categories) for column in columns if column.dtype == "category"],
        "attrs": frame.attrs,
    }
'''

CHILD = (
    BLOCK
    + DESCRIBE
    + """
import json, pathlib, warnings
import numparq
warnings.simplefilter("ignore")
folder = pathlib.Path(sys.argv[1])
answers = {}
for path in sorted(folder.iterdir()):
    for backend in ("numpy", "numpy_nullable"):
        options = {} if backend == "numpy" else {"dtype_backend": backend}
        try:
            answers[f"{path.name} {backend}"] = describe(numparq.read_parquet(path, **options))
        except Exception as error:
            answers[f"{path.name} {backend}"] = f"{type(error).__name__}: {error}"
assert "pyarrow" not in sys.modules
print(json.dumps(answers))
"""
)

namespace: dict = {}
exec(DESCRIBE, namespace)
describe = namespace["describe"]


def files():
    for name, (arrow_type, values) in VALUES.items():
        for nulls in ("none", "some", "empty"):
            yield f"type {name} {nulls}", write_by_pyarrow(pa.table({"a": array_of(arrow_type, NULLS[nulls](values))}))
    for name, index in INDEXES.items():
        yield f"index {name}", write_by_pandas(BASE.set_index(index))
    for name, labels in LABELS.items():
        yield f"labels {name}", write_by_pandas(pd.DataFrame([[1, 2], [3, 4]], columns=labels))
    for name, values in EXTENSIONS.items():
        if not name.endswith("-arrow"):
            yield f"dtype {name}", write_by_pandas(pd.DataFrame({"a": values}))


# Deliberate differences from pyarrow's reader; see test_pandas_equality.
DIFFERENT = {"index period numpy_nullable"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, data in files():
        (folder / name.replace("/", "-")).write_bytes(data)
    run = subprocess.run([sys.executable, "-c", CHILD, str(folder)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder, json.loads(run.stdout)


@pytest.mark.slow
def test_frames_match_those_with_pyarrow(answers):
    folder, got = answers
    wrong = {}
    for path in sorted(folder.iterdir()):
        for backend in ("numpy", "numpy_nullable"):
            key = f"{path.name} {backend}"
            options = {} if backend == "numpy" else {"dtype_backend": backend}
            expected = json.loads(json.dumps(describe(pd.read_parquet(path, engine="pyarrow", **options))))
            if got[key] != expected and key not in DIFFERENT:
                wrong[key] = (got[key], expected)
    assert not wrong, f"{len(wrong)} of {len(got)} differ, such as {next(iter(wrong.items()))}"


def child(code: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code, *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_arrow_dtypes_become_numpy_dtypes(tmp_path):
    frame = pd.DataFrame({name: values for name, values in EXTENSIONS.items() if name.endswith("-arrow")})
    frame.to_parquet(tmp_path / "file")
    code = "import numparq; print([str(dtype) for dtype in numparq.read_parquet(sys.argv[1]).dtypes])"
    got = child(code, str(tmp_path / "file"))
    assert "pyarrow" not in got
    assert "float64" in got
    assert "datetime64[us]" in got


def test_arrow_backend_names_the_missing_package(tmp_path):
    BASE.to_parquet(tmp_path / "file")
    code = """
import numparq
try:
    numparq.read_parquet(sys.argv[1], dtype_backend="pyarrow")
except ImportError as error:
    print(error)
"""
    assert 'dtype_backend="pyarrow" needs pyarrow' in child(code, str(tmp_path / "file"))
