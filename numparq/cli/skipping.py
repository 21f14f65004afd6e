"""`numparq skipping`: build, refresh, describe, explain, compact and drop a data-skipping store."""

from __future__ import annotations

from numparq.skipping.indexes.definitions import BloomFilter, IndexDefinition, MinMax, ValueList
from numparq.skipping.refresh import StoreChange
from numparq.skipping.store import Store
from numparq.util.pluralize import pluralize

from .terminal import open_console


def build(
    dataset: str, store: str, minmax: list[str] | None, valuelist: list[str] | None, bloom: list[str] | None
) -> None:
    """Build the store of a dataset in a folder; without indexes, MinMax of all flat columns."""
    indexes: list[IndexDefinition] = [MinMax(name) for name in minmax or ()]
    indexes += [ValueList(name) for name in valuelist or ()]
    indexes += [BloomFilter(name) for name in bloom or ()]
    built = Store.build(dataset, folder=store, indexes=indexes or None, progress=True)
    _print_change(built.last_change)


def refresh(store: str, dataset: str | None) -> None:
    """Index the files that are new or changed."""
    _print_change(Store(store).refresh(dataset, progress=True))


def compact(store: str, dataset: str | None) -> None:
    """Refresh a store and write all of it again."""
    _print_change(Store(store).compact(dataset, progress=True))


def drop(store: str) -> None:
    """Remove a store."""
    Store(store).drop()


def describe(store: str) -> None:
    """Print what a store holds."""
    _print(str(Store(store).describe()))


def explain(store: str, filter: str, dataset: str | None) -> None:
    """Print which files a filter needs, and what ruled out the others."""
    opened = Store(store)
    if dataset is None:
        _print(str(opened.select(filter)))
        return
    selection = opened.select(filter, dataset)
    _print(str(selection))
    if selection.unknown and not (selection.kept or selection.skipped):
        _print(f"the store knows none of these files; it was built for {opened.describe().dataset}")


def _print(text: str) -> None:
    open_console().print(text, markup=False, highlight=False, soft_wrap=True)


def _print_change(change: StoreChange) -> None:
    _print(f"added {pluralize(change.added, 'file')}, removed {pluralize(change.removed, 'file')}")
    for name, reason in change.failures:
        _print(f"not indexed: {name}: {reason}")
