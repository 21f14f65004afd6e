"""When a second thread is worth its beginning: where it has something to take over."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from numparq.column.jobs.schedule import SINGLE_THREAD_BYTES, JobScheduler

SOME = SINGLE_THREAD_BYTES


class Job:
    def __init__(self, num_bytes: int, done: list[int]) -> None:
        self.num_bytes = num_bytes
        self._done = done

    def __call__(self) -> None:
        self._done.append(self.num_bytes)


@pytest.mark.parametrize(
    ("sizes", "is_shared"),
    [
        ([], False),
        ([100 * SOME], False),
        ([100 * SOME, SOME - 1], False),
        ([100 * SOME, SOME], True),
        ([SOME, SOME], True),
        ([SOME - 1] * 2, False),
        ([1] * (2 * SOME // 1000), False),
        ([1000] * (2 * SOME // 1000 + 1), True),
    ],
)
def test_what_others_can_take_over(sizes, is_shared):
    done: list[int] = []
    shared: list[int] = []
    crew = SimpleNamespace(run=lambda jobs: shared.extend(job.num_bytes for job in jobs))
    maker = JobScheduler(SimpleNamespace(crew=crew), None, [], None)
    maker.run([Job(size, done) for size in sizes])
    assert (shared, done) == ((sizes, []) if is_shared else ([], sizes))
