"""The runner's ``--partitions``: compares times, files and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from rich.console import Console

from asv_benchmarks import report
from asv_benchmarks.compare_reads import Settings, progress
from asv_benchmarks.files import ensure
from asv_benchmarks.memory import MB
from asv_benchmarks.partitions.timing import Parts, race_writers
from asv_benchmarks.partitions.writers import load_writers, synced


def _print_files(out: Console, results: Mapping[str, Mapping[str, Parts]]) -> None:
    made = report.table(out, "frame", ["writer", "files", "MB"])
    for frame, outcomes in results.items():
        for name, outcome in outcomes.items():
            if outcome.files is not None and outcome.size is not None:
                made.add_row(frame, name, f"{outcome.files:,}", f"{outcome.size / MB:,.2f}")
    report.notes(out, ["files written"])
    out.print(made)


def compare_partitioned(out: Console, settings: Settings) -> bool:
    """Time all frames and print the tables of times and of files.

    Returns
    -------
    bool
        False when numparq failed, or pyarrow read other rows of its files than those written.
    """
    writers, missing = load_writers(["numparq", *settings.peers], settings.threads)
    if settings.sync:
        writers = [synced(writer) for writer in writers]
    results: dict[str, dict[str, Parts]] = {}
    for kind in settings.partitioned:
        progress(f"making the frame of {kind.name}")
        frame = kind.load(ensure(kind.file, settings.folder, settings.scale))
        progress(f"timing {kind.name}")
        results[kind.name] = race_writers(writers, kind, frame, settings.folder, settings.repeat)
    progress("")
    report.print_times(out, results, writers, missing)
    _print_files(out, results)
    if settings.json:
        plain = {frame: {name: asdict(one) for name, one in outcomes.items()} for frame, outcomes in results.items()}
        versions = {writer.name: writer.version for writer in writers}
        summary = {**settings.summary(), "sync": settings.sync, "versions": versions}
        report.save(settings.json, "partitions", summary, plain)
    own = [outcomes["numparq"] for outcomes in results.values() if "numparq" in outcomes]
    return not any(outcome.failure or outcome.difference for outcome in own)
