"""Writing datasets: a frame divided by the values of columns, its parts written side by side, put in place as one."""

from .whole import write_dataset
from .writer import DatasetWriter

__all__ = ["DatasetWriter", "write_dataset"]
