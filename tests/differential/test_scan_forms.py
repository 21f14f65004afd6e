"""One file, many files, batches and splits give the same rows for every combination of options."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.dataset.splits.table import split_table
from support.differential.covering import covering_array
from support.files.page_damage import damage_body, data_pages

ROWS, GROUP, PAGE = 60, 10, 5
BOUNDS = {"one": [0, ROWS], "many": [0, 20, 50, ROWS]}  # first rows of the files
DAMAGED = range(35, 40)  # rows of a page of column "b"

POSITIONS: dict[str, dict[str, Any]] = {
    "all rows": {},
    "row groups": {"row_groups": [1, 3, 4]},
    "row range": {"row_range": (13, 47)},
    "both": {"row_groups": [0, 2, 3], "row_range": (4, 38)},
}
MANY_UNITS = 4000  # a memory limit of a few rows
FILTER = (col("k") != 2) & (col("b") < 30)
OPTIONS: dict[str, dict[str, Any]] = {
    "filters": {"all": None, "filtered": FILTER},
    "nrows": {"all": None, "first": 7},
    "explode": {"rows": None, "elements": "l"},
    "include": {"none": (), "virtual": ("file", "row_group", "row_number")},
    "memory_limit": {"none": None, "large": 1 << 28},
    "on_error": {"raise": "raise", "skip": "skip"},
}


def source_frame() -> pd.DataFrame:
    numbers = np.arange(ROWS)
    return pd.DataFrame(
        {
            "a": numbers,
            "k": numbers % 4,
            "b": np.where(numbers % 6 == 0, np.nan, numbers * 0.75),
            "s": pd.Series([None if number % 5 == 3 else f"name {number % 7}" for number in numbers], dtype="str"),
            "l": [None if number % 7 == 5 else list(range(number, number + number % 3)) for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders by form and by whether a page of column "b" is damaged."""
    folders = {}
    for form, damaged in product(BOUNDS, (False, True)):
        folder = tmp_path_factory.mktemp(f"{form}_{damaged}")
        folders[form, damaged] = folder
        bounds = BOUNDS[form]
        for number, (first, end) in enumerate(pairwise(bounds)):
            part = source_frame()[first:end].reset_index(drop=True)
            data = numparq.to_parquet(part, row_group_size=GROUP, max_rows_per_page=PAGE, use_dictionary=False)
            if damaged and first <= DAMAGED.start < end:
                row_group, page = divmod(DAMAGED.start - first, GROUP)
                data = damage_body(data, data_pages(data, row_group, "b")[page // PAGE])
            (folder / f"{number}.parquet").write_bytes(data)
    return folders


def expected_rows(form: str, folder: Any, options: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows by pandas alone."""
    frame = source_frame()
    bounds = BOUNDS[form]
    owners = np.searchsorted(bounds, frame["a"], "right") - 1
    within = frame["a"] - np.array(bounds)[owners]
    added = {
        "file": [str(folder / f"{owner}.parquet") for owner in owners],
        "row_group": within // GROUP,
        "row_number": within,
    }
    for name in options["include"]:
        frame[name] = added[name]
    keep = np.ones(ROWS, bool)
    if options.get("row_groups") is not None:
        keep &= np.isin(frame["a"] // GROUP, options["row_groups"])
    if options.get("row_range") is not None:
        keep &= (frame["a"] >= options["row_range"][0]) & (frame["a"] < options["row_range"][1])
    frame = frame[keep]
    is_filtered = options["filters"] is not None
    if options["nrows"] is not None and not is_filtered:
        frame = frame[: options["nrows"]]
    if options["on_error"] == "skip":
        frame = frame[~frame["a"].isin(DAMAGED)]
    if is_filtered:
        frame = frame[(frame["k"] != 2) & (frame["b"] < 30)][: options["nrows"]]
    if options["explode"] is not None:
        frame = frame[[isinstance(value, list) and len(value) > 0 for value in frame["l"]]].explode("l")
        frame = frame[[name for name in frame if name != "l" and name not in added] + ["l", *options["include"]]]
    return rows_of(frame)


def rows_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows as Python values, sorted columns, None for nulls."""

    def plain(value: Any) -> Any:
        if isinstance(value, list | np.ndarray):
            return tuple(int(item) for item in value)
        return None if value is None or pd.isna(value) else value

    columns = [[plain(value) for value in frame[name].astype(object)] for name in sorted(frame.columns)]
    return list(zip(*columns, strict=True))


def check(form: str, folder: Any, options: dict[str, Any], frames: list[pd.DataFrame]) -> None:
    rows = [row for frame in frames for row in rows_of(frame)]
    assert rows == expected_rows(form, folder, options), options


def option_cases(strength: int, *without: str) -> list[dict[str, Any]]:
    """Return options that cover all combinations of any `strength` of them; some are left at their default."""
    axes = {"position": list(POSITIONS), **{name: list(values) for name, values in OPTIONS.items()}}
    for name in without:
        axes[name] = axes[name][:1]
    cases = covering_array(axes, strength, lambda case: True)
    return [
        POSITIONS[case.pop("position")] | {name: OPTIONS[name][label] for name, label in case.items()} for case in cases
    ]


def read_case(form: str, folder: Any, options: dict[str, Any]) -> None:
    path = folder / "0.parquet" if form == "one" else folder
    frame = numparq.read_parquet(path, dtype_backend="numpy_nullable", threads=1, **options)
    check(form, folder, options, [frame])


def read_batches(form: str, folder: Any, options: dict[str, Any]) -> None:
    with numparq.ParquetFile(folder / "0.parquet") if form == "one" else numparq.Dataset(folder) as table:
        batches = table.iter_batches(batch_rows=4, dtype_backend="numpy_nullable", threads=1, **options)
        check(form, folder, options, list(batches))


def read_splits(form: str, folder: Any, options: dict[str, Any]) -> None:
    arguments = {name: value for name, value in options.items() if name not in SPLITS_WITHOUT}
    table = split_table(folder, split_bytes=300, dtype_backend="numpy_nullable", **arguments)
    assert len(table) > 1
    check(form, folder, options, [table.frame(split) for split in table.splits])
    limit = options["memory_limit"]
    frames = [frame for split in table.splits for frame in table.frames(split, 4, memory_limit=limit)]
    check(form, folder, options, frames)
    assert sum(table.count(split) for split in table.splits) == len(expected_rows(form, folder, options))


SPLITS_WITHOUT = ("explode", "nrows", "memory_limit")
WAYS = {"read": (read_case, ()), "batches": (read_batches, ()), "splits": (read_splits, ("explode", "nrows"))}


@pytest.mark.parametrize("strength", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", BOUNDS)
def test_rows_of_every_form_equal_pandas(folders, form, way, strength):
    read, without = WAYS[way]
    for options in option_cases(strength, *without):
        read(form, folders[form, options["on_error"] == "skip"], options)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("filters", [None, FILTER], ids=["all", "filtered"])
@pytest.mark.parametrize("form", BOUNDS)
def test_memory_limit_refuses(folders, form, filters, on_error):
    folder = folders[form, on_error == "skip"]
    options = {"filters": filters, "on_error": on_error, "memory_limit": 1000, "threads": 1}
    with pytest.raises(numparq.LimitError, match="memory_limit is 1000 bytes"):
        numparq.read_parquet(folder, **options)
    with numparq.Dataset(folder) as dataset, pytest.raises(numparq.LimitError):
        list(dataset.iter_batches(**options))


@pytest.mark.parametrize("form", BOUNDS)
def test_counts(folders, form):
    folder = folders[form, False]
    options = {name: next(iter(values.values())) for name, values in OPTIONS.items()} | {"filters": FILTER}
    count = len(expected_rows(form, folder, options))
    with numparq.ParquetFile(folder / "0.parquet") if form == "one" else numparq.Dataset(folder) as table:
        assert (table.count_rows(FILTER), table.count_rows()) == (count, ROWS)


@pytest.mark.parametrize("filters", [None, FILTER], ids=["all", "filtered"])
@pytest.mark.parametrize("position", POSITIONS)
def test_plans(folders, position, filters):
    """The plans of many files have the rows that the plan of one file has."""

    def planned(plans: list[Any], first_groups: list[int]) -> list[tuple[int, list[list[int]]]]:
        return [
            (first + group.ordinal, group.rows.bounds.tolist())
            for first, plan in zip(first_groups, plans, strict=True)
            for group in plan.left
        ]

    options = {**POSITIONS[position], "filters": filters}
    with numparq.ParquetFile(folders["one", False] / "0.parquet") as file:
        expected = planned([file.plan(**options)], [0])
    with numparq.Dataset(folders["many", False]) as dataset:
        files = dataset.plan(**options).files
    first_groups = [BOUNDS["many"][int(name[-len("0.parquet")])] // GROUP for name, _ in files]
    assert planned([plan for _, plan in files], first_groups) == expected


@pytest.mark.parametrize("form", BOUNDS)
def test_limit_on_rows_counts_over_units(folders, form):
    folder = folders[form, False]
    options = {name: next(iter(values.values())) for name, values in OPTIONS.items()} | {"filters": FILTER, "nrows": 13}
    with numparq.ParquetFile(folder / "0.parquet") if form == "one" else numparq.Dataset(folder) as table:
        batches = list(table.iter_batches(["a"], FILTER, nrows=13, memory_limit=MANY_UNITS, threads=1))
    expected = [row[0] for row in expected_rows(form, folder, options)]
    assert [number for batch in batches for number in batch["a"]] == expected
    assert len(batches) > 1


@pytest.mark.parametrize("num_files", [1, 3])
def test_memory_limit_counts_filter_columns(tmp_path, num_files):
    """No row matches, so that only the filter column takes memory."""
    rng = np.random.default_rng(0)
    for number in range(num_files):
        frame = pd.DataFrame({"x": rng.random(50_000), "flag": True})
        numparq.to_parquet(frame, tmp_path / f"{number}.parquet")
    options = {"columns": ["flag"], "filters": col("x") == 0.5, "threads": 1}
    assert numparq.read_parquet(tmp_path, memory_limit=10 << 20, **options).empty
    with pytest.raises(numparq.LimitError, match="memory_limit is 293 KiB"):
        numparq.read_parquet(tmp_path, memory_limit=300_000, **options)
