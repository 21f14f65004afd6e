"""Time and peak memory of `numparq.read_parquet` on every workload."""

from asv_benchmarks.environment import SCALE, THREADS
from asv_benchmarks.files import columns_of, default_folder, ensure
from asv_benchmarks.readers import load
from asv_benchmarks.workloads import WORKLOADS


class Read:
    """One read to a DataFrame; files, imports and kernels are prepared."""

    params = tuple(WORKLOADS)
    param_names = ("workload",)
    number = 1
    repeat = (5, 20, 10.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, name):
        workload = WORKLOADS[name]
        self.path = ensure(workload.file, default_folder(), SCALE)
        self.columns = columns_of(workload, self.path)
        self.read = load("numparq", THREADS).with_dates(workload.dates).read
        self.read(ensure(WORKLOADS["small"].file, default_folder(), SCALE), None)

    def time_read(self, name):
        self.read(self.path, self.columns)

    def peakmem_read(self, name):
        self.read(self.path, self.columns)
