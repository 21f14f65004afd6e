"""Writing datasets: a frame divided by the values of columns, its parts written side by side, put in place as one."""

from .shared_job import SharedJob
from .task_writer import StagedFile, TaskMessage, TaskWriter
from .whole import write_dataset
from .writer import DatasetWriter

__all__ = ["DatasetWriter", "SharedJob", "StagedFile", "TaskMessage", "TaskWriter", "write_dataset"]
