"""Public names: what `dir` shows, and the addresses that the documentation uses."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.public_names import PACKAGES

PROJECT = Path(__file__).resolve().parents[2]
# Pages for those who work on numparq itself; the changelog also has former addresses.
INTERNAL_PAGES = {"architecture.md", "changelog.md", "contributing.md", "kernels.md", "style.md"}
PAGES = [PROJECT / "README.md", *(page for page in (PROJECT / "docs").glob("*.md") if page.name not in INTERNAL_PAGES)]

LIST_NAMES = """
import importlib, pkgutil, sys
import numparq
for module in pkgutil.walk_packages(numparq.__path__, "numparq."):
    if "spark" not in module.name and "__main__" not in module.name:
        importlib.import_module(module.name)
for name in sys.argv[1:]:
    package = sys.modules.get(name) or importlib.import_module(name)
    names = set(dir(package)) - set(getattr(package, "__all__", ())) - {"pandas", "spark", "variant", "errors"}
    assert name == "numparq.errors" or not {each for each in names if not each.startswith("__")}, (name, names)
    assert set(getattr(package, "__all__", ())) <= set(dir(package)), name
"""


@pytest.mark.slow
def test_dir_shows_public_names_after_all_modules_are_imported():
    packages = [name for name in PACKAGES if name not in ("numparq.variant", "numparq.cli")]
    run = subprocess.run([sys.executable, "-c", LIST_NAMES, *packages], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def addresses(text: str) -> set[str]:
    """Return the dotted names below numparq that a page uses, whether imported or written out."""
    found = set(re.findall(r"(?<![./\w])numparq(?:\.\w+)+", re.sub(r"numparq\.errors\.(\w+)", r"numparq.\1", text)))
    for module, names in re.findall(r"from (numparq[\w.]*) import ([\w, ]+)", text):
        found |= {f"{module}.{name.strip().split(' ')[0]}" for name in names.split(",")}
    return found


def is_public(address: str) -> bool:
    """Whether a dotted name is a public package, a name of one, or an attribute of such a name."""
    parts = address.split(".")
    for count in range(len(parts), 0, -1):
        package = ".".join(parts[:count])
        if package in PACKAGES or any(each.startswith(package + ".") for each in PACKAGES if count > 1):
            if count == len(parts):
                return True
            module = importlib.import_module("numparq.format.variant" if package == "numparq.variant" else package)
            return parts[count] in getattr(module, "__all__", ())
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documents_use_public_addresses(page):
    if not page.exists():
        pytest.skip("no documentation beside the tests")
    ignored = re.compile("numparq.(lost|layout|DefaultSource|spark.daemon)$")  # keys, Spark's class, a setting
    assert sorted(each for each in addresses(page.read_text()) if not is_public(each) and not ignored.match(each)) == []


@pytest.mark.skipif(not (PROJECT / "docs").is_dir(), reason="no docs/ beside the tests")
def test_index_lists_the_public_packages():
    listed = re.findall(r"^\| `(numparq[\w.]*)` \|", (PROJECT / "docs" / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == PACKAGES
