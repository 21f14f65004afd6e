"""Load the prebuilt library: kernels compiled before numparq was installed, as an extension module of this package."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from . import load
from .extension_module import MODULE_NAME

if TYPE_CHECKING:
    from types import ModuleType

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


_NAME = f"numparq.kernels.{MODULE_NAME}"
# Read early: an upgrade may replace library and sources while this process runs.
_DIGEST = _packaged_digest()


@lru_cache(maxsize=1)
def load_library(level: str = "") -> dict[str, Callable[..., int]]:
    """Return the kernels of the library by name, for a CPU level or for the highest that this CPU runs.

    Raises NoLibraryError.
    """
    try:
        archive = getattr(__spec__.loader, "archive", None)
        module = import_module(_NAME) if archive is None else _import_from_zip()
        load.check_layout()
    except (ImportError, OSError, load.ObjectLayoutError) as error:
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


def _import_from_zip() -> ModuleType:
    """Import the library of a zip file, which the system can load from a folder only: from a copy in the cache.

    Raises OSError without a library, or without a folder that only this user can write.
    """
    from numparq.util import disk_cache

    code = __spec__.loader.get_data(str(LIBRARY))  # type: ignore[union-attr]
    folder = disk_cache.private_directory("library", hashlib.sha256(code).digest())
    if folder is None:
        raise OSError(f"{LIBRARY} is in a zip file, and no folder for a copy is writable: set NUMPARQ_CACHE_DIR")
    path = Path(folder, LIBRARY.name)
    if not path.is_file() or path.read_bytes() != code:
        disk_cache.replace_file(str(path), code)
    spec = spec_from_file_location(_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
