"""The queried files: with page indexes, and with the same number of row groups at every scale."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asv_benchmarks import tables
from asv_benchmarks.workloads import MILLION, DataFile

VERSION = 1
"""Of what these files hold, and how."""

NO_LIMIT = 1 << 30


@dataclass(frozen=True)
class NumparqFile(DataFile):
    """A file written by `numparq.to_parquet`: its ``options`` and number of row groups."""

    row_groups: int = 10
    version: int = VERSION

    def write(self, scale: float, path: Path) -> None:
        """Write the table to `path`."""
        import numparq

        frame = self.make(scale).to_pandas()
        numparq.to_parquet(frame, path, row_group_size=-(-len(frame) // self.row_groups), **self.options)


_SMALL_PAGES = {"data_page_size": 64 << 10, "max_rows_per_page": NO_LIMIT}

POINTS = NumparqFile("points", tables.points, 10 * MILLION, _SMALL_PAGES)
SHUFFLED = NumparqFile("shuffled", tables.shuffled, 10 * MILLION, {"bloom_filter_options": {"key": {"fpp": 1e-4}}})
# Pages of 1 MiB, whatever rows that is: a row in 30,000 is then in nearly every page.
MIXED = NumparqFile("mixed", tables.mixed, 5 * MILLION, {"max_rows_per_page": NO_LIMIT}, row_groups=5)
LISTED = DataFile("listed", tables.distinct_keys, 2 * MILLION, {}, VERSION)
WIDE = DataFile("wide-20", tables.wide, 10_000, {"row_group_size": tables.WIDE_ROWS // 20}, VERSION)

# Row look-ups: the same rows as several writers and settings lay them out.
_INDEXED: dict[str, object] = {"write_page_index": True, "data_page_size": 64 << 10, "max_rows_per_page": NO_LIMIT}
_DICTIONARIES: dict[str, object] = {"row_group_size": 100_000, "dictionary_pagesize_limit": 8 << 20}
KEYED: dict[str, DataFile] = {
    "default": DataFile("keyed-default", tables.keyed, 4 * MILLION, {}, VERSION),
    "1-mib-pages": DataFile("keyed-1-mib", tables.keyed, 4 * MILLION, {"max_rows_per_page": NO_LIMIT}, VERSION),
    "indexed": DataFile("keyed-indexed", tables.keyed, 4 * MILLION, _INDEXED, VERSION),
    "numparq": NumparqFile("keyed-numparq", tables.keyed, 4 * MILLION, {}, row_groups=4),
    "dictionary": DataFile("keyed-dictionary", tables.keyed, 400_000, _DICTIONARIES, VERSION),
}
SMALL_GROUPS = DataFile("row-groups-1k", tables.growing_keys, 100_000, {"row_group_size": 100}, VERSION + 1)
