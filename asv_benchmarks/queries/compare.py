"""The runner's ``--queries``: compares times, bytes and goals, or peak memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console

from asv_benchmarks import report
from asv_benchmarks.compare_reads import Settings, progress
from asv_benchmarks.memory import MB, Peak
from asv_benchmarks.queries.goals import Judged
from asv_benchmarks.queries.memory import measure
from asv_benchmarks.queries.queries import ALL, Query
from asv_benchmarks.queries.readers import QueryReader, load_query_readers
from asv_benchmarks.queries.task import QueryOutcome
from asv_benchmarks.queries.timing import readers_for, time_in_turns
from asv_benchmarks.ratios import best_peer, ratio


def time_query(
    settings: Settings, query: Query, contenders: Sequence[QueryReader]
) -> tuple[QueryOutcome, list[Judged]]:
    """Return the outcome of a query, and of its goals."""
    progress(f"making the file of {query.name}")
    task = query.task(settings.folder, settings.scale)
    progress(f"timing {query.name}")
    answers = time_in_turns(readers_for(contenders, query), task, settings.threads, settings.repeat)
    return answers, [Judged(goal, goal.judge(task, answers)) for goal in query.goals]


def _time_cell(answers: QueryOutcome) -> str:
    own = answers.outcomes.get("numparq")
    if own is None or own.best is None:
        return "-" if own is None else "failed"
    return f"{own.best * 1e3:,.2f}{' (!)' if own.difference else ''}"


def _peer_cell(answers: QueryOutcome, name: str) -> str:
    """Return the ratio to numparq's time, or the time itself if numparq has none."""
    outcome = answers.outcomes.get(name)
    if outcome is None:
        return ""
    if outcome.best is None:
        return "failed"
    value = ratio(answers.outcomes, "numparq", name)
    shown = f"({outcome.best * 1e3:,.2f} ms)" if value is None else report.shown_ratio(value)
    return shown + (" (!)" if outcome.difference else "")


def _best_cell(answers: QueryOutcome) -> str:
    best = best_peer(answers.outcomes, "numparq", ALL)
    return "-" if best is None else f"{report.shown_ratio(best.ratio)} {best.peer}"


def _repeated_cell(answers: QueryOutcome) -> str:
    """Return the same for repeated queries, in ms and as a ratio."""
    repeated = {name: outcome.repeated for name, outcome in answers.outcomes.items()}
    best = best_peer(repeated, "numparq", ALL)
    own = repeated["numparq"].best if "numparq" in repeated else None
    return "-" if best is None or own is None else f"{own * 1e3:,.2f} {report.shown_ratio(best.ratio)} {best.peer}"


def _asked_cell(answers: QueryOutcome) -> str:
    asked = answers.asked
    return "-" if asked is None else f"{asked.bytes / MB:,.3f} in {asked.requests:,}"


def print_queries(out: Console, results: Mapping[str, QueryOutcome], names: Sequence[str]) -> None:
    """Print the table of ratios, and numparq's bytes and requests."""
    peers = [name for name in names if name != "numparq"]
    columns = ["rows", "numparq ms", *peers, "best peer", "in a row", "MB read in requests"]
    made = report.table(out, "query", columns)
    for query, answers in results.items():
        rows = "-" if answers.num_rows is None else f"{answers.num_rows:,}"
        cells = [_peer_cell(answers, name) for name in peers]
        cells += [_best_cell(answers), _repeated_cell(answers), _asked_cell(answers)]
        made.add_row(query, rows, _time_cell(answers), *cells)
    report.notes(out, ["best times of numparq, and peer / numparq (above 1: numparq is faster)"])
    out.print(made)


def print_goals(out: Console, goals: Mapping[str, Sequence[Judged]]) -> None:
    """Print goals and results."""
    made = report.table(out, "query", ["goal", "measured", "reached"])
    words = {True: "[green]yes[/]", False: "[red]NO[/]", None: "-"}
    for query, judged in goals.items():
        for one in judged:
            made.add_row(query, one.goal.wanted, one.verdict.measured, words[one.verdict.holds])
    report.notes(out, ["goals; those of times are meant for the full size"])
    out.print(made)


def print_asked(out: Console, results: Mapping[str, QueryOutcome]) -> None:
    """Print each reader's requests to the object store, if there is one."""
    made = report.table(out, "query", ["contender", "MB", "requests", "round trips"])
    for query, answers in results.items():
        for name, asked in answers.asked_of_store.items():
            made.add_row(query, name, f"{asked.bytes / MB:,.3f}", f"{asked.requests:,}", f"{asked.round_trips:,}")
    if made.row_count:
        report.notes(out, ["asked of the object store; round trips wait for one another"])
        out.print(made)


def _plain(answers: QueryOutcome, judged: Sequence[Judged]) -> dict[str, object]:
    return {
        "outcomes": {name: asdict(outcome) for name, outcome in answers.outcomes.items()},
        "num_rows": answers.num_rows,
        "asked": None if answers.asked is None else asdict(answers.asked),
        "asked_of_store": {name: asdict(asked) for name, asked in answers.asked_of_store.items()},
        "goals": {one.goal.wanted: asdict(one.verdict) for one in judged},
    }


def compare_queries(out: Console, settings: Settings) -> bool:
    """Time all queries and print the tables of times and of goals.

    Returns
    -------
    bool
        False when numparq failed, gave other rows than the peers, or missed a goal that does not depend on the machine.
    """
    contenders, missing = load_query_readers(settings.peers, settings.threads)
    timed = {query.name: time_query(settings, query, contenders) for query in settings.queries}
    results = {name: answers for name, (answers, _) in timed.items()}
    goals = {name: judged for name, (_, judged) in timed.items()}
    progress("")
    print_queries(out, results, [contender.name for contender in contenders])
    print_asked(out, results)
    print_goals(out, goals)
    report.notes(out, (f"{name}: left out, {reason}" for name, reason in missing.items()))
    report.notes(out, report.failures({name: answers.outcomes for name, answers in results.items()}))
    report.notes(
        out,
        (f"requests of {name} not counted: {answers.failure}" for name, answers in results.items() if answers.failure),
    )
    if settings.json:
        plain = {name: _plain(answers, judged) for name, (answers, judged) in timed.items()}
        versions = {contender.name: contender.version for contender in contenders}
        report.save(settings.json, "queries", {**settings.summary(), "versions": versions}, plain)
    own = [answers.outcomes["numparq"] for answers in results.values() if "numparq" in answers.outcomes]
    wrong = any(outcome.failure or outcome.difference for outcome in own)
    uncounted = any(answers.failure for answers in results.values())
    missed = any(one.fails_the_run for judged in goals.values() for one in judged)
    return not (wrong or uncounted or missed)


def compare_query_memory(out: Console, settings: Settings) -> bool:
    """Measure the peak of each contender in each query, each in its own process, and print the table.

    Returns
    -------
    bool
        False when numparq failed.
    """
    contenders, missing = load_query_readers(settings.peers, settings.threads)
    made = report.table(out, "query", ["contender", "frame MB", "over MB"])
    results: dict[str, dict[str, Peak]] = {}
    for query in settings.queries:
        progress(f"making the file of {query.name}")
        query.task(settings.folder, settings.scale)
        results[query.name] = {}
        for contender in readers_for(contenders, query):
            progress(f"measuring {contender.name} on {query.name}")
            peak = measure(query.name, contender.name, settings.folder, settings.scale, settings.threads)
            results[query.name][contender.name] = peak
            sizes = ["failed", ""] if peak.failure else [f"{size / MB:,.1f}" for size in (peak.frame, peak.over)]
            made.add_row(query.name, contender.name, *sizes)
    progress("")
    report.notes(out, ["peak memory of a query over its frame"])
    out.print(made)
    report.notes(out, (f"{name}: left out, {reason}" for name, reason in missing.items()))
    report.notes(out, report.failures(results))
    if settings.json:
        plain = {query: {name: asdict(peak) for name, peak in peaks.items()} for query, peaks in results.items()}
        report.save(settings.json, "query-memory", settings.summary(), plain)
    return not any(peaks["numparq"].failure for peaks in results.values() if "numparq" in peaks)
