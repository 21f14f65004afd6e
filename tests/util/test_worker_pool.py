"""`WorkerPool.runs_out_of_jobs`: whether dividing a job would keep more threads busy."""

from __future__ import annotations

import threading

import pytest

from numparq.util.worker_pool import WorkerPool


def answers(threads, jobs, first=()):
    """Return what each of so many jobs hears; those of `first` end only when all of these have begun."""
    told, together = {}, threading.Barrier(len(first)) if first else None
    with WorkerPool(threads) as pool:

        def job(number):
            told[number] = pool.runs_out_of_jobs()
            if number in first:
                together.wait(10)

        pool.run([lambda number=number: job(number) for number in range(jobs)])
        assert pool.runs_out_of_jobs()  # the calling thread's own work may be divided
    return [told[number] for number in range(jobs)]


@pytest.mark.parametrize("threads", [3, 4])
def test_few_jobs_run_out_at_once(threads):
    assert answers(threads, threads - 1) == [True] * (threads - 1)


@pytest.mark.parametrize("threads", [2, 4])
def test_first_job_of_each_thread_is_not_divided_and_the_last_ones_are(threads):
    told = answers(threads, 3 * threads, range(threads))
    assert told[:threads] == [False] * threads
    assert told[-1]


def test_jobs_of_jobs_count():
    told = []
    with WorkerPool(2) as pool:
        inner = [lambda: told.append(pool.runs_out_of_jobs())] * 6
        pool.run([lambda: pool.run(inner)] * 2)
    assert len(told) == 12
    assert not told[0]
    assert told[-1]


def test_failed_jobs_are_forgotten():
    def fail():
        raise KeyError

    with WorkerPool(2) as pool:
        with pytest.raises(KeyError):
            pool.run([fail] * 5)
        assert pool.runs_out_of_jobs()
