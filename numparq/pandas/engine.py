"""pandas' engine object: read and write one file or dataset with numparq."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_file_like
from pandas.io import parquet
from pandas.io.common import check_parent_directory

from numparq.api.read import read_parquet
from numparq.api.write import to_parquet
from numparq.file.pyarrow_arguments import ReadArguments, translate_write
from numparq.typing import Columns, Compression, Filters, PathOrBuffer, PathOrPaths, StorageOptions

from .maps import cast_maps

# Options that make the path a dataset, besides partition_cols; its folders are created.
_DATASET_OPTIONS = ("max_rows_per_file", "max_bytes_per_file", "write_metadata_file")

# Returns the target of a string dtype: another storage, or object.
DtypeChooser = Callable[[pd.StringDtype], Any]


class NumparqImpl(parquet.BaseImpl):  # type: ignore[misc]
    """pandas' engine ``"numparq"``."""

    def read(
        self,
        path: PathOrPaths,
        columns: Columns = None,
        filters: Filters = None,
        dtype_backend: Any = None,
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        to_pandas_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> pd.DataFrame:
        """Read a file into a frame, for `pandas.read_parquet`.

        Parameters
        ----------
        path, columns, filters, dtype_backend, storage_options, filesystem
            As in `pandas.read_parquet`; `filters` may be an expression of `numparq.col`.
        to_pandas_kwargs : dict, optional
            Arguments of ``pyarrow.Table.to_pandas`` that apply here.
        **kwargs
            Arguments of `numparq.read_parquet`, and those of ``pyarrow.parquet.read_table`` that apply here.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        UnsupportedError
            For an argument of pyarrow's without an equivalent; the message names the alternative.
        """
        check_filesystem(filesystem, storage_options)
        reading = ReadArguments.from_pandas(kwargs, to_pandas_kwargs)
        with _open(path, storage_options, filesystem) as (source, place):
            options = place | reading.options
            frame = read_parquet(source, columns, filters, dtype_backend=dtype_backend, **options)
            if reading.maps_as_pydicts is not None:
                cast_maps(frame, reading.maps_as_pydicts, source, options)
        apply_string_options(frame, dtype_backend)
        return frame

    def write(
        self,
        df: pd.DataFrame,
        path: PathOrBuffer | None,
        compression: Compression = "snappy",
        index: bool | None = None,
        partition_cols: list[str] | None = None,
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        **kwargs: Any,
    ) -> None:
        """Write a frame to a file, for `DataFrame.to_parquet`.

        Parameters
        ----------
        df, path, compression, index, partition_cols, storage_options, filesystem
            As in `DataFrame.to_parquet`.
        **kwargs
            Arguments of `numparq.to_parquet`, and those of ``pyarrow.parquet.write_table`` that apply here.

        Raises
        ------
        UnsupportedError
            For an argument of pyarrow's without an equivalent; the message names the alternative.
        """
        self.validate_dataframe(df)
        check_filesystem(filesystem, storage_options)
        target = _strip_localhost(path)
        options = translate_write(kwargs)
        is_one = partition_cols is None and not any(options.get(name) for name in _DATASET_OPTIONS)
        if is_one and filesystem is None and _is_local(target):
            check_parent_directory(os.path.expanduser(target))
        to_parquet(
            df,
            target,
            compression,
            index,
            partition_cols,
            storage_options=storage_options,
            filesystem=filesystem,
            **options,
        )


def check_filesystem(filesystem: Any, storage_options: StorageOptions) -> None:
    """Check `filesystem`, and that pyarrow's comes without `storage_options`; errors are pandas' own."""
    if filesystem is None:
        return
    if hasattr(filesystem, "get_file_info"):  # pyarrow's
        if storage_options:
            raise NotImplementedError("storage_options not supported with a pyarrow FileSystem.")
    elif not hasattr(filesystem, "cat_file"):  # fsspec's
        raise ValueError(f"filesystem must be a pyarrow or fsspec FileSystem, not a {type(filesystem).__name__}")


@contextmanager
def _open(path: Any, storage_options: Any, filesystem: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield what numparq reads, and its location options.

    pandas opens HTTP URLs itself, with `storage_options` as headers.
    """
    if filesystem is None and isinstance(path, str) and path.startswith(("http://", "https://")):
        with parquet.get_handle(path, "rb", is_text=False, storage_options=storage_options) as handles:
            yield handles.handle, {}
    else:
        yield _strip_localhost(path), {"storage_options": storage_options, "filesystem": filesystem}


def _strip_localhost(path: Any) -> Any:
    """Drop the host from the URL of a local file."""
    if isinstance(path, str) and path.startswith("file://localhost/"):
        return "file://" + path.removeprefix("file://localhost")
    return path


def _is_local(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and not is_file_like(path) and "://" not in os.fspath(path)


def apply_string_options(frame: pd.DataFrame, dtype_backend: Any) -> None:
    """Cast a frame's strings, in place, to the dtype that pandas' options demand of every engine.

    With an explicit `dtype_backend`, ``future.infer_string`` does not apply to values.
    """
    storage, inferred = pd.get_option("mode.string_storage"), _infers_str()
    if storage == "auto" and inferred:
        return
    of_names = _dtype_chooser(storage, not inferred)
    of_values = of_names if dtype_backend not in ("numpy_nullable", "pyarrow") else _dtype_chooser(storage, False)
    for place in range(frame.shape[1]):
        values = _cast(frame.iloc[:, place].array, of_values, of_names)
        if values is not None:
            frame.isetitem(place, pd.Series(values, frame.index, copy=False))
    frame.index = _cast_index(frame.index, of_values, of_names)
    frame.columns = _cast_index(frame.columns, of_names, of_names)


def _dtype_chooser(storage: str, as_objects: bool) -> DtypeChooser:
    def choose(dtype: pd.StringDtype) -> Any:
        if as_objects and dtype.na_value is not pd.NA:
            return np.dtype(object)
        return dtype if storage in ("auto", dtype.storage) else pd.StringDtype(storage, dtype.na_value)

    return choose


def _infers_str() -> bool:
    """Whether strings get the dtype ``str``; reading the option itself is deprecated."""
    return bool(pd.Index([""]).dtype != object)


def _cast(values: Any, choose: DtypeChooser, of_categories: DtypeChooser) -> Any:
    """Cast strings, or string categories; None if nothing changes."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _cast(dtype.categories.array, of_categories, of_categories)
        if categories is None:
            return None
        index = pd.Index(categories, dtype=categories.dtype)
        return pd.Categorical.from_codes(values.codes, dtype=pd.CategoricalDtype(index, dtype.ordered))
    if not isinstance(dtype, pd.StringDtype) or (after := choose(dtype)) is dtype:
        return None
    if isinstance(after, pd.StringDtype):
        return values.astype(after)
    objects = np.array(values, dtype=object)
    objects[np.asarray(values.isna())] = None
    return objects


def _cast_index(index: pd.Index, choose: DtypeChooser, of_categories: DtypeChooser) -> pd.Index:
    if isinstance(index, pd.MultiIndex):
        levels = [_cast_index(level, choose, of_categories) for level in index.levels]
        return index.set_levels(levels, verify_integrity=False)
    values = _cast(index.array, choose, of_categories)
    return index if values is None else pd.Index(values, dtype=values.dtype, name=index.name)
