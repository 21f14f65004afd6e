"""Imports of optional dependencies."""

from __future__ import annotations

from typing import Any


def import_pyarrow(needed_by: str = 'dtype_backend="pyarrow" needs') -> Any:
    """Import pyarrow, or raise an ImportError that names what needs it.

    `needed_by` is a subject with its verb, such as ``'dtype_backend="pyarrow" needs'``.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"{needed_by} pyarrow; install it, or numparq[arrow]") from error
    return pa
