"""Sinks for file objects and bytes in memory."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest

from numparq.io import sink
from numparq.io.open import open_sink
from numparq.io.sink import BytesSink, StreamSink
from support.io.local_files import write_file


def test_bytes_sink():
    with open_sink(None) as target:
        assert isinstance(target, BytesSink)
        assert target.write(b"PAR1") == 4
        assert target.position == 4
        assert target.getvalue() == b"PAR1"
        target.write(np.arange(3, dtype="<i4"))
    assert target.getvalue() == b"PAR1" + bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0])
    assert target.position == 16


def test_writes_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(sink, "_MAX_WRITE_BYTES", 1000)
    monkeypatch.setattr(sink, "_BUFFER_BYTES", 300)
    rng = random.Random(5)
    parts = [rng.randbytes(rng.choice([0, 1, 20, 150, 299, 300, 301, 999, 1000, 5001])) for _ in range(200)]
    for path in (None, tmp_path / "a", io.BytesIO()):
        with open_sink(path) as target:
            for number, part in enumerate(parts):
                target.write(bytearray(part) if number % 2 else part)
                if number % 37 == 0:
                    target.flush()
        assert target.position == sum(map(len, parts))
        found = (
            target.getvalue()
            if path is None
            else path.getvalue()
            if isinstance(path, io.BytesIO)
            else path.read_bytes()
        )
        assert found == b"".join(parts)


def test_buffer_may_change_after_write():
    with open_sink(None) as target:
        data = bytearray(b"abc")
        target.write(data)
        data[:] = b"xyz"
    assert target.getvalue() == b"abc"


BUFFERS = [np.zeros((2, 3), np.float32), np.array([True]), np.zeros((0, 4)), b"", memoryview(b"ab")]


@pytest.mark.parametrize("value", BUFFERS, ids=range(len(BUFFERS)))
def test_buffers_of_any_type(value):
    with open_sink(None) as target:
        assert target.write(value) == memoryview(value).nbytes
    assert target.getvalue() == bytes(memoryview(value).tobytes())
    with pytest.raises(TypeError), open_sink(None) as target:
        target.write("text")


def test_file_object_stays_open(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        file.write(b"before ")
        with open_sink(file) as target:
            assert isinstance(target, StreamSink)
            assert target.name == str(tmp_path / "a")
            target.write(b"PAR1")
            assert target.position == 4
        assert not file.closed
        file.write(b" behind")
    assert (tmp_path / "a").read_bytes() == b"before PAR1 behind"


class PartialStream:
    """A stream that accepts a few bytes at a time, or does not report how many."""

    def __init__(self, most: int | None) -> None:
        self.most, self.data = most, b""

    def write(self, data) -> int | None:
        accepted = bytes(data)[: self.most]
        self.data += accepted
        return None if self.most is None else len(accepted)


@pytest.mark.parametrize("most", [None, 7])
def test_file_objects_with_partial_writes(most):
    stream = PartialStream(most)
    write_file(stream, b"abc" * 100)
    assert stream.data == b"abc" * 100


def test_text_files_raise(tmp_path):
    with open(tmp_path / "a", "w") as file, pytest.raises(TypeError, match="text mode"):
        open_sink(file)
    with pytest.raises(TypeError, match="text mode"):
        open_sink(io.StringIO())
