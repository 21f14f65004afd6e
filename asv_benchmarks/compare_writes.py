"""The runner's ``--write``: compares write times and file sizes, or peak memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console

from asv_benchmarks import report
from asv_benchmarks.compare_reads import Settings, progress
from asv_benchmarks.files import ensure
from asv_benchmarks.frames import FrameToWrite
from asv_benchmarks.memory import MB
from asv_benchmarks.ratios import geometric_mean
from asv_benchmarks.write_memory import WritePeak, measure_write
from asv_benchmarks.write_timing import Written, race_writers
from asv_benchmarks.writers import Writer, load_writers, synced

SIZE_BOUND = 1.05
"""Largest size of numparq's files, pyarrow's being 1; asked of the lineitem frames."""


def time_frame(settings: Settings, kind: FrameToWrite, writers: Sequence[Writer]) -> dict[str, Written]:
    """Time all writers on one frame."""
    progress(f"making the frame of {kind.name}")
    frame = kind.load(ensure(kind.file, settings.folder, settings.scale))
    progress(f"timing {kind.name}")
    return race_writers(writers, kind, frame, settings.folder, settings.repeat)


def size_ratio(outcomes: Mapping[str, Written], name: str, base: str = "pyarrow") -> float | None:
    """Return the file size of `name` over that of `base`; None if one is missing."""
    sizes = [outcomes[writer].size if writer in outcomes else None for writer in (name, base)]
    return sizes[0] / sizes[1] if sizes[0] and sizes[1] else None


def _shown_size(value: float | None) -> str:
    if value is None:
        return "-"
    return f"[red]{value:.3f}[/]" if value > SIZE_BOUND else f"{value:.3f}"


def print_sizes(out: Console, results: Mapping[str, Mapping[str, Written]], names: Sequence[str]) -> None:
    """Print pyarrow's sizes in MB, the others' ratios, and their geometric means."""
    others = [name for name in names if name != "pyarrow"]
    made = report.table(out, "frame", ["pyarrow MB", *others])
    ratios = {workload: [size_ratio(outcomes, name) for name in others] for workload, outcomes in results.items()}
    for workload, outcomes in results.items():
        base = outcomes["pyarrow"].size if "pyarrow" in outcomes else None
        shown = "-" if base is None else f"{base / MB:,.2f}"
        made.add_row(workload, shown, *(_shown_size(value) for value in ratios[workload]))
    columns = zip(*ratios.values(), strict=True)
    means = [geometric_mean(value for value in column if value is not None) for column in columns]
    made.add_section()
    made.add_row("geometric mean", "", *(_shown_size(mean) for mean in means))
    report.notes(out, [f"sizes of the files, over that of pyarrow's (bound for lineitem: {SIZE_BOUND})"])
    out.print(made)


def compare_writing(out: Console, settings: Settings) -> bool:
    """Time the writing of all frames and print the tables of times and of sizes.

    Returns
    -------
    bool
        False when numparq failed, or wrote what pyarrow does not read as the frame.
    """
    writers, missing = load_writers(["numparq", *settings.peers], settings.threads)
    if settings.sync:
        writers = [synced(writer) for writer in writers]
    results = {kind.name: time_frame(settings, kind, writers) for kind in settings.frames}
    progress("")
    report.print_times(out, results, writers, missing)
    print_sizes(out, results, [writer.name for writer in writers])
    if settings.json:
        plain = {
            frame: {name: asdict(outcome) for name, outcome in outcomes.items()} for frame, outcomes in results.items()
        }
        versions = {writer.name: writer.version for writer in writers}
        report.save(settings.json, "write", {**settings.summary(), "sync": settings.sync, "versions": versions}, plain)
    own = [outcomes["numparq"] for outcomes in results.values() if "numparq" in outcomes]
    return not any(outcome.failure or outcome.difference for outcome in own)


def _peak_cells(peak: WritePeak) -> list[str]:
    if peak.failure:
        return ["failed", *[""] * 5]
    sizes = [f"{size / MB:,.1f}" for size in (peak.frame, peak.row_group, peak.over)]
    share = f"{peak.over / peak.row_group:.0%}" if peak.row_group else "-"
    return [*sizes, share, "yes" if peak.within_bound else "[red]NO[/]", f"{peak.rows:,}"]


def compare_write_memory(out: Console, settings: Settings) -> bool:
    """Measure the peak of each writer on each frame, each in its own process, and print the table.

    Returns
    -------
    bool
        False when numparq failed, or took more than a row group, at the full size.
    """
    writers, missing = load_writers(["numparq", *settings.peers], settings.threads)
    heads = ["writer", "frame MB", "row group MB", "over MB", "of a row group", "in bound", "rows of it"]
    made = report.table(out, "frame", heads)
    results: dict[str, dict[str, WritePeak]] = {}
    for kind in settings.frames:
        progress(f"making the frame of {kind.name}")
        source = ensure(kind.file, settings.folder, settings.scale)
        results[kind.name] = {}
        for writer in writers:
            progress(f"measuring {writer.name} on {kind.name}")
            peak = measure_write(writer.name, kind, source, settings.folder, settings.threads)
            results[kind.name][writer.name] = peak
            made.add_row(kind.name, writer.name, *_peak_cells(peak))
    progress("")
    report.notes(out, ["peak memory of a write over the frame (bound: one row group of the frame)"])
    out.print(made)
    report.notes(out, (f"{name}: left out, {reason}" for name, reason in missing.items()))
    report.notes(out, report.failures(results))
    if settings.json:
        plain = {frame: {name: asdict(peak) for name, peak in peaks.items()} for frame, peaks in results.items()}
        report.save(settings.json, "write-memory", settings.summary(), plain)
    own = [peaks["numparq"] for peaks in results.values() if "numparq" in peaks]
    # What a writer holds whatever it writes is more than a small frame: the bound is asked of the full size.
    return all(not peak.failure and (settings.scale < 1.0 or peak.within_bound) for peak in own)
