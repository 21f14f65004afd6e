"""Docstrings of public functions name the parameters of the signature."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.public_names import public_classes, public_objects

SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def public_functions() -> Iterator[tuple[str, Any]]:
    """Yield public functions, public classes, and the methods of these, by name."""
    yield from ((name, each) for name, each in public_objects() if inspect.isfunction(each))
    for kind in public_classes():
        yield kind.__name__, kind
        for name in dir(kind):
            method = getattr(kind, name)
            module = str(getattr(method, "__module__", ""))
            if not name.startswith("_") and callable(method) and module.startswith("numparq"):
                yield f"{kind.__name__}.{name}", method


FUNCTIONS = dict(public_functions())


def parameters(function: Any) -> list[str]:
    """Return the parameters of a signature, with stars for further ones; those with an underscore are internal."""
    found = inspect.signature(function).parameters.values()
    return [STARS.get(each.kind, "") + each.name for each in found if each.name != "self" and each.name[0] != "_"]


def documented_parameters(text: str) -> list[str]:
    """Return the names in the Parameters section of a docstring."""
    lines = [line for section in SECTION.findall(text) for line in section.splitlines() if line[:1].strip()]
    return [name.strip() for line in lines for name in line.partition(" : ")[0].split(",")]


def differences(function: Any) -> list[str]:
    """Return the parameters that only the signature or only the docstring has.

    A docstring without a Parameters section needs no names for a class, which has attributes, for a single parameter,
    or where it says that they are those of another function. All others name each parameter.
    """
    text, names = inspect.getdoc(function) or "", parameters(function)
    documented = documented_parameters(text)
    if documented:
        return sorted(set(names) ^ set(documented))
    if inspect.isclass(function) or len(names) < 2 or re.search(r"parameters\b.* as in `", text):
        return []
    return [name for name in names if not re.search(rf"\b{name.strip('*')}\b", text)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_documented_parameters_are_those_of_the_signature(name):
    assert differences(FUNCTIONS[name]) == []


def test_differences_are_found():
    def stale(first, *, second, **options):
        """Return nothing.

        Parameters
        ----------
        first, third : int
            Two numbers.
        """

    def brief(first, second):
        """Return the second of two."""

    assert differences(stale) == ["**options", "second", "third"]
    assert differences(brief) == ["first"]
