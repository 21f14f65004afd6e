"""Options that functions list and pass on: none is dropped on the way."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numparq
from numparq.file.table import ReadableTable
from numparq.scan.options import ScanOptions

PACKAGE = Path(numparq.__file__).resolve().parent
OPTIONS = set(ScanOptions.__dataclass_fields__)
# Each lists its parameters and hands them to another function by name.
FUNCTIONS = {
    "api/read.py": ["read_parquet"],
    "api/write.py": ["to_parquet"],
    "file/table.py": ["read", "iter_batches"],
    "spark/profiler.py": ["profile"],
    "tools/profile/job.py": ["profile_files"],
}


def unused_parameters(function: ast.FunctionDef) -> set[str]:
    names = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    used = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return names - used


def test_no_module_passes_all_its_locals():
    calls = [
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "locals"
    ]
    assert calls == []


def test_all_parameters_are_used():
    for module, names in FUNCTIONS.items():
        tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
        found = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}  # the last overload
        assert [(name, unused_parameters(found[name])) for name in names] == [(name, set()) for name in names]


def test_unused_parameters_are_found():
    (function,) = ast.parse("def f(self, a, *, b=1):\n    'a and b'\n    return a").body
    assert unused_parameters(function) == {"b"}


def test_reads_have_all_scan_options():
    assert set(inspect.signature(numparq.read_parquet).parameters) >= OPTIONS
    assert set(inspect.signature(ReadableTable.read).parameters) >= OPTIONS
    assert OPTIONS - set(inspect.signature(ReadableTable.iter_batches).parameters) == {"progress"}
