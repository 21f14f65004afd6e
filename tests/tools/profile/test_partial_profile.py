"""Partial profiles add up to the same profile, however the files are divided and in any order."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq.skipping.summary.distinct import DistinctSketch
from numparq.tools.profile.job import ProfileJob
from numparq.tools.profile.partial_profile import PartialProfile, merge_profiles


def write_files(folder: Path, seed: int = 0, count: int = 7) -> None:
    """Write files of different schemas; one of them is damaged."""
    rng = np.random.default_rng(seed)
    for at in range(count):
        rows = int(rng.integers(1, 700))
        frame = pd.DataFrame({"n": rng.integers(0, 10**6, rows), "x": rng.normal(size=rows)})
        frame.loc[frame.index[::7], "x"] = math.nan
        if at % 2:
            frame["s"] = [f"{value % 50}" for value in frame["n"]]
        if at % 3 == 0:
            frame["n"] = frame["n"].astype("int32")
        numparq.to_parquet(frame, folder / f"{at}.parquet", row_group_size=200, max_rows_per_page=50)
    (folder / "3.parquet").write_bytes(b"damaged")


def profile_dict(job: ProfileJob, part: PartialProfile) -> dict:
    return job.profile([part]).to_dict()


@pytest.mark.parametrize("data", ["auto", True, False])
def test_partial_profiles_add_up_in_any_order(tmp_path: Path, data: bool | str) -> None:
    write_files(tmp_path)
    job = ProfileJob.from_path(tmp_path, data=data)
    (whole,) = job.split(1)
    expected = profile_dict(job, whole.run())
    for count in (2, 3, 7, 50):
        parts = [work.run() for work in job.split(count)]
        assert len(parts) == min(count, 7)
        assert profile_dict(job, merge_profiles(parts)) == expected
        assert profile_dict(job, merge_profiles(parts[::-1])) == expected
        assert profile_dict(job, sum(parts, PartialProfile())) == expected
    a, b, c = (work.run() for work in job.split(3))
    for one, two, three in itertools.permutations((a, b, c)):
        assert profile_dict(job, (one + two) + three) == profile_dict(job, one + (two + three)) == expected


def test_work_and_partial_profiles_are_pickled(tmp_path: Path) -> None:
    write_files(tmp_path)
    job = pickle.loads(pickle.dumps(ProfileJob.from_path(tmp_path)))
    works = [pickle.loads(pickle.dumps(work)) for work in job.split(3)]
    parts = [pickle.loads(pickle.dumps(work.run())) for work in works]
    found = pickle.loads(pickle.dumps(job.profile(parts)))
    assert found.num_rows == job.profile([work.run() for work in works]).num_rows
    assert found.damaged_files == 1


def test_pickled_partial_profile_is_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.integers(0, 2**62, 100_000), "x": rng.random(100_000)})
    numparq.to_parquet(frame, tmp_path / "a.parquet", row_group_size=1000)
    (work,) = ProfileJob.from_path(tmp_path).split(1)
    assert len(pickle.dumps(work.run())) < 64 << 10  # for a file of 1.6 MB in 100 row groups


def test_empty_partial_profile_is_neutral(tmp_path: Path) -> None:
    write_files(tmp_path)
    job = ProfileJob.from_path(tmp_path)
    (work,) = job.split(1)
    part = work.run()
    assert (
        profile_dict(job, PartialProfile() + part)
        == profile_dict(job, part + PartialProfile())
        == profile_dict(job, part)
    )
    assert merge_profiles([]) == PartialProfile()


def test_files_are_divided_among_processes(tmp_path: Path) -> None:
    write_files(tmp_path, count=10)
    job = ProfileJob.from_path(tmp_path)
    for parts in (1, 3, 10, 99):
        works = job.split(parts)
        assert [file.path for work in works for file in work.files] == [file.path for file in job.files]
        assert [work.first for work in works] == np.cumsum([0, *(len(work.files) for work in works[:-1])]).tolist()


# --- distinct sketches ------------------------------------------------------------------------------------------------


def hashes(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


@given(sizes=st.lists(st.integers(0, 1500), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_sketches_are_independent_of_order(sizes: list[int], seed: int) -> None:
    everything = hashes(seed, 2000)
    rng = np.random.default_rng(seed)
    parts = [rng.choice(everything, size) for size in sizes]
    expected = DistinctSketch.from_hashes(np.concatenate(parts))
    forwards, backwards = DistinctSketch(), DistinctSketch()
    for part in parts:
        forwards = forwards + DistinctSketch.from_hashes(part)
        backwards = DistinctSketch.from_hashes(part) + backwards
    assert expected == forwards == backwards
    distinct = len(np.unique(np.concatenate(parts)))
    assert expected.is_exact == (distinct <= 1024)
    assert expected.count() == distinct if expected.is_exact else abs(expected.count() - distinct) < 0.07 * distinct


@pytest.mark.parametrize("count", [1_025, 3_000, 20_000, 300_000])
def test_distinct_estimates_have_documented_error(count: int) -> None:
    errors = [DistinctSketch.from_hashes(hashes(seed, count)).count() / count - 1 for seed in range(20)]
    assert abs(np.mean(errors)) < 0.012  # 1.15 % / sqrt(20) is 0.26 %
    assert np.std(errors) < 0.02


def test_pickled_work_is_independent_of_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    job = ProfileJob.from_path(tmp_path.name)
    works = job.split(3)
    monkeypatch.chdir("/")
    found = job.profile([work.run() for work in pickle.loads(pickle.dumps(works))])
    assert found.damaged_files == 1, "the one damaged file"
    assert (
        found.num_rows
        == ProfileJob.from_path(tmp_path).profile([ProfileJob.from_path(tmp_path).split(1)[0].run()]).num_rows
    )
