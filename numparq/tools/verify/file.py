"""Verify a whole file: footer, schema, key-value metadata, row groups; report every deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numparq.errors import error_context
from numparq.io.open import open_source
from numparq.io.sibling_files import SiblingFiles
from numparq.io.source import Source
from numparq.util.progress import ProgressBar

from .deviations import Deviation, Findings
from .footer import check_footer
from .key_values import check_key_values
from .page_walk import describe_remains
from .row_groups import check_row_groups
from .schema import orders_by_name, read_column_orders, read_schema_tree, schema_leaves

__all__ = ["VerificationReport", "check_file", "verify"]


@dataclass(frozen=True)
class VerificationReport:
    """What there is to say of a file.

    Attributes
    ----------
    name : str
        The file's.
    size : int
        Its bytes.
    num_rows, num_row_groups, num_columns : int
        By its footer; 0 where there is none.
    created_by : str
        The writer, as it calls itself.
    deviations : list of Deviation
        What is wrong.
    num_omitted : int
        Deviations that are not listed, since there are a thousand of their kind.
    errors, warnings : int
        How many deviations there are of each severity.
    checked_counts : dict of str to int
        What was checked: pages, checksums and so on.
    notes : list of str
        What else there is to say: of a file that was cut off, what is left of it.
    """

    name: str
    size: int
    num_rows: int
    num_row_groups: int
    num_columns: int
    created_by: str
    deviations: list[Deviation]
    num_omitted: int
    errors: int
    warnings: int
    checked_counts: dict[str, int]
    notes: list[str]

    @property
    def is_valid(self) -> bool:
        """Whether there is no error."""
        return not self.errors


def verify(path: Any, *, external_files: bool = False) -> list[Deviation]:
    """Hold a file against the specification, and name everything in which it differs.

    All of it is read: magic numbers, footer, schema, offsets, every page with its checksum, levels and values,
    statistics, page indexes and Bloom filters against the data, the order of sorted rows, and the keys of pandas and
    Arrow. Damage in one place does not keep the rest from being checked.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        The file.
    external_files : bool
        Whether column chunks in other files, which the file names, are checked: those below its own folder.

    Returns
    -------
    list of Deviation
        Empty for a file that is as it should be. `Deviation.severity` tells what is wrong (``"error"``) from what is
        only unusual (``"warning"``).

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidFileError
        When it is no Parquet file at all.
    UnsupportedError
        When its footer is encrypted.

    Examples
    --------
    >>> import pandas, numparq
    >>> numparq.verify(numparq.to_parquet(pandas.DataFrame({"a": [1, 2, 3]})))
    []
    """
    return check_file(path, False, external_files=external_files).deviations


def check_file(path: Any, progress: bool | None = None, *, external_files: bool = False) -> VerificationReport:
    """Hold a file against the specification, as `verify` does, and say what was looked at besides.

    Parameters
    ----------
    path
        As for `verify`.
    progress : bool, optional
        Whether to show a bar; by default only in a terminal, and only when it takes long.
    external_files : bool
        As for `verify`.

    Returns
    -------
    VerificationReport
    """
    source = open_source(path)
    findings = Findings()
    try:
        with error_context(file=source.name):
            files = SiblingFiles(path) if external_files else None
            metadata = _check_all(source, findings, progress, files)
    finally:
        source.close()
    groups = metadata.get("row_groups", [])
    return VerificationReport(
        source.name,
        source.size,
        sum(group.get("num_rows", 0) for group in groups),
        len(groups),
        sum("type" in element for element in metadata.get("schema", [])[1:]),
        metadata.get("created_by", ""),
        findings.deviations,
        findings.num_omitted,
        findings.count("error"),
        findings.count("warning"),
        dict(findings.checked_counts),
        findings.notes,
    )


def _check_all(source: Source, findings: Findings, progress: bool | None, files: SiblingFiles | None) -> dict[str, Any]:
    """Check everything; give FileMetaData, as far as it could be read."""
    tail = check_footer(source, findings)
    if tail is None:
        findings.notes += describe_remains(source)
        return {}
    root = read_schema_tree(tail.metadata, findings)
    if root is None:
        return tail.metadata
    leaves = schema_leaves(root)
    check_key_values(tail.metadata, root, findings)
    orders = orders_by_name(leaves, read_column_orders(tail.metadata, len(leaves), findings))
    bar = ProgressBar(progress, "checking values")
    bar.add_total(max(sum(group.get("num_rows", 0) for group in tail.metadata.get("row_groups", [])), 0) * len(leaves))
    try:
        check_row_groups(source, tail, leaves, orders, findings, bar.advance, files)
    finally:
        bar.close()
    return tail.metadata
