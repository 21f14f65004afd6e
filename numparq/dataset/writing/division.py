"""A frame divided by the values of its partition columns: which rows belong to which partition, in their order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...errors import SchemaError, located
from ...shred.frame import arrow_field, column_of
from ...shred.given import GivenColumn, GivenSchema
from ...shred.labels import field_names
from .texts import check_type, texts_of

__all__ = ["Division", "PartitionColumns", "check_some_are_left", "divided"]

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Division:
    """Which rows belong to which partition.

    Parameters
    ----------
    order : int64 or None
        The positions of all rows, partition after partition, in each as in the frame. None where they are so already.
    bounds : int64
        Where in `order` each partition begins, and, as the last one, where the last ends.
    values : list of tuple of (str or None)
        The text of the values of each partition, by column.
    """

    order: np.ndarray | None
    bounds: np.ndarray
    values: list[Values]


class PartitionColumns:
    """The columns of a frame by which it is divided.

    Parameters
    ----------
    wanted : sequence of labels
        Their labels in frames, or their names in files.

    Attributes
    ----------
    names : tuple of str
        What they are called in the names of folders; known once a frame was seen.
    kinds : dict of str to str
        Of what kinds of types their values are, as far as there were any.
    """

    def __init__(self, wanted: Sequence[Any]) -> None:
        if len(set(wanted)) < len(wanted):
            twice = next(name for name in wanted if list(wanted).count(name) > 1)
            raise SchemaError("a partition column is named twice", column=str(twice))
        self._wanted = list(wanted)
        self.kinds: dict[str, str] = {}
        self.names: tuple[str, ...] = ()

    def split(self, df: pd.DataFrame) -> tuple[list[pd.Series], pd.DataFrame]:
        """Give the partition columns of a frame, and the frame without them; nothing is copied."""
        names = field_names(list(df.columns))
        places = [_place(df, names, wanted) for wanted in self._wanted]
        if len(set(places)) < len(places):
            raise SchemaError("a partition column is named twice", column=names[places[0]])
        self.names = tuple(names[place] for place in places)
        check_some_are_left(self.names, names)
        return [df.iloc[:, place] for place in places], _without(df, places)

    def divide(self, columns: Sequence[pd.Series], num_rows: int, given: GivenSchema) -> Division:
        """Divide rows by the values of the partition columns.

        Parameters
        ----------
        columns : sequence of pandas.Series
            As `split` gives them.
        num_rows : int
            Rows of the frame.
        given : GivenSchema
            The types that columns are to have.

        Returns
        -------
        Division
        """
        partition = np.zeros(num_rows, np.int64)
        combinations = np.zeros((1 if num_rows or not columns else 0, 0), np.int64)
        texts = []
        for name, column in zip(self.names, columns, strict=True):
            with located(column=name):
                codes, found = self._coded(name, column, given.columns.get(name))
            texts.append([*found, None])  # the code of nulls is -1
            partition, combinations = _combined(partition, combinations, codes, len(found))
        values = [tuple(text[code] for text, code in zip(texts, row, strict=True)) for row in combinations.tolist()]
        return divided(partition, values)

    def _coded(self, name: str, column: pd.Series, given: GivenColumn | None) -> tuple[np.ndarray, list[str | None]]:
        """Give for each row which of some values it has, -1 for none, and the text of these."""
        if column.dtype == object:
            check_type(column_of(name, column, given))  # 1 and True are equal, but no values of one column
        codes, distinct = _factorized(column)
        values = column_of(name, distinct, given)
        kind = arrow_field(values).type.kind
        if kind != "null" and self.kinds.setdefault(name, kind) != kind:
            raise SchemaError(f"values are of the type {kind} here, and {self.kinds[name]} in the frames before")
        of_text, texts = pd.factorize(np.array(texts_of(values, len(distinct)), dtype=object))
        return np.append(of_text, -1)[codes], list(texts)  # what is written as a null is one, too


def check_some_are_left(partition_cols: Collection[str], names: Sequence[str] | None) -> None:
    """Raise SchemaError when files would be without columns, where these are known."""
    if partition_cols and names is not None and set(partition_cols) >= set(names):
        raise SchemaError(f"all columns are partition columns: {', '.join(names)}; none is left for the files")


def divided(partition: np.ndarray, values: list[Values]) -> Division:
    """Put rows in the order of their partitions.

    Parameters
    ----------
    partition : int64
        Of each row.
    values : list
        As in `Division`.
    """
    counts = np.bincount(partition, minlength=len(values))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if len(partition) and (np.diff(partition) < 0).any():
        small = partition.astype(np.uint16) if len(values) <= 1 << 16 else partition  # which sorts in linear time
        return Division(np.argsort(small, kind="stable"), bounds, values)
    return Division(None, bounds, values)


def _place(df: pd.DataFrame, names: list[str], wanted: Any) -> int:
    places = [place for place, label in enumerate(df.columns) if _same(label, wanted)]
    if not places:
        places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) == 1:
        return places[0]
    if places:
        raise SchemaError("the frame has several columns of this label", column=str(wanted))
    advice = ": it is of the index; reset_index makes a column of it" if wanted in df.index.names else ""
    raise SchemaError(f"the frame has no such column to partition by{advice}", column=str(wanted))


def _same(label: Any, wanted: Any) -> bool:
    return type(label) is type(wanted) and bool(label == wanted)


def _without(df: pd.DataFrame, places: list[int]) -> pd.DataFrame:
    """Leave columns out; by position, since labels may be there twice, and by `del`, which copies nothing."""
    rest, labels = df.copy(deep=False), df.columns
    rest.columns = range(df.shape[1])
    for place in places:
        del rest[place]
    rest.columns = labels.delete(places)
    return rest


def _factorized(column: pd.Series) -> tuple[np.ndarray, pd.Series]:
    """Number the values of a column as they come, -1 for nulls, and give those that there are."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "f":  # 0.0 and -0.0 are equal, and not the same
        values = column.to_numpy()
        codes, bits = pd.factorize(np.ascontiguousarray(values).view(f"i{dtype.itemsize}"))
        distinct = bits.view(dtype)
        return np.where(np.isnan(values), -1, codes), pd.Series(distinct)
    codes, found = pd.factorize(column.array)
    return codes.astype(np.int64, copy=False), pd.Series(found, dtype=dtype)


def _combined(
    partition: np.ndarray, combinations: np.ndarray, codes: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Divide partitions by one more column; they are numbered as they come."""
    # Both factors are at most the number of rows, so that the product fits.
    joint, found = pd.factorize(partition * (count + 1) + (codes + 1))
    before, code = np.divmod(np.asarray(found, np.int64), count + 1)
    return joint, np.concatenate([combinations[before], code[:, None] - 1], axis=1)
