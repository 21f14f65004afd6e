"""Worker pool: runs jobs on several threads; a job may run jobs of its own on them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from .background_threads import BackgroundThreads

PoolJob = Callable[[], None]


class _JobQueue:
    """Queue of jobs that several threads work off, until it is empty or a job fails.

    `error` is that of the failed job first in the queue, for any number of threads: jobs start in order and finish.
    `count` is the number of jobs, `left` that of the unfinished ones, `waiting` holds those that no thread has taken.
    """

    def __init__(self, jobs: Iterable[PoolJob]) -> None:
        self.waiting = deque(enumerate(jobs))
        self.count = self.left = len(self.waiting)
        self._done = threading.Condition()
        self._failed = self.count
        self.error: BaseException | None = None

    def run_jobs(self) -> None:
        """Run jobs until none is waiting."""
        while True:
            try:
                number, job = self.waiting.popleft()
            except IndexError:
                return
            try:
                job()
            except BaseException as error:
                self._finish(number, error)
            else:
                self._finish(number, None)

    def _finish(self, number: int, error: BaseException | None) -> None:
        with self._done:
            self.left -= 1
            if error is not None:
                if number < self._failed:
                    self._failed, self.error = number, error
                self.left -= self._give_up()
            if self.left <= 0:
                self._done.notify_all()

    def _give_up(self) -> int:
        """Drop the waiting jobs and return how many; one by one, because other threads may be taking them."""
        dropped = 0
        while True:
            try:
                self.waiting.popleft()
            except IndexError:
                return dropped
            dropped += 1

    def wait(self) -> None:
        """Wait for the jobs that other threads have taken."""
        with self._done:
            while self.left > 0:
                self._done.wait()


class WorkerPool:
    """Threads of one read, the calling thread among them.

    A job may call `run`: a thread waits only after running all jobs not yet taken, so never for an unstarted job.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._background: BackgroundThreads | None = None
        self._queues: list[_JobQueue] = []

    def runs_out_of_jobs(self) -> bool:
        """Whether threads have no job or soon none, so that a job pays to be divided; an estimate.

        Not yet while each thread may still get its first job.
        """
        count = left = waiting = 0
        for queue in self._queues:
            count, left, waiting = count + queue.count, left + queue.left, waiting + len(queue.waiting)
        return waiting < self.threads and left < max(count, self.threads)

    def run(self, jobs: Iterable[PoolJob]) -> None:
        """Run all jobs; once none is running any more, raise the exception of the first that failed."""
        jobs = list(jobs)
        if self.threads < 2 or len(jobs) < 2:
            for job in jobs:
                job()
            return
        shared = _JobQueue(jobs)
        self._queues.append(shared)
        if self._background is None:  # by the thread of the read: others run jobs only once there are threads
            self._background = BackgroundThreads(self.threads - 1, "numparq")
        for _ in range(min(self.threads, len(jobs)) - 1):
            self._background.submit(shared.run_jobs)
        shared.run_jobs()
        shared.wait()
        self._queues.remove(shared)
        if shared.error is not None:
            raise shared.error

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the other threads."""
        if self._background is not None:
            self._background.shutdown()
