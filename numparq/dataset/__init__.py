"""Datasets: many files read and written as one table; public names, lazily loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .commit.recover import Recovered, recover
    from .dataset import Dataset
    from .discover.files import EmptyDatasetError
    from .listing.files import DataFile
    from .prune.pruners import FilePruner
    from .splits.reader import SplitReader
    from .splits.split import Split
    from .splits.table import SplitTable, split_table
    from .write.dataset_writer import DatasetWriter
    from .write.shared_job import SharedJob
    from .write.task_writer import StagedFile, TaskMessage, TaskWriter

__all__ = [
    "DataFile",
    "Dataset",
    "DatasetWriter",
    "EmptyDatasetError",
    "FilePruner",
    "Recovered",
    "SharedJob",
    "Split",
    "SplitReader",
    "SplitTable",
    "StagedFile",
    "TaskMessage",
    "TaskWriter",
    "recover",
    "split_table",
]

_MODULE_OF = {
    "DataFile": "listing.files",
    "Dataset": "dataset",
    "DatasetWriter": "write.dataset_writer",
    "EmptyDatasetError": "discover.files",
    "FilePruner": "prune.pruners",
    "Recovered": "commit.recover",
    "SharedJob": "write.shared_job",
    "Split": "splits.split",
    "SplitReader": "splits.reader",
    "SplitTable": "splits.table",
    "StagedFile": "write.task_writer",
    "TaskMessage": "write.task_writer",
    "TaskWriter": "write.task_writer",
    "recover": "commit.recover",
    "split_table": "splits.table",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
