"""Load the prebuilt library: kernels compiled before numparq was installed, as an extension module of this package."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from . import load
from .extension_module import MODULE_NAME

LIBRARY = Path(__file__).parents[1] / f"{MODULE_NAME}.abi3.so"
DIGEST_FILE = LIBRARY.with_name(f"{MODULE_NAME}.digest")  # in a wheel; a checkout's library is compared with sources


class NoLibraryError(ImportError):
    """No library fits this process."""


def source_digest() -> str:
    """Return the SHA-256 digest of what a library is built from: all sources of the package `kernels`."""
    digest = hashlib.sha256()
    for name, path in sorted(load.kernel_sources().items()):
        for part in (name.encode(), path.read_bytes()):
            digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _packaged_digest() -> str:
    try:
        return DIGEST_FILE.read_text()
    except OSError:
        return ""


# Read early: an upgrade may replace library and sources while this process runs.
_DIGEST = _packaged_digest()


@lru_cache(maxsize=1)
def load_library(level: str = "") -> dict[str, Callable[..., int]]:
    """Return the kernels of the library by name, for a CPU level or for the highest that this CPU runs.

    Raises NoLibraryError.
    """
    try:
        module = import_module(f"numparq.kernels.{MODULE_NAME}")
        load.check_layout()
    except (ImportError, load.ObjectLayoutError) as error:
        raise NoLibraryError(str(error)) from None
    if module.digest != (_DIGEST or source_digest()):
        raise NoLibraryError(f"{module.__file__} was built from other sources")
    levels, highest = module.levels.split(), module.level()
    runs = levels[: highest + 1]
    if not runs or level not in ("", *runs):
        raise NoLibraryError(
            f"{module.__file__} is for {level or ', '.join(levels)}, and this CPU runs {runs or 'none'}"
        )
    return load.use_level(module, levels.index(level) if level else highest)
