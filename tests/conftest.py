"""What all tests share: how much the quick tests repeat, and the folder of conformance files."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("support")

ROOT = Path(__file__).resolve().parent.parent
SMALL = 4  # tests with fewer cases run all of them in the quick stage

# Property tests draw few examples in the quick stage. The slow stage repeats them with --hypothesis-profile thorough.
settings.register_profile("quick", max_examples=7, deadline=None)
settings.register_profile("thorough", max_examples=100, deadline=None)
settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark repetitions slow: cases whose parameters occur in other cases, and those beyond a test's `quick_cases`."""
    tests = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        if marker := cases[0].get_closest_marker("quick_cases"):
            quick = set(range(0, len(cases), -(-len(cases) // marker.args[0])))
        elif len(cases) >= SMALL:
            quick = each_choice([case.callspec.params for case in cases])
        else:
            continue
        for number in set(range(len(cases))) - quick:
            cases[number].add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Take all tests out of the garbage collector's sight: each full collection would look at their objects again."""
    gc.collect()
    gc.freeze()


def each_choice(cases: list[dict[str, object]]) -> set[int]:
    """Return the numbers of few cases in which each value of each parameter occurs (each-choice coverage)."""
    values = [{(name, id(value)) for name, value in case.items()} for case in cases]
    missing = set().union(*values)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(cases)), key=lambda number: len(values[number] & missing))
        chosen.add(best)
        missing -= values[best]
    return chosen


@pytest.fixture(scope="session")
def parquet_testing() -> Path:
    """The folder of the conformance suite (``PARQUET_TEST_DATA``); tests that need it skip where it is absent."""
    folder = Path(os.environ.get("PARQUET_TEST_DATA") or ROOT.parent / "shared" / "parquet-testing")
    if not (folder / "data").is_dir():
        pytest.skip(f"no conformance files: set PARQUET_TEST_DATA to a checkout of them (looked in {folder})")
    return folder


@pytest.fixture(scope="session")
def xskipper_stores() -> Path:
    """The folder of real data-skipping stores (``XSKIPPER_STORES``); tests that need it skip where it is absent."""
    folder = Path(os.environ.get("XSKIPPER_STORES") or ROOT.parent / "shared" / "xskipper-stores")
    if not (folder / "cases.json").is_file():
        pytest.skip(f"no data-skipping stores: set XSKIPPER_STORES to a folder of them (looked in {folder})")
    return folder
