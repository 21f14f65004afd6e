"""Batched reads: numparq's time and peak memory, and pyarrow's `iter_batches`."""

from asv_benchmarks.batches.files import BATCHED
from asv_benchmarks.batches.memory import measure
from asv_benchmarks.batches.readers import load_batch_reader, load_batch_readers
from asv_benchmarks.batches.timing import time_in_turns
from asv_benchmarks.environment import REPEAT, SCALE, THREADS
from asv_benchmarks.files import default_folder
from asv_benchmarks.ratios import ratio


class Batches:
    """A file of twenty times the memory limit; files, imports and kernels are prepared."""

    params = tuple(BATCHED)
    param_names = ("file",)
    number = 1
    repeat = (3, 10, 20.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, name):
        self.task = BATCHED[name].task(default_folder(), SCALE)
        self.drain = load_batch_reader("numparq", THREADS).drain
        self.drain(BATCHED[name].small(default_folder(), SCALE))

    def time_drain(self, name):
        self.drain(self.task)

    def track_peak(self, name):
        return measure(name, "numparq", default_folder(), SCALE, THREADS).peak

    def track_limit(self, name):
        return self.task.limit

    def track_pyarrow_over_numparq(self, name):
        contenders, _ = load_batch_readers(("pyarrow",), THREADS)
        return ratio(time_in_turns(contenders, self.task, REPEAT), "numparq", "pyarrow")

    track_peak.unit = "bytes"
    track_limit.unit = "bytes"
    track_pyarrow_over_numparq.unit = "ratio"
