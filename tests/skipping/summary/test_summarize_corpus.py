"""Summaries of the conformance files are sound against a full read."""

from __future__ import annotations

from pathlib import Path

import pytest

from numparq.errors import ParquetError
from numparq.format.open_file import OpenFile
from numparq.skipping.summary.summarize import Wish, summarize_file
from support.summary_keys import key_of, keys_of, true_keys

LARGE = "large_string_map.brotli.parquet"  # strings of 1 GiB


@pytest.mark.slow
def test_summaries_of_the_conformance_files_are_sound(parquet_testing: Path) -> None:
    num_columns, sources = 0, set()
    for path in sorted(parquet_testing.rglob("*.parquet")):
        try:
            file = OpenFile(path)
            leaves = list(file.schema) if path.name != LARGE else []
        except ParquetError:
            continue
        for leaf in leaves:
            try:
                keys, nans = true_keys(leaf, file)
                found = [summarize_file(file, {leaf.index: wish})[leaf.index] for wish in (Wish(), Wish(True, 10**6))]
            except ParquetError:
                continue
            for summary in found:
                context = path.name, leaf.name, summary
                assert summary.has_values or not (keys or nans), context
                assert summary.has_nans is not False or not nans, context
                if keys and summary.low is not None and summary.high is not None:
                    assert key_of(leaf, summary.low) <= min(keys), context
                    assert key_of(leaf, summary.high) >= max(keys), context
                sources.add(summary.bounds_source)
            assert found[1].values is not None
            assert set(keys_of(leaf, found[1].values)) >= set(keys), context
            num_columns += 1
    assert num_columns > 500
    assert sources == {"footer", "dictionary", "data"}
