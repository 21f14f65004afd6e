"""Partitioned writes: numparq's time and files, and pandas with pyarrow."""

import tempfile
from pathlib import Path

from asv_benchmarks.environment import REPEAT, SCALE, THREADS
from asv_benchmarks.files import default_folder, ensure, remove
from asv_benchmarks.partitions.frames import PARTITIONED
from asv_benchmarks.partitions.timing import race_writers, written
from asv_benchmarks.partitions.writers import load_writer, load_writers
from asv_benchmarks.ratios import ratio


class WritePartitions:
    """One frame written to a hundred partitions."""

    params = tuple(PARTITIONED)
    param_names = ("frame",)
    number = 1
    repeat = (3, 10, 20.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, name):
        self.kind = PARTITIONED[name]
        self.frame = self.kind.load(ensure(self.kind.file, default_folder(), SCALE))
        self.writer = load_writer("numparq", THREADS)
        self.folder = tempfile.TemporaryDirectory(prefix="parts-", dir=default_folder())
        self.path = Path(self.folder.name, "frame")
        written(self.writer, self.kind, self.frame, self.path)

    def teardown(self, name):
        self.folder.cleanup()

    def time_write(self, name):
        remove(self.path)
        self.writer.write(self.frame, self.path, self.kind.codec, list(self.kind.keys))

    def track_bytes_written(self, name):
        remove(self.path)
        return written(self.writer, self.kind, self.frame, self.path).size

    def track_pyarrow_over_numparq(self, name):
        writers, _ = load_writers(["numparq", "pyarrow"], THREADS)
        return ratio(race_writers(writers, self.kind, self.frame, default_folder(), REPEAT), "numparq", "pyarrow")

    track_bytes_written.unit = "bytes"
    track_pyarrow_over_numparq.unit = "ratio"
