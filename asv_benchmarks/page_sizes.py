"""Page and row group sizes: the cost for a full scan and the savings for a look-up.

``python -m asv_benchmarks.page_sizes`` writes the lineitem frame with each of `SETTINGS` and prints a table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from asv_benchmarks import lookups, report
from asv_benchmarks.compare_reads import progress
from asv_benchmarks.files import default_folder, ensure
from asv_benchmarks.frames import FRAMES
from asv_benchmarks.memory import MB
from asv_benchmarks.readers import limit_threads, load

KB = 1_000
NO_LIMIT = 1 << 30

SETTINGS: dict[str, dict[str, int]] = {
    "defaults": {},
    "pages of 8 KiB": {"data_page_size": 1 << 13},
    "pages of 16 KiB": {"data_page_size": 1 << 14},
    "pages of 32 KiB": {"data_page_size": 1 << 15},
    "pages of 128 KiB": {"data_page_size": 1 << 17},
    "pages of 1 MiB": {"data_page_size": 1 << 20},
    "pages of 64 KiB, any rows": {"data_page_size": 1 << 16, "max_rows_per_page": NO_LIMIT},
    "pages of 1 MiB, any rows": {"data_page_size": 1 << 20, "max_rows_per_page": NO_LIMIT},
    "pages of 1,000 rows": {"data_page_size": NO_LIMIT, "max_rows_per_page": 1_000},
    "pages of 5,000 rows": {"data_page_size": NO_LIMIT, "max_rows_per_page": 5_000},
    "pages of 20,000 rows": {"data_page_size": NO_LIMIT, "max_rows_per_page": 20_000},
    "groups of 122,880 rows": {"row_group_size": 122_880},
    "groups of 262,144 rows": {"row_group_size": 1 << 18},
    "groups of 524,288 rows": {"row_group_size": 1 << 19},
    "one row group": {"row_group_size": NO_LIMIT},
}
"""Arguments of `numparq.to_parquet`; what is not named is left at its default."""


@dataclass
class SizeTimes:
    """What one setting comes to.

    Attributes
    ----------
    size : int
        Bytes of the file.
    seconds : dict of str to list of float
        Times of a round each: ``write``, ``scan``, ``scan_pyarrow``, and of one look-up ``lookup``,
        ``lookup_pyarrow``.
    asked : dict of str to float
        Bytes that one look-up reads on average, by ``lookup`` and ``lookup_pyarrow``, and ``by_index``: what it has to
        read by the offset index.
    """

    size: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)

    def time(self, name: str, call: Callable[[], object], times: int = 1) -> None:
        """Time a call that repeats something `times` times, and record it by name."""
        start = time.perf_counter()
        call()
        self.seconds.setdefault(name, []).append((time.perf_counter() - start) / times)


def measure(
    frame: pd.DataFrame,
    settings: Mapping[str, Mapping[str, Any]],
    folder: Path,
    repeat: int,
    threads: int,
    compression: str = "snappy",
) -> dict[str, SizeTimes]:
    """Write, scan and look up with every setting, in rounds over all of them; the first is a warm-up and not timed.

    Parameters
    ----------
    frame : DataFrame
        The lineitem frame.
    settings : mapping of str to mapping
        Arguments of `numparq.to_parquet` by the settings' names.
    folder : Path
        Where a folder of files is made, and removed; one file at a time is there.
    repeat : int
        Timed rounds.
    threads : int
        Threads of numparq and of pyarrow.
    compression : str
        The codec.

    Returns
    -------
    dict of str to Measured
        By the settings' names.
    """
    import numparq

    pyarrow = load("pyarrow", threads)
    wanted = lookups.spread(frame)
    results = {name: SizeTimes() for name in settings}
    with tempfile.TemporaryDirectory(prefix="sizes-", dir=folder) as written:
        path = Path(written, "lineitem.parquet")
        for turn in range(repeat + 1):
            for name, options in settings.items():
                progress(f"round {turn} of {repeat}: {name}")
                kept = results[name]
                of_turn = SizeTimes() if turn == 0 else kept
                of_turn.time(
                    "write",
                    lambda options=options: numparq.to_parquet(  # type: ignore[misc]
                        frame, path, compression, threads=threads, **options
                    ),
                )
                of_turn.time("scan", lambda: numparq.read_parquet(path, threads=threads))
                of_turn.time("scan_pyarrow", lambda: pyarrow.read(path, None))
                for reader, look_up in lookups.READERS.items():
                    of_turn.time(reader, lambda look_up=look_up: look_up(path, wanted, threads), len(wanted))  # type: ignore[misc]
                if turn == 0:
                    kept.size = path.stat().st_size
                    kept.asked = {
                        reader: lookups.bytes_asked(reader, path, wanted, threads) for reader in lookups.READERS
                    }
                    kept.asked["by_index"] = lookups.bytes_by_index(path, wanted)
                path.unlink()
    progress("")
    return results


HEADS = ("MB", "write ms", "scan ms", "pyarrow scan ms", "by index KB", "look-up KB", "ms", "pyarrow look-up KB", "ms ")


def _cells(found: SizeTimes) -> list[str]:
    best = {name: f"{min(times) * 1e3:,.2f}" for name, times in found.seconds.items()}
    asked = {name: f"{count / KB:,.1f}" for name, count in found.asked.items()}
    return [
        f"{found.size / MB:,.2f}",
        best["write"],
        best["scan"],
        best["scan_pyarrow"],
        asked["by_index"],
        asked["lookup"],
        best["lookup"],
        asked["lookup_pyarrow"],
        best["lookup_pyarrow"],
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m asv_benchmarks.page_sizes", description="sizes of pages and row groups"
    )
    parser.add_argument("--only", metavar="NAME;...", help="settings to measure, ';' between them; without it all")
    parser.add_argument("--compression", choices=("snappy", "zstd"), default="snappy")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size (default 1.0)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both readers (default 2)")
    parser.add_argument("--repeat", type=int, default=5, help="timed rounds (default 5)")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the files (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured to a file")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; by default that of the process.

    Returns
    -------
    int
        0.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    names = list(SETTINGS) if options.only is None else [name.strip() for name in options.only.split(";")]
    unknown = [name for name in names if name not in SETTINGS]
    if unknown:
        parser.error(f"no setting named {', '.join(unknown)}")
    limit_threads(options.threads)
    kind = FRAMES["lineitem-snappy"]
    frame = kind.load(ensure(kind.file, options.data.absolute(), options.scale))
    chosen = {name: SETTINGS[name] for name in names}
    results = measure(frame, chosen, options.data, options.repeat, options.threads, options.compression)
    out = report.console()
    made = report.table(out, "setting", HEADS)
    for name, found in results.items():
        made.add_row(name, *_cells(found))
    report.notes(out, [f"lineitem, {len(frame):,} rows, {options.compression}; a look-up: {lookups.DESCRIPTION}"])
    out.print(made)
    report.notes(out, ["by index: the footer, offset indexes, dictionary and data pages that such a look-up needs"])
    if options.json:
        plain = {name: {"options": SETTINGS[name], **asdict(found)} for name, found in results.items()}
        summary = {"scale": options.scale, "threads": options.threads, "repeat": options.repeat}
        report.save(options.json, "sizes", {**summary, "compression": options.compression}, plain)
    return 0


if __name__ == "__main__":
    sys.exit(main())
