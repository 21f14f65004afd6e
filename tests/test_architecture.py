"""The order of imports, and what a plain import brings along."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import numparq
from numparq.kernels import GROUPS

PACKAGE = Path(numparq.__file__).resolve().parent

# From the bottom up. A module imports only from lower layers, and from its own.
LAYERS = [
    ["all_or_nothing", "arguments", "cache", "created_by", "errors", "progress", "remembered", "threads"],
    ["kernels"],
    ["io", "codecs"],
    ["metadata"],
    ["schema", "flatbuffer", "arrow_schema"],
    ["leaves", "zone_notes"],
    ["scalar_notes"],
    ["dtype_notes"],
    ["statistics", "page_index", "bloom_filter"],
    ["plan"],
    ["fetching"],
    ["logical", "geospatial"],
    ["predicate"],
    ["runtime_filter"],
    ["targets"],
    ["target_tables"],
    ["dtypes", "settled", "json_columns", "pandas_metadata", "appending"],
    ["restored", "opened"],
    ["column"],
    ["pruning"],
    ["encode"],
    ["arrow", "frame"],
    ["variant"],
    ["shred"],
    ["selection"],
    ["file_references"],
    ["file_columns"],
    ["nested_columns"],
    ["explode"],
    ["writer_options", "assembly", "appending"],
    ["existing", "geodata"],
    ["recovery"],
    ["filtering", "memory_budget"],
    ["reading"],
    ["streaming"],
    ["reader", "category_order", "writer"],
    ["dataset"],
    ["api", "verifying"],
    ["salvaging", "pandas", "spark"],
    ["cli"],
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# What is imported only where kernels have to be compiled, and so may import numba.
COMPILING = ("kernels.compiler",)
# Classes in them are derived from those of Spark's data sources, so that they cannot be imported without pyspark.
DERIVED_FROM_SPARK = ("spark.source", "spark.writer", "spark.pushdown", "toplevel.pyspark_numparq")
# Modules that stand above everything: they only forward.
FORWARDERS = {"__init__", "__main__"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_names(path: Path) -> set[tuple[str, ...]]:
    """What a module imports, anywhere in it but for type checking: full names, in parts."""
    tree = ast.parse(path.read_text())
    here = ["numparq", *path.relative_to(PACKAGE).parts[:-1]]
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            full = [*base, *(node.module.split(".") if node.module else [])]
            found |= {(*full, alias.name) for alias in node.names}
    return found


def imported(path: Path) -> set[str]:
    """The top-level modules of numparq that a module imports."""
    return {name[1] for name in imported_names(path) if name[0] == "numparq" and len(name) > 1}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    layer = layer_of(path)
    if layer in FORWARDERS:
        return
    assert layer in RANK, f"{layer} has no place in LAYERS"
    for name in imported(path):
        if name in RANK and name != layer:
            assert RANK[name] <= RANK[layer], f"{layer} imports {name}, which is above it"
            assert name != layer


def test_no_cycle_within_a_layer() -> None:
    graph = {layer: {name for path in modules() if layer_of(path) == layer for name in imported(path) if name in RANK}
             for layer in RANK}  # fmt: skip
    for layer, names in graph.items():
        for name in names - {layer}:
            assert layer not in graph[name], f"{layer} and {name} import each other"


@pytest.mark.parametrize("path", sorted((PACKAGE / "kernels").glob("*.py")), ids=lambda path: path.stem)
def test_kernels_do_not_raise_or_use_what_is_forbidden(path: Path) -> None:
    text = path.read_text()
    for word in ("parallel=True", "guvectorize", "jitclass", "fastmath=True"):
        assert word not in text
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and any(
            "kernel" in ast.unparse(d) or "helper" in ast.unparse(d) for d in node.decorator_list
        ):
            assert not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), f"{node.name} raises"


@pytest.mark.parametrize("group", GROUPS)
def test_kernels_of_a_group_are_made_of_what_its_cache_key_covers(group: str) -> None:
    shared = {path.stem for path in (PACKAGE / "kernels").glob("*.py")} - {m for g in GROUPS.values() for m in g}
    for module in GROUPS[group]:
        tree = ast.parse((PACKAGE / "kernels" / f"{module}.py").read_text())
        used = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level == 1 and n.module}
        assert used <= shared | set(GROUPS[group]), f"{module} uses a kernel module of another group"


def test_importing_everything_imports_neither_numba_nor_thriftpy2() -> None:
    names = [".".join(["numparq", *path.relative_to(PACKAGE).with_suffix("").parts]) for path in modules()]
    names = [name.removesuffix(".__init__") for name in names if not name.endswith(("__main__", *COMPILING))]
    if importlib.util.find_spec("pyspark") is None:
        names = [name for name in names if not name.endswith(DERIVED_FROM_SPARK)]
    code = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
    code += "print([name for name in ('numba', 'thriftpy2') if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]", output.stdout


def test_only_one_package_imports_pyspark() -> None:
    for path in modules():
        uses = any(name[0] == "pyspark" for name in imported_names(path))
        assert not uses or layer_of(path) == "spark", f"{path} imports pyspark"


def test_plain_import_is_light() -> None:
    heavy = ("numpy", "pandas", "numba", "llvmlite", "pyarrow")
    code = f"import sys, numparq; print([name for name in {heavy} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"
