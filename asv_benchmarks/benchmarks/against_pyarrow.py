"""Side-by-side figures over the project's history: ratios, memory over the frame, bytes read."""

from asv_benchmarks import memory
from asv_benchmarks.counting_file import bytes_read
from asv_benchmarks.environment import REPEAT, SCALE, THREADS
from asv_benchmarks.files import columns_of, default_folder, ensure
from asv_benchmarks.ratios import ratio
from asv_benchmarks.readers import load_all
from asv_benchmarks.startup import small_file
from asv_benchmarks.timing import time_in_turns
from asv_benchmarks.workloads import WORKLOADS


class Compare:
    """numparq against pandas with pyarrow on one workload."""

    params = tuple(WORKLOADS)
    param_names = ("workload",)
    timeout = 600.0

    def setup(self, name):
        workload = WORKLOADS[name]
        self.path = ensure(workload.file, default_folder(), SCALE)
        self.small = ensure(WORKLOADS["small"].file, default_folder(), SCALE)
        self.columns = columns_of(workload, self.path)
        self.dates = workload.dates

    def track_pyarrow_over_numparq(self, name):
        readers = [reader.with_dates(self.dates) for reader in load_all(["numparq", "pyarrow"], THREADS)[0]]
        return ratio(time_in_turns(readers, self.path, self.columns, REPEAT), "numparq", "pyarrow")

    def track_frame_bytes(self, name):
        return self._peak().frame

    def track_bytes_over_frame(self, name):
        return self._peak().over

    def track_bytes_asked(self, name):
        return bytes_read(self.path, self.columns, THREADS).bytes

    def track_requests(self, name):
        return bytes_read(self.path, self.columns, THREADS).requests

    def _peak(self):
        task = memory.ReadTask(str(self.path), self.columns, str(self.small), THREADS, self.dates)
        return memory.measure("numparq", task)

    track_pyarrow_over_numparq.unit = "ratio"
    track_frame_bytes.unit = "bytes"
    track_bytes_over_frame.unit = "bytes"
    track_bytes_asked.unit = "bytes"
    track_requests.unit = "requests"


class StartUp:
    """Fresh processes that read the small file."""

    timeout = 600.0
    unit = "ratio"

    def setup(self):
        self.small = ensure(WORKLOADS["small"].file, default_folder(), SCALE)

    def track_numparq_over_pyarrow(self):
        outcomes = small_file(self.small, max(REPEAT, 10))
        return outcomes["numparq"].median / outcomes["pyarrow"].median
