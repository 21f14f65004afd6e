"""Advice of profiles: files that deserve each, what comes first, and what must not be advised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.tools.profile.job import profile_files


def advice(folder: Path, **options: object) -> list[str]:
    return list(profile_files(folder, **options).advice)


def subjects(lines: list[str]) -> list[str]:
    """Return what each advice is about: its words before the first colon."""
    return [line.split(":")[0] for line in lines]


def write(folder: Path, frames: list[pd.DataFrame], **options: object) -> None:
    for at, frame in enumerate(frames):
        numparq.to_parquet(frame, folder / f"{at:04}.parquet", **{"index": False, **options})


def mixed(count: int, **columns: object) -> list[pd.DataFrame]:
    """Return frames with a time and a key in no order."""
    rng = np.random.default_rng(0)
    frames = []
    for _ in range(count):
        times = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**6, 500), unit="s")
        frames.append(pd.DataFrame({"x": rng.random(500), "ts": times, "user_id": rng.integers(0, 10**9, 500)}))
    return [frame.assign(**columns) for frame in frames]


def quarters(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), 4)]


def test_one_sort_order_is_advised(tmp_path: Path) -> None:
    write(tmp_path, mixed(10, kind=["a", "b"] * 250), row_group_size=250)
    lines = advice(tmp_path)
    assert lines[0].startswith("small files: 10 files of ")
    assert lines[0].endswith(f" on average -> numparq spark optimize {tmp_path}")
    assert lines[1].startswith("sort by ts: a look-up on ts reads ")
    assert lines[1].endswith("bounds overlap")
    assert subjects(lines) == ["small files", "sort by ts", "Bloom filters on user_id"]


def test_rows_in_order_are_not_to_be_sorted_by_another_column(tmp_path: Path) -> None:
    frames = mixed(4)
    write(tmp_path, quarters(pd.concat(frames).sort_values("ts")), row_group_size=250)
    assert subjects(advice(tmp_path)) == ["Bloom filters on user_id"]


def test_index_levels_are_never_sorted_by(tmp_path: Path) -> None:
    frame = pd.concat(mixed(4))[["x", "ts"]]
    for at, part in enumerate(quarters(frame.sample(frac=1, random_state=0))):
        numparq.to_parquet(part.set_index("ts"), tmp_path / f"{at}.parquet", row_group_size=250)
    profile = profile_files(tmp_path)
    assert profile["ts"].is_index
    assert not profile["x"].is_index
    assert profile.advice == ()
    for at, part in enumerate(quarters(frame.reset_index(drop=True).sample(frac=1, random_state=0))):
        numparq.to_parquet(part[["x"]], tmp_path / f"{at}.parquet", row_group_size=250)
    profile = profile_files(tmp_path)
    assert [column.name for column in profile] == ["x", "__index_level_0__"]
    assert profile.advice == ()


def test_small_row_groups_come_before_sorting(tmp_path: Path) -> None:
    write(tmp_path, mixed(2), row_group_size=50)
    lines = advice(tmp_path)
    assert lines[0].startswith("small row groups: 50 rows on average")
    assert subjects(lines) == ["small row groups", "sort by ts", "Bloom filters on user_id"]


def test_missing_statistics_come_before_anything_and_nothing_is_to_be_sorted(tmp_path: Path) -> None:
    write(tmp_path, mixed(2), row_group_size=250, write_statistics=False, write_page_index=False)
    lines = advice(tmp_path)
    assert lines[0].startswith("no statistics of x, ts, user_id: filters on them prune nothing")
    assert subjects(lines) == ["no statistics of x, ts, user_id", "no page index"]


def test_missing_page_indexes_are_reported(tmp_path: Path) -> None:
    write(tmp_path, [pd.DataFrame({"n": np.arange(100)})], write_page_index=False)
    (line,) = advice(tmp_path)
    assert line.startswith("no page index: written by numparq")


def test_columns_with_bloom_filters_need_no_others(tmp_path: Path) -> None:
    write(tmp_path, mixed(4), row_group_size=250, bloom_filter_options={"user_id": True})
    assert subjects(advice(tmp_path)) == ["sort by ts"]


@pytest.mark.parametrize("num_files", [40, 120])
def test_stores_are_advised_for_many_files(tmp_path: Path, num_files: int) -> None:
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame(
            {
                "ts": np.arange(60) + 60 * at,
                "device": [f"d{at // 4}-{n}" for n in rng.integers(0, 5, 60)],
                "user": rng.integers(0, 60 * num_files, 60),
                "kind": ["a", "b"] * 30,
            }
        )
        for at in range(num_files)
    ]
    write(tmp_path, frames, use_dictionary=["device", "kind"])
    profile = profile_files(tmp_path)
    assert profile["device"].file_share == pytest.approx(4 / num_files, rel=0.2)
    assert profile["kind"].file_share == 1
    lines = list(profile.advice)
    assert lines[0].startswith("small files")
    if num_files < 100:
        assert subjects(lines) == ["small files"]
        return
    assert subjects(lines) == ["small files", "data-skipping store"]
    assert lines[1].startswith("data-skipping store: a look-up opens the footers of all 120 files")
    assert lines[1].endswith('indexes=[MinMax("ts"), ValueList("user"), MinMax("device")])')


def test_sound_layouts_deserve_no_advice(tmp_path: Path) -> None:
    write(tmp_path, [pd.DataFrame({"ts": np.arange(20_000), "kind": ["a", "b"] * 10_000})], row_group_size=10_000)
    assert advice(tmp_path) == []


def test_damage_comes_first(tmp_path: Path) -> None:
    write(tmp_path, mixed(3), row_group_size=50)
    (tmp_path / "0001.parquet").write_bytes(b"damaged")
    assert advice(tmp_path)[0].startswith("damaged: 1 file could not be read in full")
