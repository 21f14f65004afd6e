"""`numparq verify`: check files against the specification."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

from numparq.errors import ParquetError
from numparq.tools.verify.deviations import Deviation
from numparq.tools.verify.file import VerificationReport, check_file

VALID, INVALID, UNREADABLE = 0, 1, 2
_COLORS = {"error": "bold red", "warning": "yellow"}


def verify(file: list[str], strict: bool, external_files: bool = False) -> int:
    """Print the deviations of files from the specification.

    Return 0 if all are sound, 1 if any has errors (with `strict` also warnings), 2 if any cannot be read as Parquet.
    """
    status = VALID
    for name in file:
        try:
            report = check_file(name, external_files=external_files)
        except (ParquetError, OSError) as error:
            print(f"numparq: {error}", file=sys.stderr)
            status = UNREADABLE
            continue
        show = _print_rich if sys.stdout.isatty() else _print_plain
        show(report)
        if report.errors or (strict and report.deviations):
            status = max(status, INVALID)
    return status


def verdict(report: VerificationReport) -> str:
    """Return the verdict on a file in a few words, with the number of errors and warnings."""
    counts = [_count(report.errors, "error"), _count(report.warnings, "warning")]
    found = " and ".join(count for count in counts if count)
    if report.errors:
        return found
    return f"sound, with {found}" if found else "sound"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}" if number else ""


def summary(report: VerificationReport) -> str:
    """Return a line on the size of the file, its writer, and how much of it was checked."""
    looked_at = [f"{report.checked_counts[what]:,} {what}" for what in _CHECKED_PARTS if what in report.checked_counts]
    written = f", written by {report.created_by}" if report.created_by else ""
    return (
        f"{report.size:,} bytes, {report.num_rows:,} rows, {report.num_columns:,} columns{written}; "
        f"checked {', '.join(looked_at) or 'nothing more'}"
    )


_CHECKED_PARTS = (
    "row groups",
    "column chunks",
    "pages",
    "checksums",
    "column indexes",
    "offset indexes",
    "Bloom filters",
)


def _print_plain(report: VerificationReport) -> None:
    """Print lines that begin with the file's name, as compilers do."""
    print(f"{report.name}: {verdict(report)}")
    print(f"{report.name}: {summary(report)}")
    for deviation in report.deviations:
        print(f"{report.name}: {deviation}")
    for line in _notes(report):
        print(f"{report.name}: {line}")


def _notes(report: VerificationReport) -> list[str]:
    left_out = f"and {report.num_omitted:,} more of the same kinds" if report.num_omitted else ""
    return [*([left_out] if left_out else []), *report.notes]


def _print_rich(report: VerificationReport) -> None:
    console = Console(highlight=False)
    color = "bold red" if report.errors else "green"
    console.print(f"[bold]{escape(report.name)}[/]: [{color}]{verdict(report)}[/]", soft_wrap=True)
    console.print(f"  {escape(summary(report))}", style="dim")
    for deviation in report.deviations:
        console.print(f"  {_colored(deviation)}")
    for line in _notes(report):
        console.print(f"  {escape(line)}")


def _colored(deviation: Deviation) -> str:
    place = f"[cyan]{escape(deviation.location)}[/]: " if deviation.location else ""
    severity = f"[{_COLORS[deviation.severity]}]{deviation.severity}[/]"
    return f"{severity} {place}{escape(deviation.message)} [dim]{escape(f'[{deviation.check}]')}[/]"
