"""The package as a zip file, and a Python in which numparq is not installed."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

import numparq


def zip_package(folder: Path) -> Path:
    """Pack numparq as ``numparq.zip``, as a user does with an installed one for ``--py-files``."""
    package = Path(numparq.__file__).parent
    copy = folder / "copy"
    shutil.copytree(package, copy / "numparq", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.make_archive(str(folder / "numparq"), "zip", copy))


def python_without_numparq(folder: Path) -> Path:
    """Write a program that runs this Python with its libraries, but without ``.pth`` files of editable installs."""
    own = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    others = [path for path in sys.path if path.endswith("site-packages")]  # that a ``.pth`` file adds
    libraries = ":".join(dict.fromkeys([*own, *others]))
    program = folder / "python-without-numparq"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec "{sys.executable}" -S -P "$@"\n')
    program.chmod(0o755)
    return program
