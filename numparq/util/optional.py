"""Imports of optional dependencies."""

from __future__ import annotations

from typing import Any


def import_pyarrow(needed_by: str = 'dtype_backend="pyarrow" needs') -> Any:
    """Import pyarrow, or say what it is needed for.

    Parameters
    ----------
    needed_by : str
        What wants it, and its verb.

    Raises
    ------
    ImportError
        When pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"{needed_by} pyarrow; install it, or numparq[arrow]") from error
    return pa
