"""Time and peak memory of a wide file as an Arrow table and in batches, and pyarrow's time over it."""

from asv_benchmarks.environment import REPEAT, SCALE
from asv_benchmarks.files import default_folder, ensure
from asv_benchmarks.ratios import ratio
from asv_benchmarks.wide_streams import WAYS, WIDE_LONG, time_both


class WideStreams:
    """One read of all rows; files, imports and kernels are prepared."""

    params = tuple(WAYS)
    param_names = ("way",)
    number = 1
    repeat = (3, 10, 20.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, way: str) -> None:
        self.path = ensure(WIDE_LONG, default_folder(), SCALE)
        self.read = WAYS[way][0].read
        self.read(ensure(WIDE_LONG, default_folder(), SCALE / 100))

    def time_read(self, way: str) -> None:
        self.read(self.path)

    def peakmem_read(self, way: str) -> None:
        self.read(self.path)

    def track_pyarrow_over_numparq(self, way: str) -> float | None:
        return ratio(time_both(way, self.path, REPEAT), "numparq", "pyarrow")

    track_pyarrow_over_numparq.unit = "ratio"
