"""`numparq doctor`: versions, where kernels come from, optional packages, and what is slow here and why."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from numparq.kernels.compile import prebuilt
from numparq.kernels.compile.bind import execution_modes, is_compiled
from numparq.kernels.groups import GROUPS
from numparq.util import disk_cache
from numparq.util.version import __version__

from .terminal import open_console

# Packages that may be missing, with their purpose.
OPTIONAL = {
    "pyarrow": "Arrow data, dtype_backend='pyarrow', pandas' own reader",
    "fsspec": "files on object stores and HTTP",
    "cryptography": "encrypted files",
    "numba": "compiling kernels where they are not prebuilt",
    "pyspark": "numparq.spark",
    "geopandas": "GEOMETRY columns as geopandas' types",
}
REQUIRED = ("numpy", "pandas", "cramjam", "xxhash", "zstandard", "rich")


def doctor(as_json: bool) -> int:
    """Print what numparq found here; return 1 if kernels cannot run."""
    report = examine()
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0 if report["kernels"]["runs"] else 1


def examine() -> dict[str, Any]:
    """Return versions, the state of the kernels, optional packages and advice, as JSON values."""
    kernels = _kernels()
    packages = {name: _version(name) for name in (*REQUIRED, *OPTIONAL)}
    return {
        "numparq": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": packages,
        "java": _java(),
        "kernels": kernels,
        "advice": _advice(kernels, packages),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> str | None:
    """Return the path of the Java that Spark starts."""
    home = os.environ.get("JAVA_HOME", "")
    return shutil.which("java", path=os.path.join(home, "bin")) or shutil.which("java")


def _kernels() -> dict[str, Any]:
    """Return the ways in which kernels may run, the one that does, and where they come from."""
    modes = execution_modes()
    state: dict[str, Any] = {"allowed": list(modes), "runs": None, "level": None, "path": None, "no_library": None}
    if modes[0] not in ("object", "dispatcher", "python"):
        try:
            prebuilt.load_library("" if modes[0] == "library" else modes[0])
        except prebuilt.NoLibraryError as error:
            state["no_library"] = str(error)
        else:
            levels, highest = _library_levels()
            level = highest if modes[0] == "library" else modes[0]
            return state | {"runs": "library", "level": level, "levels": levels, "path": str(prebuilt.LIBRARY)}
    fallbacks = [mode for mode in modes if mode in ("object", "dispatcher") and _version("numba")]
    state["runs"] = "python" if modes == ("python",) else next(iter(fallbacks), None)
    state["path"] = _cache_folder()
    state["compiled"] = [group for group in GROUPS if is_compiled(group)] if state["runs"] == "object" else []
    return state


def _library_levels() -> tuple[list[str], str]:
    """Return the CPU levels of the loaded library, and the highest that this CPU runs."""
    module = sys.modules["numparq.kernels._kernels"]
    levels = module.levels.split()
    return levels, levels[module.level()]


def _cache_folder() -> str | None:
    try:
        return disk_cache.directory()
    except OSError:
        return None


def _advice(kernels: dict[str, Any], packages: dict[str, str | None]) -> list[str]:
    """Return what is slow or does not work here, each with its remedy."""
    advice = []
    if kernels["runs"] is None:
        advice.append(f"kernels cannot run ({kernels['no_library']}): pip install 'numparq[jit]' compiles them")
    if kernels["runs"] == "object" and len(kernels["compiled"]) < len(GROUPS):
        advice.append(
            "kernels are compiled at first use, which takes seconds; `numparq warmup` compiles them now, a wheel has "
            f"them (no library here: {kernels['no_library']})"
        )
    if kernels["runs"] == "dispatcher":
        advice.append(
            "kernels run by Numba's dispatchers, which start slowly: see NUMPARQ_KERNELS and NUMBA_BOUNDSCHECK"
        )
    if kernels["runs"] == "python":
        advice.append("kernels run as Python, hundreds of times slower: NUMPARQ_KERNELS or NUMBA_DISABLE_JIT")
    if kernels["runs"] == "library" and kernels["level"] != kernels["levels"][-1]:
        advice.append(f"kernels for {kernels['level']} are in use; newer CPUs run those for {kernels['levels'][-1]}")
    if not _is_intact():
        advice.append(f"{prebuilt.LIBRARY} differs from the installed wheel's: install numparq anew")
    if packages["pyspark"] and not _java():
        advice.append("pyspark is installed, and Java is not found: set JAVA_HOME")
    return advice


def _is_intact() -> bool:
    """Whether the library has the SHA-256 digest that the wheel's RECORD lists; true if it lists none."""
    try:
        files = distribution("numparq").files or []
    except PackageNotFoundError:
        return True
    for file in files:
        if file.name == prebuilt.LIBRARY.name and file.hash is not None and file.hash.mode == "sha256":
            digest = hashlib.sha256(Path(file.locate()).read_bytes()).digest()
            return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value
    return True


def _print(report: dict[str, Any]) -> None:
    console, kernels = open_console(), report["kernels"]
    ways = {
        "library": f"prebuilt for {kernels['level']}, in {kernels['path']}",
        "object": f"compiled at first use, and cached in {kernels['path']}",
        "dispatcher": "run by Numba's dispatchers",
        "python": "run as Python",
        None: f"not available: {kernels['no_library']}",
    }
    lines = {
        "numparq": report["numparq"],
        "Python": f"{report['python']}, {report['executable']}",
        "system": f"{report['system']}, {report['machine']}, {report['cores']} cores",
        "kernels": ways[kernels["runs"]],
        "packages": ", ".join(f"{name} {report['packages'][name]}" for name in REQUIRED),
        **{name: report["packages"][name] or f"not installed: {purpose}" for name, purpose in OPTIONAL.items()},
        "Java": report["java"] or "not found: Spark needs it",
    }
    width = max(map(len, lines)) + 2
    for name, text in lines.items():
        console.print(f"{name:{width}}{text}", markup=False, soft_wrap=True)
    for sentence in report["advice"]:
        console.print(f"- {sentence}", markup=False, soft_wrap=True)
