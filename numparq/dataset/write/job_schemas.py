"""Schemas of a shared job's files, compared at the commit with each other and with the files that stay."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

from numparq.dataset.commit.record import CommitChanges
from numparq.dataset.commit.stage import Stage
from numparq.dataset.listing.files import DirectoryListing
from numparq.errors import error_context
from numparq.format.open_file import OpenFile
from numparq.io.sibling_bytes import read_small_source
from numparq.keys.part_keys import commit_keys

from .existing_data import check_schemas_compatible
from .job_options import JobOptions
from .task_writer import StagedFile


def open_staged_file(stage: Stage, layout: JobOptions, file: StagedFile) -> OpenFile:
    """Open a file before the commit; an encrypted one with the keys that it was written with, if these can read."""
    keys = None
    if layout.encryption is not None:
        dataset = stage.base, stage.is_local
        keys = commit_keys(None, layout.encryption, *dataset) or commit_keys(layout.decryption, None, *dataset)
    path = f"{stage.base}/{file.name}"
    own = None if keys is None else keys.of(path).for_file(path, partial(_read_key_material, stage, file))
    with error_context(file=file.name):
        return OpenFile(stage.open_staged(file.staged_name), decryption=own)


def _read_key_material(stage: Stage, file: StagedFile, name: str) -> bytes:
    """Return the staged key material of a staged file, whose name is known; FileNotFoundError if it has none."""
    if not file.staged_material:
        raise FileNotFoundError(name)
    with closing(stage.open_staged(file.staged_material)) as source:
        return read_small_source(source)


def check_job_schemas(
    stage: Stage, layout: JobOptions, listing: DirectoryListing, changes: CommitChanges, new: Sequence[OpenFile]
) -> None:
    """Raise SchemaError if new files, one for each set of columns, do not fit together, or do not fit those that stay.

    Raises DecryptionError if a file that stays is encrypted with keys that were not given.
    """
    keys = commit_keys(layout.decryption, layout.encryption, stage.base, stage.is_local)
    check_schemas_compatible(listing, changes, stage.open_source, keys, new, layout.same_name)
