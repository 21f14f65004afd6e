"""Names of numparq in docstrings and documents exist."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support.syntax_trees import module_trees

PROJECT = Path(__file__).resolve().parents[2]
# The changelog also has former names.
PAGES = [PROJECT / "README.md", *(page for page in (PROJECT / "docs").glob("*.md") if page.name != "changelog.md")]
FOREIGN = {"cache()", "input_file_name()"}  # of Spark
KEYS = {"numparq.layout"}  # keys of metadata
TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def texts() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of numparq, and the documents without their blocks of code."""
    for address, tree in module_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield address, text
    for page in PAGES:
        if page.exists():
            yield page.name, re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def member_names(kind: ast.ClassDef) -> set[str]:
    """Return the names that a class defines, and those that its methods assign to an attribute."""
    found = {node.name for node in ast.walk(kind) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    for node in ast.walk(kind):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return found


class Definitions:
    """Functions and classes of numparq."""

    def __init__(self) -> None:
        nodes = [node for tree in module_trees().values() for node in ast.walk(tree)]
        classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
        self.functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        self.functions |= {*dir(builtins), *(kind.name for kind in classes)}
        self.members = {kind.name: member_names(kind) for kind in classes}
        self.bases = {
            kind.name: [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in kind.bases]
            for kind in classes
        }

    def has_member(self, kind: str, name: str) -> bool:
        """Whether a class has a member, its own or that of a base; true for classes of others."""
        bases = [base for base in self.bases.get(kind, []) if base in self.bases]
        own = self.members.get(kind)
        return own is None or name in own or any(self.has_member(base, name) for base in bases)


def has_address(address: str) -> bool:
    """Whether a dotted name is a module, or a name of one."""
    parts = address.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if isinstance(found, ModuleType) or hasattr(found, part):
                found = getattr(found, part, None)
        return found is not None
    return False


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return Definitions()


def stale_names(text: str, definitions: Definitions) -> set[str]:
    """Return the names in single backticks that look like those of numparq, and do not exist.

    These are addresses below numparq, ``name()`` and ``Class.member`` of a class of numparq.
    """
    stale = set()
    for name in set(TICKED.findall(text)) - FOREIGN - KEYS:
        bare = name.removesuffix("()")
        if re.fullmatch(r"numparq(\.\w+)+", bare):
            exists = has_address(bare)
        elif member := re.fullmatch(r"([A-Z]\w+)\.(\w+)", bare):
            exists = definitions.has_member(member[1], member[2])
        else:
            exists = not re.fullmatch(r"[\w.]+\(\)", name) or bare.rpartition(".")[2] in definitions.functions
        stale |= set() if exists else {name}
    return stale


def test_names_in_texts_exist(definitions):
    assert {(place, name) for place, text in texts() for name in stale_names(text, definitions)} == set()


def test_stale_names_are_found(definitions):
    text = """
        `numparq.Dataset` `numparq.Datasets` `numparq.io.gone` ``numparq.not_a_name``
        `verify()` `verify_all()` `Dataset.files` `Dataset.num_rows` `Dataset.gone` `DataFrame.explode`
    """
    assert stale_names(text, definitions) == {"numparq.Datasets", "numparq.io.gone", "verify_all()", "Dataset.gone"}
