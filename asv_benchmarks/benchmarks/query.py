"""Filtered reads: numparq's time, peak memory, bytes and requests, and the best peer."""

from asv_benchmarks.environment import REPEAT, SCALE, THREADS
from asv_benchmarks.files import default_folder
from asv_benchmarks.queries.memory import measure
from asv_benchmarks.queries.queries import ALL, QUERIES
from asv_benchmarks.queries.readers import load_query_reader, load_query_readers
from asv_benchmarks.queries.timing import count_io, readers_for, time_in_turns
from asv_benchmarks.ratios import best_peer


class Query:
    """One query to a DataFrame; files, imports and kernels are prepared."""

    params = tuple(QUERIES)
    param_names = ("query",)
    number = 1
    repeat = (5, 20, 10.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, name):
        self.task = QUERIES[name].task(default_folder(), SCALE)
        self.run = load_query_reader("numparq", THREADS).run
        self.run(self.task)  # asv leaves out what is not implemented

    def time_query(self, name):
        self.run(self.task)

    def peakmem_query(self, name):
        self.run(self.task)

    def track_bytes_asked(self, name):
        found = count_io(self.task, THREADS)
        return None if found is None else found.bytes

    def track_requests(self, name):
        found = count_io(self.task, THREADS)
        return None if found is None else found.requests

    track_bytes_asked.unit = "bytes"
    track_requests.unit = "requests"


class CompareQueries:
    """numparq against pyarrow, polars and duckdb on one query."""

    params = tuple(QUERIES)
    param_names = ("query",)
    timeout = 600.0

    def setup(self, name):
        self.task = QUERIES[name].task(default_folder(), SCALE)

    def track_best_peer_over_numparq(self, name):
        contenders, _ = load_query_readers(("pyarrow", "polars", "duckdb"), THREADS)
        outcomes = time_in_turns(readers_for(contenders, QUERIES[name]), self.task, THREADS, REPEAT).outcomes
        best = best_peer(outcomes, "numparq", ALL)
        return None if best is None else best.ratio

    def track_bytes_over_frame(self, name):
        return measure(name, "numparq", default_folder(), SCALE, THREADS).over

    track_best_peer_over_numparq.unit = "ratio"
    track_bytes_over_frame.unit = "bytes"
