"""Worker pool, scratch buffers and progress bar of a writer."""

from __future__ import annotations

from numparq.column.scratch import ThreadScratch
from numparq.util.arguments import thread_count
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool


class WriterContext:
    """Worker pool, scratch buffers and progress bar of a writer; several writers may share them."""

    def __init__(self, threads: int | None = None, progress: bool = False) -> None:
        self.pool = WorkerPool(thread_count(threads))
        self.scratch = ThreadScratch()
        self.progress = ProgressBar(progress, "writing")

    def close(self) -> None:
        """Wait for the threads, and release the buffers."""
        self.progress.close()
        self.pool.__exit__()  # after Ctrl-C, running jobs may still use the buffers
        self.scratch.close()
