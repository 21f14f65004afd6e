"""What docs/style.md asks of names, sentences and sizes, as far as a test can see it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.syntax_trees import PACKAGE, module_paths, module_trees

ROOT = PACKAGE.parent
# Today's exceptions. Each must still be one, and none may grow: the file only shrinks.
EXCEPTIONS = tomllib.loads(Path(__file__).with_name("style_exceptions.toml").read_text())
# Uses of banned words in locals, parameters, attributes and constants: the most in each module, none in others.
MOST_BANNED_BINDINGS = tomllib.loads(Path(__file__).with_name("style_bindings.toml").read_text())
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

# Parts of names that say nothing of the format: docs/style.md has a word for each.
BANNED_IN_NAMES = {
    "about",
    "ahead",
    "alone",
    "apart",
    "asked",
    "ask",
    "beside",
    "crew",
    "distrust",
    "elsewhere",
    "facts",
    "found",
    "given",
    "how",
    "kept",
    "late",
    "look",
    "looked",
    "made",
    "placed",
    "places",
    "place",
    "shown",
    "settle",
    "settled",
    "taken",
    "thing",
    "things",
    "together",
    "told",
    "united",
    "wanted",
    "which",
    "whose",
    "workshop",
}
# First words of a docstring that do not say what is done or what it is.
BANNED_OPENINGS = set(
    "Give Gives Have Let Make Makes Of Say Says Tell Tells There What Whatever Where Which Whose".split()
)
# Phrases of no other engineer, in docstrings, messages and documents.
BANNED_PHRASES = re.compile(
    r"\b(?:(?:is|are|be|was|were) (?:wanted|asked|told|settled)|held against|hold \w+ against|here and there"
    r"|that there (?:is|are)"
    r"|(?:is|are) none of|what is (?:wanted|asked|told|said)|what it is asked|crew|workshop|without saying)\b"
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def address(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield f"{prefix}{child.name}", child
            yield from definitions(child, f"{prefix}{child.name}.")
        else:
            yield from definitions(child, prefix)


def parts_of(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower()))


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of parameters, and of variables and attributes wherever they are set."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def num_banned_bindings(tree: ast.AST) -> int:
    names = (name.lower() if name.isupper() else name for name in bound_names(tree))
    return sum(bool(parts_of(name) & BANNED_IN_NAMES) for name in names)


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module: docstrings, messages, and all other strings with a space."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return module_trees()


def check_limits(sizes: dict[str, int], limit: int, exceptions: dict[str, int]) -> None:
    """Compare sizes above a limit with the exceptions: no others, none larger, none that is not needed."""
    above = {name: size for name, size in sizes.items() if size > limit}
    assert sorted(above.keys() - exceptions.keys()) == [], "too long"
    assert {name: size for name, size in above.items() if size > exceptions[name]} == {}, "exceptions that grew"
    assert sorted(exceptions.keys() - above.keys()) == [], "exceptions that are not needed any more: remove them"


def check_list(found: set[str], exceptions: list[str]) -> None:
    assert sorted(found - set(exceptions)) == []
    assert sorted(set(exceptions) - found) == [], "exceptions that are not needed any more: remove them"


def test_modules_have_at_most_400_lines():
    sizes = {address(path): path.read_text().count("\n") for path in module_paths()}
    check_limits(sizes, MAX_MODULE_LINES, EXCEPTIONS["long_modules"])


@pytest.mark.slow
def test_functions_have_at_most_60_lines_without_parameters_and_docstring(trees):
    sizes = {}
    for module, tree in trees.items():
        for name, node in definitions(tree):
            if not isinstance(node, ast.ClassDef):
                first = node.body[0]
                is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                start = (first.end_lineno or 0) + 1 if is_docstring else first.lineno
                sizes[f"{module}::{name}"] = (node.end_lineno or 0) - start + 1
    check_limits(sizes, MAX_FUNCTION_LINES, EXCEPTIONS["long_functions"])


def test_only_packages_list_their_public_names(trees):
    """In a module these are the names without an underscore; a list of them would have to be kept right."""
    wrong = []
    for module, tree in trees.items():
        targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        has_list = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
        if has_list and not module.endswith("__init__.py") and not module.startswith((*EXCEPTIONS["name_lists"],)):
            wrong.append(module)
    assert wrong == []


def test_each_class_name_is_defined_once(trees):
    homes = defaultdict(list)
    for module, tree in trees.items():
        for name, node in definitions(tree):
            if isinstance(node, ast.ClassDef):
                homes[name.rpartition(".")[2]].append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_module_has_the_name_of_a_public_name_of_its_package(trees):
    """Importing the module would replace the public name as the attribute of the package."""
    wrong = []
    for module, tree in trees.items():
        if not module.endswith("__init__.py"):
            continue
        folder = (PACKAGE / module).parent
        inside = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/*.py")}
        for node in tree.body:
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
            ):
                wrong += [f"{module}: {name}" for name in ast.literal_eval(node.value) if name in inside]
    assert wrong == []


def test_names_have_no_banned_words(trees):
    found = set()
    for module, tree in trees.items():
        if parts_of(Path(module).stem) & BANNED_IN_NAMES:
            found.add(module)
        for name, _ in definitions(tree):
            if parts_of(name.rpartition(".")[2]) & BANNED_IN_NAMES:
                found.add(f"{module}::{name}")
    check_list(found, EXCEPTIONS["names"])


@pytest.mark.slow  # modules that change at once would fail for each other; the list is for whoever edits a module
def test_no_module_binds_more_names_of_banned_words(trees: dict[str, ast.Module]) -> None:
    """Renaming some is progress, with or without an edit of the list, which only shrinks."""
    counts = {module: num_banned_bindings(tree) for module, tree in trees.items()}
    assert {name: count for name, count in counts.items() if count > MOST_BANNED_BINDINGS.get(name, 0)} == {}


def test_banned_bindings_are_counted() -> None:
    code = "FOUND_AT = 1\ndef f(given, *, wanted=1, row=2):\n    for place in row: self.kept_rows = place = row.found"
    assert num_banned_bindings(ast.parse(code)) == 6


def test_docstrings_open_with_a_verb_or_a_subject(trees):
    found = set()
    for module, tree in trees.items():
        for name, node in [("", tree), *definitions(tree)]:
            words = (ast.get_docstring(node) or "").split(maxsplit=1)
            if words and words[0].rstrip(",:") in BANNED_OPENINGS:
                found.add(f"{module}::{name}")
    check_list(found, EXCEPTIONS["docstring_openings"])


def test_texts_have_no_banned_phrases(trees):
    found = {module for module, tree in trees.items() if any(BANNED_PHRASES.search(text) for text in strings(tree))}
    check_list(found, EXCEPTIONS["phrases"])


def test_documents_have_no_banned_phrases():
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    if not all(path.exists() for path in documents) or len(documents) < 2:
        pytest.skip("needs a checkout")
    found = [
        f"{path.name}: {match[0]}"
        for path in documents
        if path.name != "style.md"
        for match in BANNED_PHRASES.finditer(path.read_text())
    ]
    assert found == []
