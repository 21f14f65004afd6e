"""One frame into a dataset: what `numparq.to_parquet` does where it is asked for many files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .writer import DatasetWriter

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_dataset"]


def write_dataset(
    df: pd.DataFrame,
    path: Any,
    index: bool | None = None,
    *,
    append: bool = False,
    existing_data_behavior: str = "error",
    **options: Any,
) -> None:
    """Write a frame as a dataset.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame.
    path : str or os.PathLike
        The folder.
    index : bool, optional
        As in `DatasetWriter.write`.
    append : bool
        The same as `existing_data_behavior` of ``"overwrite_or_ignore"``.
    existing_data_behavior, **options
        As in `DatasetWriter`.
    """
    if path is None:
        raise ValueError("many files need a folder: path is its name")
    if append:
        if existing_data_behavior == "delete_matching":
            raise ValueError("append=True adds files, and existing_data_behavior='delete_matching' replaces them")
        existing_data_behavior = "overwrite_or_ignore"
    with DatasetWriter(path, existing_data_behavior=existing_data_behavior, **options) as writer:
        writer.write(df, index)
