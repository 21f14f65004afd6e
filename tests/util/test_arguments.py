"""`thread_count`: the argument, `NUMPARQ_THREADS`, or all cores."""

from __future__ import annotations

import os

import pytest

from numparq.util.arguments import thread_count


def test_environment_variable_is_the_default(monkeypatch):
    monkeypatch.setenv("NUMPARQ_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(5) == 5


@pytest.mark.parametrize("nothing", [None, ""])
def test_all_cores_without_a_setting(monkeypatch, nothing):
    monkeypatch.delenv("NUMPARQ_THREADS", raising=False)
    if nothing is not None:
        monkeypatch.setenv("NUMPARQ_THREADS", nothing)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert thread_count(None) == cores


@pytest.mark.parametrize("wrong", ["0", "-1", "all", "1.5"])
def test_invalid_environment_variable_is_refused(monkeypatch, wrong):
    monkeypatch.setenv("NUMPARQ_THREADS", wrong)
    with pytest.raises(ValueError, match="NUMPARQ_THREADS"):
        thread_count(None)
