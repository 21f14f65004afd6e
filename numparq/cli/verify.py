"""`numparq verify`: check files against the specification."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.markup import escape

from numparq.dataset.discover.files import is_dataset_path, list_files
from numparq.dataset.listing.file_filter import ListingOptions
from numparq.errors import ParquetError
from numparq.tools.verify.deviations import Deviation
from numparq.tools.verify.file import VerificationReport, check_file
from numparq.util.pluralize import pluralize

from . import describe_error
from .terminal import open_console

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

VALID, INVALID, UNREADABLE = 0, 1, 2
_COLORS = {"error": "bold red", "warning": "yellow"}


def verify(file: list[str], strict: bool, external_files: bool = False, decryption: KeySource | None = None) -> int:
    """Print the deviations of files from the specification; a directory stands for its files.

    Return 0 if all are sound, 1 if any has errors (with `strict` also warnings), 2 if any cannot be read as Parquet.
    """
    status = VALID
    for name in _files(file):
        try:
            report = check_file(name, external_files=external_files, decryption=decryption, progress=True)
        except (ParquetError, OSError) as error:
            print(f"numparq: {describe_error(error)}", file=sys.stderr)
            status = UNREADABLE
            continue
        show = _print_rich if sys.stdout.isatty() else _print_plain
        show(report)
        if report.errors or (strict and report.deviations):
            status = max(status, INVALID)
    return status


def _files(names: list[str]) -> Iterator[str]:
    """Yield the names of files, and those in directories."""
    for name in names:
        if is_dataset_path(name):
            listing = list_files(name, partitioning=None, options=ListingOptions("parquet"))
            yield from (file.name for file in listing.files)
        else:
            yield name


def verdict(report: VerificationReport) -> str:
    """Return the verdict on a file in a few words, with the number of errors and warnings."""
    counts = [_count(report.errors, "error"), _count(report.warnings, "warning")]
    found = " and ".join(count for count in counts if count)
    if report.errors or not found:
        return found or "sound"
    is_checked = all(deviation.check != "not-checked" for deviation in report.deviations)
    return f"sound, with {found}" if is_checked else f"no errors in what could be checked, with {found}"


def _count(number: int, what: str) -> str:
    return pluralize(number, what) if number else ""


def summary(report: VerificationReport) -> str:
    """Return a line on the size of the file, its writer, and how much of it was checked."""
    counts = report.checked_counts
    looked_at = [pluralize(counts[plural], noun) for plural, noun in _CHECKED_PARTS.items() if plural in counts]
    written = f", written by {report.created_by}" if report.created_by else ""
    return (
        f"{pluralize(report.size, 'byte')}, {pluralize(report.num_rows, 'row')}, "
        f"{pluralize(report.num_columns, 'column')}{written}; "
        f"checked {', '.join(looked_at) or 'nothing more'}"
    )


# Kinds of checked parts, as the report counts them, and one such part.
_CHECKED_PARTS = {
    "row groups": "row group",
    "column chunks": "column chunk",
    "pages": "page",
    "checksums": "checksum",
    "column indexes": "column index",
    "offset indexes": "offset index",
    "Bloom filters": "Bloom filter",
    "encrypted modules": "encrypted module",
}


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
    console = open_console()
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
