"""Tasks on several threads: when a second thread is worth starting, and row groups decoded concurrently."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.column.jobs import schedule
from numparq.column.jobs.schedule import MIN_SHARED_TASK_BYTES, SINGLE_THREAD_BYTES, TaskScheduler

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
SOME = SINGLE_THREAD_BYTES
LEAST = MIN_SHARED_TASK_BYTES


class Task:
    def __init__(self, num_bytes: int, done: list[int], selection: object = None) -> None:
        self.source, self.selection = SimpleNamespace(num_bytes=num_bytes), selection
        self._done = done

    def __call__(self) -> None:
        self._done.append(self.source.num_bytes)


@pytest.mark.parametrize(
    ("sizes", "is_shared"),
    [
        ([], False),
        ([100 * SOME], False),
        ([100 * SOME, SOME - 1], False),
        ([100 * SOME, SOME], True),
        ([SOME, SOME], True),
        ([SOME - 1] * 2, False),
        ([1] * (2 * SOME // 1000), False),
        ([LEAST] * (2 * SOME // LEAST + 1), True),
        ([LEAST - 1] * 1000, False),  # selected rows of many columns: a page of each
        ([100 * SOME, *[LEAST - 1] * 1000], False),
    ],
)
def test_tasks_are_shared_by_size(sizes, is_shared):
    done: list[int] = []
    shared: list[int] = []
    pool = SimpleNamespace(run=lambda tasks: shared.extend(task.source.num_bytes for task in tasks), threads=2)
    scheduler = TaskScheduler(SimpleNamespace(pool=pool), None, [], None)
    scheduler.run([Task(size, done) for size in sizes])
    assert (shared, done) == ((sizes, []) if is_shared else ([], sizes))


@pytest.mark.parametrize(("size", "is_shared"), [(2 * LEAST - 1, False), (2 * LEAST, True)])
def test_half_of_the_bytes_of_selected_rows_count(size, is_shared):
    shared: list[object] = []
    pool = SimpleNamespace(run=shared.extend, threads=2)
    tasks = [Task(size, [], selection=object()) for _ in range(100)]
    TaskScheduler(SimpleNamespace(pool=pool), None, [], None).run(tasks)
    assert bool(shared) == is_shared


def test_one_thread_shares_nothing():
    done: list[int] = []
    TaskScheduler(SimpleNamespace(pool=SimpleNamespace(threads=1)), None, [], None).run([Task(SOME, done)] * 4)
    assert done == [SOME] * 4


KINDS = {
    "a": pa.array([1, None, 3, 2**60], pa.int64()),
    "b": pa.array([1, 2, None, 4], pa.int32()),
    "c": pa.array([0.5, None, 1.5, 2.5], pa.float64()),
    "d": pa.array([True, None, False, True]),
    "e": pa.array([1, 2, 3, 4], pa.int16()),
    "f": pa.array([1, None, 3, 4], pa.timestamp("us")),
    "s": pa.array(["x", None, "y", "x"]),
    "g": pa.array([1.5, 2.5, 3.5, None], pa.float32()),
}


def encode_columns(columns: str, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: KINDS[name] for name in columns}), sink, store_schema=False, **options)
    return sink.getvalue()


@pytest.mark.parametrize("known", ["", "a", "b", "ad", "abcdefgs"])
@pytest.mark.parametrize("columns", ["ab", "ba", "abcdefsg", "gsfedcba"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_column_decoded_again_leaves_other_columns_unchanged(columns: str, known: str, use_dictionary: bool) -> None:
    """Without null counts, a column may turn out to need another dtype while others are decoded."""
    data = encode_columns(
        columns, write_statistics=[name for name in columns if name in known], use_dictionary=use_dictionary
    )
    found = numparq.read_parquet(data)
    for name in columns:
        alone = numparq.read_parquet(encode_columns(name, write_statistics=False, use_dictionary=use_dictionary))
        pd.testing.assert_series_equal(found[name], alone[name])


def test_largest_tasks_come_first_on_several_threads() -> None:
    shared: list[int] = []
    pool = SimpleNamespace(run=lambda tasks: shared.extend(task.source.num_bytes for task in tasks), threads=2)
    TaskScheduler(SimpleNamespace(pool=pool), None, [], None).run([Task(size, []) for size in (SOME, 1, 3 * SOME, 2)])
    assert shared == [3 * SOME, SOME, 2, 1]


def test_small_chunks_are_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"i": np.arange(5), "f": np.arange(5) / 2, "b": [True] * 5})
    data = numparq.to_parquet(frame)
    counts: list[int] = []
    run = schedule.TaskScheduler.run
    monkeypatch.setattr(
        schedule.TaskScheduler, "run", lambda scheduler, tasks: (counts.append(len(tasks)), run(scheduler, tasks))[1]
    )
    pd.testing.assert_frame_equal(numparq.read_parquet(data), frame)
    assert counts == [1]


def test_error_names_the_damaged_column() -> None:
    data = bytearray(numparq.to_parquet(pd.DataFrame({"i": np.arange(5), "f": np.arange(5) / 2, "b": [True] * 5})))
    with numparq.ParquetFile(bytes(data)) as file:
        place = file.metadata.row_groups[0].columns[1].meta_data
    data[place.data_page_offset + place.total_compressed_size - 1] ^= 0xFF
    with pytest.raises(numparq.CorruptPageError) as failure:
        numparq.read_parquet(bytes(data))
    assert failure.value.where["column"] == "f"
    assert failure.value.where["row_group"] == 0


def test_damage_in_one_column_drops_only_that_column() -> None:
    data = bytearray(numparq.to_parquet(pd.DataFrame({"i": np.arange(5), "f": np.arange(5) / 2, "b": [True] * 5})))
    with numparq.ParquetFile(bytes(data)) as file:
        place = file.metadata.row_groups[0].columns[1].meta_data
    data[place.data_page_offset + place.total_compressed_size - 1] ^= 0xFF
    found = numparq.read_parquet(bytes(data), on_error="skip")
    assert found.columns.tolist() == ["i", "b"]
    assert found["i"].tolist() == list(range(5))
    assert found["b"].all()
