"""Fixtures for the benchmark tests: settings, readers and writers of a tiny run."""

from __future__ import annotations

from pathlib import Path

import pytest

# The benchmarks are not part of every distribution.
collect_ignore_glob = [] if (Path(__file__).resolve().parents[2] / "asv_benchmarks").is_dir() else ["test_*.py"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    from asv_benchmarks import compare_reads
    from asv_benchmarks.readers import PEERS
    from asv_benchmarks.workloads import WORKLOADS
    from support.benchmarks import SCALE, THREADS

    return compare_reads.Settings(
        workloads=tuple(WORKLOADS.values()),
        peers=PEERS,
        folder=tmp_path_factory.mktemp("bench"),
        scale=SCALE,
        threads=THREADS,
        repeat=1,
        check=True,
        json=None,
    )


@pytest.fixture(scope="module")
def readers():
    from asv_benchmarks.readers import PEERS, load_all
    from support.benchmarks import THREADS

    return load_all(["numparq", *PEERS], THREADS)[0]


@pytest.fixture(scope="module")
def writers():
    from asv_benchmarks.readers import PEERS
    from asv_benchmarks.writers import load_writers
    from support.benchmarks import THREADS

    return load_writers(["numparq", *PEERS], THREADS)[0]
