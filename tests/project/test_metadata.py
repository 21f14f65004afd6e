"""What a package index shows and installs: pyproject.toml against the package."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import numparq
from numparq.cli import main
from numparq.format.thrift.idl import idl_text

PACKAGE = Path(numparq.__file__).resolve().parent
REPOSITORY = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
# Extras of users, each with what it adds; the others are for development.
EXTRAS = ("arrow", "fsspec", "geo", "encryption", "aws", "spark")
# Modules that a dependency of another name brings.
BROUGHT_BY = {
    "dateutil": "pandas",
    "llvmlite": "numba",
    "py4j": "pyspark",
    "pyproj": "geopandas",
    "shapely": "geopandas",
}
MAY_BE_MISSING = {"pytz", "IPython"}  # for frames with its time zones, and for notebooks: their users have it
NOT_YET_USED: set[str] = set()


def distributions(requirements: list[str]) -> set[str]:
    """Return the names of distributions in requirements, without this one."""
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements} - {"numparq"}


def imported() -> set[str]:
    """Return the top-level names that the package imports from others than the standard library."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"numparq", "pyspark_numparq"}


@pytest.mark.slow
def test_every_dependency_is_imported_and_every_import_declared():
    required = distributions(PROJECT["dependencies"])
    optional = set().union(*(distributions(PROJECT["optional-dependencies"][extra]) for extra in EXTRAS))
    used = {BROUGHT_BY.get(name, name) for name in imported()} - MAY_BE_MISSING
    assert sorted(required - used) == []
    assert optional - used == NOT_YET_USED
    assert sorted(used - required - optional) == []


@pytest.mark.slow
def test_mypy_ignores_missing_types_of_imported_libraries_only():
    settings = PYPROJECT["tool"]["mypy"]
    ignored = [override for override in settings["overrides"] if override.get("ignore_missing_imports")]
    libraries = {module.removesuffix(".*") for override in ignored for module in override["module"]}
    assert "ignore_missing_imports" not in settings
    assert sorted(libraries - imported()) == []


def test_project_has_addresses():
    assert PROJECT["urls"].keys() == {"Homepage", "Documentation", "Changelog", "Source", "Issues"}


def test_command_prints_its_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"numparq {numparq.__version__}\n"


IDL, PACKAGED_IDL = "thrift/parquet.thrift", "numparq/format/thrift/parquet.thrift"


def test_format_definition_is_in_one_place_and_builds_package_it():
    """The definition itself lies in thrift/; as a link, it became a text file with a path in it."""
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"][IDL] == PACKAGED_IDL
    definition = REPOSITORY / IDL
    assert not definition.is_symlink()
    assert "struct FileMetaData {" in definition.read_text()
    assert idl_text() == definition.read_text()
    assert not (REPOSITORY / PACKAGED_IDL).exists(), "a second copy, which would be read in place of the first"


def test_installed_package_reads_its_own_copy(tmp_path):
    """An installed package has no folder thrift/ around it."""
    shutil.copytree(PACKAGE, tmp_path / "numparq", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from numparq.format.thrift import idl; print(idl.__file__, len(idl.idl_text()))"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert "FileNotFoundError" in alone.stderr
    shutil.copy(REPOSITORY / IDL, tmp_path / PACKAGED_IDL)
    built = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert built.stdout.split() == [str(tmp_path / "numparq/format/thrift/idl.py"), str(len(idl_text()))]


@pytest.mark.slow
def test_wheel_contains_the_format_definition(tmp_path):
    wheel_builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling, which builds, is not installed")
    (path,) = wheel_builder.WheelBuilder(str(REPOSITORY)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        assert wheel.read(PACKAGED_IDL) == (REPOSITORY / IDL).read_bytes()
