"""The runner's ``--spark``: compares times on a warm session."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
from rich.console import Console

from asv_benchmarks import report
from asv_benchmarks.compare_reads import Settings, progress
from asv_benchmarks.environment import CLOCK
from asv_benchmarks.files import ensure
from asv_benchmarks.queries.compare import print_goals
from asv_benchmarks.queries.goals import Judged
from asv_benchmarks.queries.task import QueryOutcome
from asv_benchmarks.spark.queries import SparkQuery
from asv_benchmarks.spark.session import session
from asv_benchmarks.timing import Outcome, attempt, difference, take_turns

WARM_UP = 2  # rounds that are not counted: the Java machine compiles what it has run some times


@dataclass(frozen=True)
class SparkReader:
    """A way to compute the answer."""

    name: str
    ask: Callable[[], pd.DataFrame]


def time_in_turns(spark: Any, query: SparkQuery, settings: Settings) -> dict[str, Outcome]:
    """Time all ways in turns; their answers must be equal."""
    path = str(ensure(query.folder, settings.folder, settings.scale))
    rows = query.folder.rows_of_file(settings.scale) * query.folder.files
    contenders = [
        SparkReader(name, lambda way=way: way(spark, path, rows))  # type: ignore[misc]
        for name, way in query.ways.items()
    ]
    outcomes: dict[str, Outcome] = {}
    answers: dict[str, pd.DataFrame] = {}
    for contender in contenders:
        for _ in range(WARM_UP):
            answer, failure = attempt(contender.ask)
        outcomes[contender.name] = Outcome(failure=failure)
        if answer is not None:
            answers[contender.name] = answer
    own = answers.pop("numparq", None)
    if own is not None:
        found = [difference(own, answer) for answer in answers.values()]
        outcomes["numparq"].difference = next((one for one in found if one), None)

    def timed(contender: SparkReader, outcome: Outcome) -> None:
        gc.collect()
        start = CLOCK()
        _, outcome.failure = attempt(contender.ask)
        outcome.times.append(CLOCK() - start)

    take_turns(contenders, outcomes, timed, settings.repeat, 0.0)
    return outcomes


def compare_on_spark(out: Console, settings: Settings) -> bool:
    """Time all queries and print the tables of times and goals.

    Returns
    -------
    bool
        False when numparq failed, or gave another answer than Spark's reader.
    """
    results: dict[str, dict[str, Outcome]] = {}
    with session(settings.threads) as spark:
        for query in settings.on_spark:
            progress(f"timing {query.name}")
            results[query.name] = time_in_turns(spark, query, settings)
    progress("")
    made = report.table(out, "query", ["contender", "ms", "/ numparq"])
    for name, outcomes in results.items():
        base = outcomes["numparq"].best
        for who, outcome in outcomes.items():
            best = outcome.best
            shown = "failed" if best is None else f"{best * 1e3:,.0f}{' (!)' if outcome.difference else ''}"
            is_base = who == "numparq" or base is None or best is None
            made.add_row(name, who, shown, "" if is_base else report.shown_ratio(best / base))
    report.notes(out, ["best times on a warm local session, and native / numparq (above 1: numparq is faster)"])
    out.print(made)
    goals = {
        query.name: [Judged(goal, goal.judge(None, QueryOutcome(results[query.name]))) for goal in query.goals]  # type: ignore[arg-type]
        for query in settings.on_spark
    }
    print_goals(out, goals)
    report.notes(out, report.failures(results))
    if settings.json:
        plain = {name: {who: asdict(one) for who, one in outcomes.items()} for name, outcomes in results.items()}
        report.save(settings.json, "spark", settings.summary(), plain)
    own = [outcomes["numparq"] for outcomes in results.values()]
    return not any(outcome.failure or outcome.difference for outcome in own)
