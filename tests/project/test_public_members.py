"""Members of public objects: `dir` shows those that are documented."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator

import pytest

from support.public_names import public_classes

OWN = {"numparq", __name__.partition(".")[0]}
SECTION = re.compile(r"^(Attributes|Parameters)\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)


def own_bases(kind: type) -> list[type]:
    """Return a class and the bases of it that are not of Python or another library."""
    return [each for each in kind.__mro__ if each.__module__.partition(".")[0] in OWN]


def listed_attributes(kind: type) -> set[str]:
    """Return the names in the Attributes sections of a class and its bases; the parameters of a dataclass are too."""
    titles = ("Attributes", "Parameters") if dataclasses.is_dataclass(kind) else ("Attributes",)
    sections = [each for base in own_bases(kind) for each in SECTION.findall(inspect.cleandoc(base.__doc__ or ""))]
    lines = [line for title, text in sections if title in titles for line in text.splitlines() if line[:1].strip()]
    return {name.strip() for line in lines for name in line.partition(" : ")[0].split(",")}


def assigned_attributes(kind: type) -> Iterator[str]:
    """Yield the names that methods of a class and its bases assign to `self`."""
    for base in own_bases(kind):
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            is_assigned = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            if is_assigned and isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr


def has_docstring(kind: type, name: str) -> bool:
    """Whether a method or property has a docstring, its own or that of a base."""
    for base in own_bases(kind):
        member = vars(base).get(name)
        is_field = inspect.ismemberdescriptor(member) or type(member).__name__ == "_tuplegetter"
        if hasattr(type(member), "__get__") and not is_field and member.__doc__:
            return True
    return False


def undocumented(kind: type) -> set[str]:
    """Return the public names that `dir` shows of an instance and no docstring documents."""
    inherited = {name for base in kind.__mro__ if base not in own_bases(kind) for name in dir(base)}
    names = {name for name in {*dir(kind), *assigned_attributes(kind)} if not name.startswith("_")}
    return {name for name in names - inherited - listed_attributes(kind) if not has_docstring(kind, name)}


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_members_are_documented(kind):
    assert undocumented(kind) == set()


def test_undocumented_members_are_found():
    class Example:
        """Example.

        Attributes
        ----------
        first, second : int
            Documented.
        """

        third = 3

        def method(self):
            self.first = self.second = self.fourth = 1

        def documented(self):
            """Return nothing."""

    assert undocumented(Example) == {"third", "fourth", "method"}
