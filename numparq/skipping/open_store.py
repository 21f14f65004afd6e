"""The `skipping` argument of reads: a store, or its folder."""

from __future__ import annotations

import os

from numparq.dataset.prune.file_query import QueryPruner, check_query_pruner
from numparq.typing import PathLike

from .store import Store


def open_store(skipping: QueryPruner | PathLike) -> QueryPruner:
    """Return a store as it is, and a folder's opened; TypeError for anything else."""
    return Store(skipping) if isinstance(skipping, (str, os.PathLike)) else check_query_pruner(skipping)
