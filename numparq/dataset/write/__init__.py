"""Write datasets: rows partitioned into files, committed together."""

from __future__ import annotations

from .dataset_writer import DatasetWriter, write_dataset
from .shared_job import SharedJob
from .task_writer import StagedFile, TaskMessage, TaskWriter

__all__ = ["DatasetWriter", "SharedJob", "StagedFile", "TaskMessage", "TaskWriter", "write_dataset"]
