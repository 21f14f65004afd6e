"""The runner's ``--batches``: compares times, or peak memory with numparq's limit."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from asv_benchmarks import report
from asv_benchmarks.batches.files import TIMES_THE_LIMIT
from asv_benchmarks.batches.memory import BatchPeak, measure
from asv_benchmarks.batches.readers import load_batch_readers
from asv_benchmarks.batches.timing import time_in_turns
from asv_benchmarks.compare_reads import Settings, progress
from asv_benchmarks.memory import MB
from asv_benchmarks.timing import Outcome


def compare_batches(out: Console, settings: Settings) -> bool:
    """Time all files and print the table.

    Returns
    -------
    bool
        False when numparq failed, or gave other rows than the peers.
    """
    contenders, missing = load_batch_readers(settings.peers, settings.threads)
    results: dict[str, dict[str, Outcome]] = {}
    for batched in settings.batched:
        progress(f"making the file of {batched.name}")
        task = batched.task(settings.folder, settings.scale)
        progress(f"timing {batched.name}")
        results[batched.name] = time_in_turns(contenders, task, settings.repeat)
    progress("")
    report.notes(out, [f"files of {TIMES_THE_LIMIT} times the memory that numparq may take, in batches"])
    report.print_times(out, results, contenders, missing)
    if settings.json:
        plain = {name: {who: asdict(one) for who, one in outcomes.items()} for name, outcomes in results.items()}
        versions = {contender.name: contender.version for contender in contenders}
        report.save(settings.json, "batches", {**settings.summary(), "versions": versions}, plain)
    own = [outcomes["numparq"] for outcomes in results.values() if "numparq" in outcomes]
    return not any(outcome.failure or outcome.difference for outcome in own)


def _cells(name: str, peak: BatchPeak) -> list[str]:
    if peak.failure:
        return ["failed", "", "", ""]
    verdict = ("yes" if peak.within_limit else "[red]NO[/]") if name == "numparq" else ""
    return [f"{size / MB:,.1f}" for size in (peak.file_size, peak.limit, peak.peak)] + [verdict]


def compare_batch_memory(out: Console, settings: Settings) -> bool:
    """Measure the peak of each contender on each file, each in its own process, and print the table.

    Returns
    -------
    bool
        False when numparq failed, or took more than its limit, at the full size.
    """
    contenders, missing = load_batch_readers(settings.peers, settings.threads)
    made = report.table(out, "file", ["contender", "file MB", "limit MB", "peak MB", "within limit"])
    results: dict[str, dict[str, BatchPeak]] = {}
    for batched in settings.batched:
        progress(f"making the file of {batched.name}")
        batched.small(settings.folder, settings.scale)
        results[batched.name] = {}
        for contender in contenders:
            progress(f"measuring {contender.name} on {batched.name}")
            peak = measure(batched.name, contender.name, settings.folder, settings.scale, settings.threads)
            results[batched.name][contender.name] = peak
            made.add_row(batched.name, contender.name, *_cells(contender.name, peak))
    progress("")
    report.notes(out, ["peak memory of reading a file in batches; numparq alone is given the limit"])
    out.print(made)
    report.notes(out, (f"{name}: left out, {reason}" for name, reason in missing.items()))
    report.notes(out, report.failures(results))
    if settings.json:
        plain = {name: {who: asdict(peak) for who, peak in peaks.items()} for name, peaks in results.items()}
        report.save(settings.json, "batch-memory", settings.summary(), plain)
    own = [peaks["numparq"] for peaks in results.values() if "numparq" in peaks]
    # What a reader holds whatever it reads may be more than a small limit: it is asked of the full size.
    return all(not peak.failure and (settings.scale < 1.0 or peak.within_limit) for peak in own)
