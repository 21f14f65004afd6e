"""A whole file held against the specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import located
from ..io.beside import Beside
from ..io.source import Source, open_source
from ..progress import Progress
from .deviations import Deviation, Findings
from .footer import read_tail
from .groups import check_row_groups, orders_of
from .keys import check_keys
from .remains import describe_remains
from .schema import check_column_orders, leaves_of, read_schema

__all__ = ["Report", "examine", "verify"]


@dataclass(frozen=True)
class Report:
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
    left_out : int
        Deviations that are not listed, since there are a thousand of their kind.
    errors, warnings : int
        How many deviations there are of each severity.
    looked_at : dict of str to int
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
    left_out: int
    errors: int
    warnings: int
    looked_at: dict[str, int]
    notes: list[str]

    @property
    def is_sound(self) -> bool:
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
    return examine(path, False, external_files=external_files).deviations


def examine(path: Any, progress: bool | None = None, *, external_files: bool = False) -> Report:
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
    Report
    """
    source = open_source(path)
    findings = Findings()
    try:
        with located(file=source.name):
            files = Beside(path) if external_files else None
            metadata = _examine(source, findings, progress, files)
    finally:
        source.close()
    groups = metadata.get("row_groups", [])
    return Report(
        source.name, source.size, sum(group.get("num_rows", 0) for group in groups), len(groups),
        sum("type" in element for element in metadata.get("schema", [])[1:]), metadata.get("created_by", ""),
        findings.deviations, findings.left_out, findings.count("error"), findings.count("warning"),
        dict(findings.looked_at), findings.notes,
    )  # fmt: skip


def _examine(source: Source, findings: Findings, progress: bool | None, files: Beside | None) -> dict[str, Any]:
    """Check everything; give FileMetaData, as far as it could be read."""
    tail = read_tail(source, findings)
    if tail is None:
        findings.notes += describe_remains(source)
        return {}
    root = read_schema(tail.metadata, findings)
    if root is None:
        return tail.metadata
    leaves = leaves_of(root)
    check_keys(tail.metadata, root, findings)
    orders = orders_of(leaves, check_column_orders(tail.metadata, len(leaves), findings))
    bar = Progress(progress, "checking values")
    bar.expect(max(sum(group.get("num_rows", 0) for group in tail.metadata.get("row_groups", [])), 0) * len(leaves))
    try:
        check_row_groups(source, tail, leaves, orders, findings, bar.advance, files)
    finally:
        bar.close()
    return tail.metadata
