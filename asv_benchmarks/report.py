"""Tables and notes on the terminal; Markdown without colours for pipes and files."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from asv_benchmarks.ratios import Results, ratio, summarise
from asv_benchmarks.timing import Named

PIPE_WIDTH = 200


def console() -> Console:
    """Return the console of standard output, wide enough for all cells if not a terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def table(out: Console, first: str, others: Sequence[str]) -> Table:
    """Return an empty table: the first column left-aligned, the others right-aligned."""
    made = Table(box=box.SIMPLE_HEAD if out.is_terminal else box.MARKDOWN)
    made.add_column(first, no_wrap=True)
    for name in others:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def shown_ratio(value: float | None) -> str:
    """Return a ratio as a cell, coloured by the side of 1."""
    if value is None:
        return "-"
    return f"[{'green' if value >= 1.0 else 'red'}]{value:.2f}[/]"


def notes(out: Console, lines: Iterable[str]) -> None:
    """Print lines around a table without markup."""
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)


def _cells(outcomes: Mapping[str, object], base: str, peers: Sequence[str]) -> list[str]:
    own = outcomes[base]
    time_cell = "failed" if own.best is None else f"{own.best * 1e3:,.2f}"
    if own.difference:
        time_cell += " (!)"
    ratios = ("failed" if outcomes[peer].failure else shown_ratio(ratio(outcomes, base, peer)) for peer in peers)
    return [time_cell, *ratios]


def print_times(out: Console, results: Results, contenders: Sequence[Named], missing: Mapping[str, str]) -> None:
    """Print the table of ratios and its summary.

    The first of `contenders` has absolute times: numparq, or the first peer without it.
    """
    base, *peers = [contender.name for contender in contenders]
    made = table(out, "workload", [f"{base} ms", *peers])
    for workload, outcomes in results.items():
        made.add_row(workload, *_cells(outcomes, base, peers))
    summaries = {peer: summarise(results, base, peer) for peer in peers}
    made.add_section()
    made.add_row("geometric mean", "", *(shown_ratio(summary.mean) for summary in summaries.values()))
    notes(out, [f"best times of {base}, and peer / {base} (above 1: {base} is faster)"])
    out.print(made)
    for peer, summary in summaries.items():
        notes(out, [f"slower than {peer}: {len(summary.slower)} of {summary.compared}  {', '.join(summary.slower)}"])
    notes(out, (f"{name}: left out, {reason}" for name, reason in missing.items()))
    notes(out, failures(results))


def failures(results: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return a line for each reader that failed or returned another frame than pyarrow."""
    lines = []
    for workload, outcomes in results.items():
        for name, outcome in outcomes.items():
            if outcome.failure:
                lines.append(f"{name} failed on {workload}: {outcome.failure}")
            if getattr(outcome, "difference", None):
                lines.append(f"(!) {name} differs on {workload}: {outcome.difference}")
    return lines


def machine() -> dict[str, object]:
    """Return the facts of the machine that figures depend on."""
    return {"python": platform.python_version(), "platform": platform.platform(), "cpus": os.cpu_count()}


def save(path: Path, mode: str, settings: Mapping[str, object], results: object) -> None:
    """Write the results of a mode to a JSON file, with machine and settings."""
    content = {"mode": mode, "machine": machine(), "settings": dict(settings), "results": results}
    path.write_text(json.dumps(content, indent=1) + "\n")
