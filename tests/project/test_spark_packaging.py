"""The module by which Spark finds the data source: it is packaged beside numparq, and importing it never fails."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

import numparq

REPOSITORY = Path(numparq.__file__).resolve().parent.parent
TESTS = Path(__file__).resolve().parents[1]
SOURCE = "numparq/spark/toplevel/pyspark_numparq.py"


@pytest.fixture
def module_file():
    """Return the path of the module, in a checkout or where it is installed."""
    if (REPOSITORY / SOURCE).exists():
        return REPOSITORY / SOURCE
    found = importlib.util.find_spec("pyspark_numparq")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)


def test_wheel_has_the_module_at_top_level():
    project = REPOSITORY / "pyproject.toml"
    if not project.exists():
        pytest.skip("not in a checkout")
    wheel = tomllib.loads(project.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"][SOURCE] == "pyspark_numparq.py"
    assert (REPOSITORY / SOURCE).exists()
    assert str(Path(SOURCE).parent) in wheel["exclude"]


def test_installed_distribution_has_the_module():
    try:
        installed = [str(path) for path in files("numparq") or ()]
    except PackageNotFoundError:
        pytest.skip("numparq is not installed")
    if any(name.endswith(".pth") for name in installed):
        pytest.skip("an editable install may be out of date")
    assert "pyspark_numparq.py" in installed


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_import_succeeds_without_dependencies(module_file, missing):
    """Spark imports every module with such a name, and drops all data sources if one fails."""
    code = f"""
import sys
sys.modules[{missing!r}] = None
sys.path.insert(0, {str(module_file.parent)!r})
import pyspark_numparq
print(hasattr(pyspark_numparq, "DefaultSource"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert missing != "pyspark" or done.stdout.strip() == "False"


@pytest.mark.pyspark
def test_module_exports_the_data_source(module_file, monkeypatch):
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    from pyspark.sql.datasource import DataSource

    monkeypatch.syspath_prepend(str(module_file.parent))
    source = importlib.import_module("pyspark_numparq").DefaultSource
    assert issubclass(source, DataSource)
    assert source.name() == "numparq"


def test_tests_that_need_pyspark_are_marked():
    """A test that skips without pyspark runs only in stages that select its mark."""
    paths = [path for path in TESTS.rglob("test_*.py") if 'importorskip("pyspark' in path.read_text()]
    unmarked = [path.name for path in paths if not re.search(r"mark\.(py)?spark\b", path.read_text())]
    assert len(paths) > 5
    assert not unmarked
