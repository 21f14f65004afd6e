"""`thread_count`: the argument, `NUMPARQ_THREADS`, or the cores, up to a number."""

from __future__ import annotations

import os

import pytest

from numparq.util.arguments import thread_count


def test_environment_variable_is_the_default(monkeypatch):
    monkeypatch.setenv("NUMPARQ_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(5) == 5


@pytest.mark.parametrize("nothing", [None, ""])
@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (3, 3), (8, 8), (64, 8)])
def test_as_many_as_cores_up_to_eight_without_a_setting(monkeypatch, nothing, cores, threads):
    monkeypatch.delenv("NUMPARQ_THREADS", raising=False)
    if nothing is not None:
        monkeypatch.setenv("NUMPARQ_THREADS", nothing)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(cores)}, raising=False)
    assert thread_count(None) == threads
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert thread_count(None) == threads


@pytest.mark.parametrize("wrong", ["0", "-1", "all", "1.5"])
def test_invalid_environment_variable_is_refused(monkeypatch, wrong):
    monkeypatch.setenv("NUMPARQ_THREADS", wrong)
    with pytest.raises(ValueError, match="NUMPARQ_THREADS"):
        thread_count(None)
