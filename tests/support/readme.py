"""Run the README's examples as a reader does: `python readme.py README.md`, in the folder of the demo's file."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

# The extras of the README's first command, and what they bring, are all that a reader has.
FIRST_COMMAND = re.compile(r"pip install -q -e '\.(\[.*?\])' && numparq demo$", re.MULTILINE)


def run_examples(text: str) -> int:
    """Run Python blocks in one session, and lines of shell blocks that begin with ``numparq``, in order; count them."""
    from numparq.cli import main

    names: dict = {"__name__": "__main__"}
    blocks = 0
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        commands = [line for line in block.splitlines() if language == "sh" and line.startswith("numparq ")]
        for command in commands:
            assert main(shlex.split(command, comments=True)[1:]) == 0, command
        if language == "python":
            exec(block, names)
        blocks += language == "python" or bool(commands)
    return blocks


def requirement_closure(requirements: list[str]) -> set[str]:
    """Return the normalised names of all distributions that installed requirements bring."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    names: set[str] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        one, extra = waiting.pop()
        name = canonicalize_name(one.name)
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        known = name in names
        names.add(name)
        try:
            inner = [Requirement(text) for text in (requires(name) or ()) if not known or one.extras]
        except PackageNotFoundError:  # for another system or version of Python
            continue
        waiting += [(each, of) for each in inner for of in ("", *one.extras) if of or not known]
    return names


class HideOthers:
    """Finder that hides the modules of all installed distributions but some."""

    def __init__(self, distributions: set[str]) -> None:
        from importlib.metadata import packages_distributions

        from packaging.utils import canonicalize_name

        self.hidden = {
            module
            for module, owners in packages_distributions().items()
            if not any(canonicalize_name(owner) in distributions for owner in owners)
        } - {"numparq"}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Raise ModuleNotFoundError for a hidden module."""
        if name.partition(".")[0] in self.hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def hide_modules_outside(project: Path, text: str) -> None:
    """Hide all modules that the README's first command does not install."""
    import tomllib

    (extras,) = FIRST_COMMAND.findall(text)
    table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    names = [name.strip() for name in extras.strip("[]").split(",")]
    installed = [*table["dependencies"], *(one for name in names for one in table["optional-dependencies"][name])]
    sys.meta_path.insert(0, HideOthers(requirement_closure(installed)))


if __name__ == "__main__":
    readme = Path(sys.argv[1]).resolve()
    if "--hide-others" in sys.argv:
        hide_modules_outside(readme.parent, readme.read_text())
    for _ in range(2):  # a reader repeats what worked
        print(f"{run_examples(readme.read_text())} examples ran")
