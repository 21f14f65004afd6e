"""Verify a whole file: footer, schema, key-value metadata, row groups; report every deviation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numparq.column.nested.nested_type import NestedType, is_variant
from numparq.column.projection import select_columns
from numparq.errors import DecryptionError, LimitError, ParquetError, UnsupportedError, error_context
from numparq.file.readable_file import ReadableFile
from numparq.format.bound_keys import bind_keys
from numparq.format.schema import Leaf
from numparq.io.open import open_source
from numparq.io.sibling_files import SiblingFiles
from numparq.io.source import Source
from numparq.keys.part_keys import keys_of_single_file
from numparq.keys.provider import as_key_source
from numparq.util.progress import ProgressBar

from .deviations import Deviation, Findings, Location
from .encrypted_columns import encrypted_columns, open_columns
from .file_walk import describe_remains
from .footer import DecodedFooter, check_footer, check_key_values
from .row_groups import check_row_groups
from .schema import orders_by_name, read_column_orders, read_schema_tree, schema_leaves

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource


@dataclass(frozen=True)
class VerificationReport:
    """Result of verifying a file.

    Attributes
    ----------
    name : str
        Name of the file.
    size : int
        Size in bytes.
    num_rows, num_row_groups, num_columns : int
        Counts by the footer; 0 without one.
    created_by : str
        Writer of the file.
    deviations : list of Deviation
        Deviations in the order found, at most a thousand of each check.
    num_omitted : int
        Number of further deviations.
    errors, warnings : int
        Number of deviations of each severity, omitted ones included.
    checked_counts : dict of str to int
        Number of pages, checksums and so on that were checked.
    notes : list of str
        Other lines for a report: how the file is encrypted, what remains of a truncated one.
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
        """Whether the file has no errors."""
        return not self.errors


def verify(
    path: Any, *, external_files: bool = False, decryption: KeySource | str | None = None, progress: bool = False
) -> list[Deviation]:
    """Check a file against the specification and return every deviation.

    The whole file is read: magic numbers, footer, schema, offsets, every page with its checksum, levels and values.
    Statistics, page indexes and Bloom filters are compared with the data, as are the order of sorted rows and the
    pandas and Arrow metadata. Damage in one part does not stop the check of the others.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        File to check.
    external_files : bool, default False
        Whether to check external column chunks, too. Only files below the file's own directory are opened.
    decryption : Decryption or str, optional
        Keys of an encrypted file, or the name of their provider. What they do not open is a warning, ``"not-checked"``.
    progress : bool, default False
        Whether to show a progress bar, as in `numparq.read_parquet`.

    Returns
    -------
    list of Deviation
        Empty for a sound file. `Deviation.severity` is ``"error"`` or, for what is legal but unusual, ``"warning"``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    InvalidFileError
        If it is not a Parquet file at all.

    Examples
    --------
    >>> import pandas, numparq
    >>> numparq.verify(numparq.to_parquet(pandas.DataFrame({"a": [1, 2, 3]})))
    []
    """
    return check_file(path, external_files=external_files, decryption=decryption, progress=progress).deviations


def check_file(
    path: Any, *, external_files: bool = False, decryption: KeySource | str | None = None, progress: bool = False
) -> VerificationReport:
    """Check a file as `verify` does; return a report that also has counts of what was checked.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        File to check.
    external_files, decryption, progress
        As in `verify`.

    Returns
    -------
    VerificationReport

    Raises
    ------
    FileNotFoundError, InvalidFileError
        As `verify`.
    """
    keys = keys_of_single_file(as_key_source(decryption), path)
    if keys is not None:
        keys = bind_keys(keys, path)
    source = open_source(path)
    findings = Findings()
    try:
        with error_context(file=source.name):
            files = SiblingFiles(path) if external_files else None
            metadata = _check_all(source, findings, progress, files, keys)
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


def _check_all(
    source: Source, findings: Findings, progress: bool, files: SiblingFiles | None, keys: KeySource | None
) -> dict[str, Any]:
    """Check everything; return FileMetaData as far as it could be read."""
    tail = check_footer(source, findings, keys)
    if tail is None:
        findings.notes += describe_remains(source)
        return {}
    if tail.is_locked:
        findings.notes += tail.encryption.describe() if tail.encryption is not None else []
        return {}
    root = read_schema_tree(tail.metadata, findings)
    if root is None:
        return tail.metadata
    leaves = schema_leaves(root)
    if tail.encryption is not None:
        columns = encrypted_columns(tail.metadata, leaves)
        findings.encrypted_columns = {".".join(path) for path in columns}
        findings.notes += replace(tail.encryption, columns=columns).describe()
    encrypted = open_columns(source, tail, leaves, findings)
    check_key_values(tail.metadata, root, findings)
    orders = orders_by_name(leaves, read_column_orders(tail.metadata, len(leaves), findings))
    num_rows = max(sum(group.get("num_rows", 0) for group in tail.metadata.get("row_groups", [])), 0)
    with ProgressBar(progress, "checking", "value") as bar:
        bar.add_total(num_rows * len(leaves))
        check_row_groups(source, tail, encrypted, leaves, orders, findings, bar.advance, files)
    if tail.modules is not None:
        tail.modules.report(findings)
        findings.checked_counts["encrypted modules"] += tail.modules.count
    _check_variant_values(source, tail, findings)
    return tail.metadata


def _check_variant_values(source: Source, tail: DecodedFooter, findings: Findings) -> None:
    """Read the VARIANT columns of a file that has no errors so far and no external column chunks."""
    metadata = tail.metadata
    if findings.count("error") or not any("VARIANT" in (one.get("logicalType") or {}) for one in metadata["schema"]):
        return
    if any(chunk.get("file_path") for group in metadata["row_groups"] for chunk in group["columns"]):
        return
    keys = None if tail.modules is None else tail.modules.keys
    file = ReadableFile(source, decryption=keys)  # not closed: the source is the caller's
    for column in select_columns(file.schema, None):
        if isinstance(column, Leaf) or not _has_variants(column.full_type):
            continue
        for row_group in range(file.num_row_groups):
            location = Location(row_group, column.name)
            try:
                file.read([column.name], row_groups=[row_group])
            except (UnsupportedError, LimitError, DecryptionError) as error:
                findings.add("not-checked", error.message, location)
            except ParquetError as error:
                findings.add("variant-values", error.message, location)


def _has_variants(node: NestedType) -> bool:
    return is_variant(node) or any(map(_has_variants, node.children))
