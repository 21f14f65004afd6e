"""`numparq.to_parquet`: time, peak memory and bytes written, against pandas with pyarrow."""

import tempfile
from pathlib import Path

from asv_benchmarks.compare_writes import size_ratio
from asv_benchmarks.environment import REPEAT, SCALE, THREADS
from asv_benchmarks.files import default_folder, ensure
from asv_benchmarks.frames import FRAMES
from asv_benchmarks.write_memory import measure_write
from asv_benchmarks.write_timing import race_writers
from asv_benchmarks.writers import load_writer, load_writers


class Write:
    """One write to a local file; frame, imports and kernels are prepared."""

    params = tuple(FRAMES)
    param_names = ("frame",)
    number = 1
    repeat = (5, 20, 10.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, name):
        self.kind = FRAMES[name]
        self.frame = self.kind.load(ensure(self.kind.file, default_folder(), SCALE))
        self.write = load_writer("numparq", THREADS).write
        self.folder = tempfile.TemporaryDirectory(prefix="written-", dir=default_folder())
        self.path = Path(self.folder.name, "frame.parquet")
        self.write(self.frame.head(1_000), self.path, self.kind.codec, self.kind.row_group_size)

    def teardown(self, name):
        self.folder.cleanup()

    def time_write(self, name):
        self.write(self.frame, self.path, self.kind.codec, self.kind.row_group_size)

    def peakmem_write(self, name):
        self.write(self.frame, self.path, self.kind.codec, self.kind.row_group_size)

    def track_bytes_written(self, name):
        self.write(self.frame, self.path, self.kind.codec, self.kind.row_group_size)
        return self.path.stat().st_size

    track_bytes_written.unit = "bytes"


class CompareWriting:
    """numparq against pandas with pyarrow on one frame."""

    params = tuple(FRAMES)
    param_names = ("frame",)
    timeout = 600.0

    def setup(self, name):
        self.kind = FRAMES[name]
        self.source = ensure(self.kind.file, default_folder(), SCALE)

    def track_pyarrow_over_numparq(self, name):
        outcomes = self._race(REPEAT)
        return outcomes["pyarrow"].best / outcomes["numparq"].best

    def track_size_over_pyarrow(self, name):
        return size_ratio(self._race(0, 0.0), "numparq")

    def track_bytes_over_frame(self, name):
        return self._peak().over

    def track_bytes_of_row_group(self, name):
        return self._peak().row_group

    def _race(self, repeat, min_seconds=3.0):
        writers, _ = load_writers(["numparq", "pyarrow"], THREADS)
        frame = self.kind.load(self.source)
        return race_writers(writers, self.kind, frame, default_folder(), repeat, min_seconds)

    def _peak(self):
        return measure_write("numparq", self.kind, self.source, default_folder(), THREADS)

    track_pyarrow_over_numparq.unit = "ratio"
    track_size_over_pyarrow.unit = "ratio"
    track_bytes_over_frame.unit = "bytes"
    track_bytes_of_row_group.unit = "bytes"
