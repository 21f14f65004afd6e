"""Syntax trees of numparq's modules, parsed once per process for all tests that read them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numparq

PACKAGE = Path(numparq.__file__).resolve().parent


@cache
def module_paths() -> list[Path]:
    """Return the modules of numparq."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a module, which must not be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def module_trees() -> dict[str, ast.Module]:
    """Return the syntax trees of all modules by their addresses, such as ``io/open.py``."""
    return {path.relative_to(PACKAGE).as_posix(): syntax_tree(path) for path in module_paths()}
