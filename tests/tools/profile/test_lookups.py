"""Expected pruning of look-ups in a profile, against real read plans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.tools.profile.job import profile_files

FILES, ROWS, GROUPS = 8, 2000, 4


def write(folder: Path, parts: list[np.ndarray], **options: object) -> None:
    """Write one file per array, each with GROUPS row groups of ten pages."""
    rng = np.random.default_rng(1)
    for at, values in enumerate(parts):
        frame = pd.DataFrame({"key": values, "ballast": rng.random(len(values))})
        group = -(-len(values) // GROUPS)
        numparq.to_parquet(
            frame,
            folder / f"{at}.parquet",
            row_group_size=group,
            max_rows_per_page=-(-group // 10),
            use_dictionary=False,
            compression=None,
            **options,
        )


def mean_shares_read(folder: Path, queries: list, make: object) -> tuple[float, float, float]:
    """Return the mean shares of files, row groups and bytes that queries read."""
    shares = []
    with numparq.Dataset(folder) as dataset:
        full_plan = dataset.plan()
        groups = sum(len(plan.row_groups) for _, plan in full_plan.files)
        for value in queries:
            plan = dataset.plan(filters=make(value))
            kept_row_groups = [len(one.left) for _, one in plan.files]
            files = sum(map(bool, kept_row_groups)) / full_plan.num_files
            shares.append((files, sum(kept_row_groups) / groups, plan.num_bytes / full_plan.num_bytes))
    return tuple(np.mean(shares, axis=0).tolist())


def numbers() -> np.ndarray:
    return np.random.default_rng(0).permutation(FILES * ROWS)


def nearly_sorted() -> np.ndarray:
    count = FILES * ROWS
    return np.argsort(np.arange(count) + 700 * np.random.default_rng(2).normal(size=count))


def to_urls(values: np.ndarray) -> np.ndarray:
    return np.array([f"https://example.com/{value:08d}" for value in values], object)


LAYOUTS = {
    "sorted": lambda: np.split(np.sort(numbers()), FILES),
    "in no order": lambda: np.split(numbers(), FILES),
    "sorted in each file": lambda: [np.sort(part) for part in np.split(numbers(), FILES)],
    "nearly sorted": lambda: np.split(nearly_sorted(), FILES),
    "floats": lambda: np.split(np.sort(np.random.default_rng(3).random(FILES * ROWS)), FILES),
    "texts, sorted": lambda: np.split(to_urls(np.sort(numbers())), FILES),
    "texts, sorted in each file": lambda: [to_urls(np.sort(part)) for part in np.split(numbers(), FILES)],
    "texts, in no order": lambda: np.split(to_urls(numbers()), FILES),
    "times": lambda: np.split(np.sort(numbers()).astype("M8[s]").astype("M8[us]"), FILES),
    "few values": lambda: np.split(np.sort(numbers()) // 3000, FILES),
}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_lookup_reads_equal_expected_reads(tmp_path: Path, layout: str) -> None:
    parts = LAYOUTS[layout]()
    write(tmp_path, parts)
    found = profile_files(tmp_path, ["key"], data=False)["key"]
    values = np.concatenate(parts)
    queries = np.random.default_rng(5).choice(values, 40, replace=False).tolist()
    if values.dtype.kind == "M":
        queries = [pd.Timestamp(value) for value in np.random.default_rng(5).choice(values, 40, replace=False)]
    files, groups, num_bytes = mean_shares_read(tmp_path, queries, lambda value: col("key") == value)
    assert found.lookup.files == pytest.approx(files, abs=0.06)
    assert found.lookup.row_groups == pytest.approx(groups, abs=0.06)
    assert found.lookup.num_bytes == pytest.approx(num_bytes, abs=0.06)


@pytest.mark.parametrize("layout", ["sorted", "in no order", "sorted in each file", "nearly sorted"])
def test_small_range_reads_equal_expected_reads(tmp_path: Path, layout: str) -> None:
    parts = LAYOUTS[layout]()
    write(tmp_path, parts)
    found = profile_files(tmp_path, ["key"], data=False)["key"]
    span = FILES * ROWS // 100
    starts = np.random.default_rng(5).integers(0, FILES * ROWS - span, 40).tolist()
    files, groups, num_bytes = mean_shares_read(tmp_path, starts, lambda low: col("key").between(low, low + span))
    assert found.small_range.files == pytest.approx(files, abs=0.06)
    assert found.small_range.row_groups == pytest.approx(groups, abs=0.06)
    assert found.small_range.num_bytes == pytest.approx(num_bytes, abs=0.06)


def test_bloom_filters_reduce_expected_reads(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    parts = LAYOUTS["in no order"]()
    write(tmp_path / "with", parts, bloom_filter_options={"key": True})
    write(tmp_path / "without", parts)
    assert profile_files(tmp_path / "without")["key"].lookup.row_groups > 0.9
    found = profile_files(tmp_path / "with")["key"].lookup
    queries = np.random.default_rng(5).choice(np.concatenate(parts), 60).tolist()
    files, groups, num_bytes = mean_shares_read(tmp_path / "with", queries, lambda value: col("key") == value)
    assert found.row_groups == pytest.approx(groups, abs=0.02)
    assert found.files == pytest.approx(files, abs=0.05)
    assert found.num_bytes == pytest.approx(num_bytes, abs=0.06)
    assert found.row_groups < 0.06


def test_sorted_files_need_one_row_group_and_one_page(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["sorted"]())
    found = profile_files(tmp_path, data=False)["key"]
    assert found.lookup.files == pytest.approx(1 / FILES)
    assert found.lookup.row_groups == pytest.approx(1 / FILES / GROUPS)
    assert found.lookup.pages == pytest.approx(1 / FILES / GROUPS / 10)
    assert found.files_overlapping == 0
    assert (found.files_in_order, found.files_out_of_order) == (FILES, 0)


def test_without_page_indexes_row_groups_are_read_whole(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["sorted"](), write_page_index=False)
    profile = profile_files(tmp_path, data=False)
    found = profile["key"].lookup
    assert found.num_bytes == pytest.approx(1 / FILES / GROUPS, rel=0.05)
    assert any("no page index" in line for line in profile.advice)


def test_without_statistics_everything_is_read(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["sorted"](), write_statistics=False, write_page_index=False)
    profile = profile_files(tmp_path, ["key"], data=False)
    found = profile["key"].lookup
    assert (found.files, found.row_groups, found.num_bytes) == (1.0, 1.0, 1.0)
    assert any("no statistics of key" in line for line in profile.advice)
    found = profile_files(tmp_path, ["key"])["key"]
    assert (found.min, found.lookup.row_groups) == (0, 1.0), "reads cannot prune by bounds that are not in the file"


def test_row_groups_of_nulls_are_never_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": pd.array([1, 2, None, None] * 25, "Int64")}).sort_values("key")
    numparq.to_parquet(frame, tmp_path / "a.parquet", row_group_size=25, index=False)
    found = profile_files(tmp_path, data=False)["key"]
    assert found.lookup.row_groups == pytest.approx(1 / 4)


def test_expected_reads_of_many_row_groups(tmp_path: Path) -> None:
    values = np.random.default_rng(0).permutation(3000)
    for name, column in (("sorted", np.sort(values)), ("mixed", values)):
        (tmp_path / name).mkdir()
        frame = pd.DataFrame({"key": column})
        numparq.to_parquet(frame, tmp_path / name / "a.parquet", row_group_size=10)
        found = profile_files(tmp_path / name, data=False)
        assert found.num_row_groups == 300
    assert profile_files(tmp_path / "sorted", data=False)["key"].lookup.row_groups < 0.02
    assert profile_files(tmp_path / "mixed", data=False)["key"].lookup.row_groups > 0.5
