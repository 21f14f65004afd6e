"""What a package index shows and installs: pyproject.toml against the package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import numparq
from numparq.cli import main
from numparq.kernels.compile.targets import LIBRARY_TARGETS
from support.thrift_definition import TABLES

PACKAGE = Path(numparq.__file__).resolve().parent
REPOSITORY = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
# Extras of users, each with what it adds; the others are for development.
EXTRAS = ("jit", "arrow", "fsspec", "geo", "encryption", "aws", "spark")
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


def test_numba_is_required_where_wheels_have_no_library():
    (requirement,) = [each for each in PROJECT["dependencies"] if each.startswith("numba")]
    version, _, marker = requirement.partition("; ")
    assert PROJECT["optional-dependencies"]["jit"] == [version]
    for machine in LIBRARY_TARGETS:
        assert not eval(marker, {"sys_platform": "linux", "platform_machine": machine})
        assert eval(marker, {"sys_platform": "darwin", "platform_machine": machine})
    assert eval(marker, {"sys_platform": "linux", "platform_machine": "ppc64le"})
    assert eval(marker, {"sys_platform": "win32", "platform_machine": "AMD64"})


def test_project_has_addresses():
    assert PROJECT["urls"].keys() == {"Homepage", "Documentation", "Changelog", "Source", "Issues"}


def test_command_prints_its_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"numparq {numparq.__version__}\n"


def test_format_definition_is_not_packaged():
    """Its tables are; a second copy would have to be kept equal."""
    assert (REPOSITORY / "numparq/format/thrift/parquet.json").is_file()
    assert not (REPOSITORY / "numparq/format/thrift/parquet.thrift").exists()
    assert "struct FileMetaData {" in (REPOSITORY / "thrift/parquet.thrift").read_text()


@pytest.mark.slow
def test_wheel_without_a_library_contains_the_tables(tmp_path, monkeypatch):
    wheel_builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling, which builds, is not installed")
    monkeypatch.setenv("NUMPARQ_WHEEL_MACHINE", "none")
    (path,) = wheel_builder.WheelBuilder(str(REPOSITORY)).build(directory=str(tmp_path), versions=["standard"])
    assert path.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as wheel:
        assert wheel.read("numparq/format/thrift/parquet.json") == TABLES.read_bytes()


@pytest.fixture
def build_wheel(tmp_path, monkeypatch):
    """Return a function that builds a wheel with a compiler that ends with a status, and returns path and content."""
    wheel_builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling, which builds, is not installed")
    monkeypatch.delenv("NUMPARQ_WHEEL_MACHINE", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")

    def build(status: int) -> tuple[str, dict[str, bytes]]:
        def compile_kernels(command, **options):
            library, digest, machine = command[-3:]
            if not status:
                Path(library).write_text(machine)
                Path(digest).write_text("digest")
            return subprocess.CompletedProcess(command, status, stderr="no linker")

        monkeypatch.setattr(subprocess, "run", compile_kernels)
        (path,) = wheel_builder.WheelBuilder(str(REPOSITORY)).build(directory=str(tmp_path), versions=["standard"])
        with zipfile.ZipFile(path) as wheel:
            content = {name: wheel.read(name) for name in wheel.namelist() if "/_kernels." in name}
        return Path(path).name.partition("-cp")[2] or Path(path).name.partition("-py")[2], content

    return build


@pytest.mark.parametrize("machine", ["", "aarch64"])
def test_wheel_has_the_library_of_its_machine(build_wheel, monkeypatch, machine):
    if machine:
        monkeypatch.setenv("NUMPARQ_WHEEL_MACHINE", machine)
    tags, content = build_wheel(0)
    named = machine or "x86_64"
    assert tags == f"311-abi3-manylinux2014_{named}.manylinux_2_17_{named}.musllinux_1_2_{named}.whl"
    assert content == {
        "numparq/kernels/_kernels.abi3.so": named.encode(),
        "numparq/kernels/_kernels.digest": b"digest",
    }


def test_wheel_without_a_compiler_is_for_all_machines(build_wheel, monkeypatch):
    assert build_wheel(1) == ("3-none-any.whl", {})
    monkeypatch.setenv("NUMPARQ_WHEEL_MACHINE", "x86_64")
    with pytest.raises(RuntimeError, match="no linker"):
        build_wheel(1)
