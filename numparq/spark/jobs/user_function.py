"""Call a user's pandas function in a task: its frames, its partial results."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, get_origin

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from numparq.dataset.splits.reader import SplitReader
    from numparq.dataset.splits.split import Split

    from .results import ResultBatchBuilder

ROW_POSITION = "numparq place"  # column that orders partial results
_POSITIONS_PER_SPLIT = 1 << 40  # maximum result rows of a split


class SplitMapper:
    """Task function that reads a split and yields the batches of a user's function."""

    def __init__(
        self, reader: SplitReader, fn: Callable[[Any], Any], results: ResultBatchBuilder, rows: int | None
    ) -> None:
        self._reader = reader
        self._fn = fn if _takes_iterator(fn) else _FrameFunction(fn)
        self._results = results
        self._rows = rows

    def __call__(self, number: int, split: Split) -> Iterator[Any]:  # noqa: D102
        frames = _non_empty_frames(self._reader, split, self._rows)
        begun = list(islice(frames, 1))
        if begun:
            for made in self._fn(_chain(begun, frames)):
                yield from self._results.from_frame(made)


class _FrameFunction:
    """Function of a frame, wrapped as one of an iterator of frames."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            made = self._fn(frame)
            del frame
            yield made


class RowNumberer:
    """Task function that adds each result row's position among those of all splits."""

    def __init__(self, job: SplitMapper) -> None:
        self._job = job

    def __call__(self, number: int, split: Split) -> Iterator[Any]:  # noqa: D102
        import numpy as np
        import pyarrow as pa

        start = number * _POSITIONS_PER_SPLIT
        for batch in self._job(number, split):
            places = pa.array(np.arange(start, start + batch.num_rows))
            yield pa.RecordBatch.from_arrays([*batch.columns, places], names=[*batch.schema.names, ROW_POSITION])
            start += batch.num_rows


class PartialAggregator:
    """Task function that returns the partial results of a split's frames."""

    def __init__(self, partial: Callable[[Any], Any], rows: int | None) -> None:
        self._partial = partial
        self._rows = rows

    def __call__(self, reader: SplitReader, split: Split) -> list[Any]:  # noqa: D102
        frames = _non_empty_frames(reader, split, self._rows)
        return [check_partial_result(self._partial(frame), self._partial) for frame in frames]


def arrow_group_function(final: Callable[[Any], Any], results: ResultBatchBuilder) -> Callable[[pa.Table], pa.Table]:
    """Wrap a function of a key's frame as one of an Arrow table, annotated as Spark requires."""
    import pyarrow as pa

    def call(table: pa.Table) -> pa.Table:
        from numparq.spark.scan.arrow_batches import RecordBatchBuilder
        from numparq.spark.tasks import begin_task

        begin_task()
        frame = table.sort_by(ROW_POSITION).drop_columns([ROW_POSITION]).to_pandas(types_mapper=_nullable)
        return pa.Table.from_batches(list(results.from_frame(final(frame))), RecordBatchBuilder(results.schema).schema)

    call.__annotations__ = {"table": pa.Table, "return": pa.Table}
    return call


def _non_empty_frames(reader: SplitReader, split: Split, rows: int | None) -> Iterator[pd.DataFrame]:
    """Yield the frames of a split that have rows: one, or with `rows` as many as needed."""
    for frame in map(reader.frame, [split]) if rows is None else reader.frames(split, rows):
        if len(frame):
            yield frame
        del frame  # free it before the next one is decoded


def _chain(begun: list[Any], others: Iterator[Any]) -> Iterator[Any]:
    """Yield the frames of a list while emptying it, so that none is held; then the others."""
    while begun:
        yield begun.pop(0)
    yield from others


def _nullable(of: Any) -> Any:
    """Return the nullable dtype of integers and booleans; None leaves the choice to pyarrow."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_integer(of):
        return getattr(pd, f"Int{of.bit_width}Dtype")()
    return pd.BooleanDtype() if pa.types.is_boolean(of) else None


# --- inspecting the user's functions ----------------------------------------------------------------------------------


def function_name(fn: Callable[..., Any]) -> str:
    """Return the name of a callable."""
    return getattr(fn, "__qualname__", None) or type(fn).__qualname__


def _takes_iterator(fn: Callable[..., Any]) -> bool:
    """Whether a function takes an iterator of frames: a generator function, or annotated so."""
    call = fn if inspect.isroutine(fn) or inspect.isclass(fn) else getattr(fn, "__call__", fn)  # noqa: B004
    if inspect.isgeneratorfunction(fn) or inspect.isgeneratorfunction(call):
        return True
    try:
        signature = inspect.signature(fn, eval_str=True)
    except (TypeError, ValueError, NameError, SyntaxError, AttributeError):
        try:
            signature = inspect.signature(fn)
        except (TypeError, ValueError):
            return False
    parameters = [parameter.annotation for parameter in signature.parameters.values()]
    return any(_is_iterator(annotation) for annotation in (signature.return_annotation, *parameters[:1]))


def _is_iterator(annotation: Any) -> bool:
    if isinstance(annotation, str):
        name = annotation.partition("[")[0].rpartition(".")[2]
        return name in ("Iterator", "Iterable", "Generator")
    return (get_origin(annotation) or annotation) in (
        collections.abc.Iterator,
        collections.abc.Iterable,
        collections.abc.Generator,
    )


def check_partial_result(result: Any, partial: Callable[..., Any]) -> Any:
    """Return a partial result; raise TypeError if it is no DataFrame or Series."""
    import pandas as pd

    if not isinstance(result, pd.DataFrame | pd.Series):
        raise TypeError(f"{function_name(partial)} must return a DataFrame or a Series, not {result!r:.100}")
    return result


def concat_results(results: list[Any]) -> Any:
    """Concatenate partial results; empty ones count only if all are empty."""
    import pandas as pd

    some = [result for result in results if len(result)]
    return pd.concat(some) if some else results[0]
