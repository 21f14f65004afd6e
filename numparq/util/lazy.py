"""Public names of a package, each imported when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    `names` maps public names to modules below the package that define them; `modules` maps public names to modules.
    """
    public_modules = modules or {}

    def get(name: str) -> Any:
        if name in public_modules:
            return import_module(f".{public_modules[name]}", package)
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{names[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        dunders = {name for name in vars(sys.modules[package]) if name.startswith("__")}
        return sorted({*names, *public_modules, *dunders})

    return get, list_names
