"""Shared jobs that write batches of a stream: each batch once, however often it is repeated or killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import numparq
from numparq.dataset.commit.stream_batch import StreamBatch
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import InvalidFileError, SchemaError
from support.io.killed_process import run_killed_at_step
from support.io.remote_datasets import KINDS, list_all_files, object_store, put_file, read_rows, remote_folder

Location = tuple[str, Any]


@pytest.fixture(params=["local", *KINDS])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    if request.param == "local":
        yield str(tmp_path / "data"), None
    else:
        pytest.importorskip("fsspec")
        with remote_folder(request.param, tmp_path) as found:
            yield found


def begin(location: Location, number: int, stream: str = "query", **options: Any) -> SharedJob:
    path, filesystem = location
    return SharedJob.begin(path, filesystem=filesystem, batch=StreamBatch(stream, number), **options)


def write(location: Location, number: int, task: str = "0", **options: Any) -> TaskMessage:
    """Write rows n = 10 * number, + 1 in a process of its own, which begins the job itself."""
    with begin(location, number, **options).task(task) as writer:
        writer.write(pd.DataFrame({"n": [10 * number, 10 * number + 1]}))
    return writer.message


def commit(location: Location, number: int, *messages: TaskMessage, **options: Any) -> bool:
    return begin(location, number, **options).commit(messages)


def numbers(location: Location) -> list[int]:
    path, filesystem = location
    return sorted(numparq.read_parquet(path, filesystem=filesystem)["n"].tolist())


def leftovers(location: Location) -> list[str]:
    """Return the names of all files but data files in their place, and marks."""
    path, filesystem = location
    if filesystem is None:
        names = [str(name.relative_to(path)) for name in Path(path).rglob("*")]
    else:
        start = len(path.lstrip("/")) + 1
        names = [name.lstrip("/")[start:] for name in list_all_files(location)]
    return [name for name in names if name[:5] != "part-" and name[:16] != "_numparq_stream-"]


def test_batch_is_committed_once(location):
    assert commit(location, 0, write(location, 0), write(location, 0, "1"))
    assert numbers(location) == [0, 0, 1, 1]
    assert [commit(location, number, write(location, number)) for number in (0, 1, 1, 0)] == [False, True, False, False]
    assert numbers(location) == [0, 0, 1, 1, 10, 11]
    assert leftovers(location) == []


def test_streams_do_not_know_each_others_batches(location):
    for stream in ("query", "another"):
        assert commit(location, 3, write(location, 3, stream=stream), stream=stream)
    assert numbers(location) == [30, 30, 31, 31]


def test_repeated_overwrite_replaces_nothing(location):
    for number in (0, 1):
        assert commit(location, number, write(location, number, mode="overwrite"), mode="overwrite")
    assert numbers(location) == [10, 11]
    before = list_all_files(location) if location[1] is not None else sorted(os.listdir(location[0]))
    assert not commit(location, 1, write(location, 1, mode="overwrite"), mode="overwrite")
    assert before == (list_all_files(location) if location[1] is not None else sorted(os.listdir(location[0])))


def test_next_commit_removes_what_earlier_attempts_left(location):
    for number in (1, 2, 2, 7):
        write(location, number)  # tasks of killed queries
    write(location, 1, stream="another")
    assert len(leftovers(location)) >= 5
    commit(location, 2, write(location, 2))
    assert numbers(location) == [20, 21]
    left = {name.partition("/")[0] for name in leftovers(location)}
    assert {name[-28:] for name in left} == {StreamBatch("query", 7).job, StreamBatch("another", 1).job}


def test_aborted_batch_can_be_repeated(location):
    write(location, 0)
    begin(location, 0).abort()
    assert leftovers(location) == []
    assert commit(location, 0, write(location, 0))
    assert numbers(location) == [0, 1]


def test_batch_without_rows_is_marked(location):
    commit(location, 0, write(location, 0))
    with begin(location, 1).task("0") as writer:
        pass
    assert commit(location, 1, writer.message)
    assert not commit(location, 1, write(location, 1))
    assert numbers(location) == [0, 1]


def test_other_columns_are_refused_by_the_commit(location):
    commit(location, 0, write(location, 0))
    with begin(location, 1).task("0") as writer:
        writer.write(pd.DataFrame({"n": ["a"]}))
    with pytest.raises(SchemaError, match="do not form one table with the existing ones"):
        commit(location, 1, writer.message)
    assert numbers(location) == [0, 1]
    assert commit(location, 1, write(location, 1)), "the batch is not marked"


def test_damaged_mark_is_an_error(location):
    commit(location, 0, write(location, 0))
    mark = StreamBatch("query", 0).mark
    if location[1] is None:
        Path(location[0], mark).write_bytes(b"{")
    else:
        put_file(location, mark, b"{")
    with pytest.raises(InvalidFileError, match="the mark of a stream is damaged"):
        commit(location, 1, write(location, 1))
    assert numbers(location) == [0, 1]


# --- killed processes -------------------------------------------------------------------------------------------------


@pytest.mark.quick_cases(1)
@pytest.mark.skipif(os.name != "posix", reason="uses POSIX signals and locks")
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_batch_killed_at_any_step_is_committed_once(tmp_path, mode, stride):
    before = str(tmp_path / "before"), None
    commit(before, 0, write(before, 0))
    after = {"append": [0, 1, 10, 11], "overwrite": [10, 11]}[mode]

    def batch(location: Location) -> None:
        commit(location, 1, write(location, 1, mode=mode), mode=mode)

    step, killed, seen = 0, True, []
    while killed:
        location = str(tmp_path / str(step)), None
        shutil.copytree(before[0], location[0])
        killed = run_killed_at_step(step, lambda location=location: batch(location))
        seen.append(numbers(location))
        assert seen[-1] in ([0, 1], after)
        batch(location)
        assert numbers(location) == after
        assert leftovers(location) == []
        step += stride
    assert seen[0] == [0, 1]
    assert seen[-1] == after
    assert len(seen) > 20 // stride


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_batch_on_an_object_store_that_fails_at_any_request_is_committed_once(mode):
    pytest.importorskip("fsspec")
    after = {"append": [0, 1, 10, 11], "overwrite": [10, 11]}[mode]
    seen = []
    for step in range(100):
        store = object_store()
        location = "/bucket/data", store
        commit(location, 0, write(location, 0))
        originals = {name: getattr(store, name) for name in ("pipe_file", "rm_file", "cp_file")}
        left = step

        def fail(change: Any) -> Any:
            def do(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise OSError("killed")
                return change(*arguments, **options)

            return do

        for name, change in originals.items():
            setattr(store, name, fail(change))
        try:
            commit(location, 1, write(location, 1, mode=mode), mode=mode)
            killed = False
        except OSError:
            killed = True
        for name, change in originals.items():
            setattr(store, name, change)
        seen.append(numbers(location))
        assert seen[-1] in ([0, 1], after)
        commit(location, 1, write(location, 1, mode=mode), mode=mode)
        assert numbers(location) == after
        assert leftovers(location) == []
        if not killed:
            break
    assert not killed
    assert seen[0] == [0, 1]
    assert after in seen[:-1], "the commit can fail after it took effect"


def test_extra_files_of_a_dead_commit_do_not_appear():
    """A driver that dies after it moved more files than the repeated batch has, and before these count."""
    pytest.importorskip("fsspec")
    store = object_store()
    location = "/bucket/data", store
    messages = [write(location, 0, task) for task in ("0", "1")]
    original = store.rm_file
    store.rm_file = lambda path: (_ for _ in ()).throw(OSError("killed"))
    puts = store.pipe_file

    def die_at_commit(path: str, data: bytes, **options: Any) -> None:
        if b'"committed"' in data:
            raise OSError("killed")
        puts(path, data, **options)

    store.pipe_file = die_at_commit
    with pytest.raises(OSError, match="killed"):
        commit(location, 0, *messages)
    store.rm_file, store.pipe_file = original, puts
    assert read_rows(location) == {}
    assert commit(location, 0, write(location, 0))
    assert numbers(location) == [0, 1]
    assert leftovers(location) == []
