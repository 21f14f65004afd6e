"""Parts that a dataset must have, and no others: removed and added parts, and older versions, are errors."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from numparq.dataset.listing.files import DataFile
from numparq.errors import InvalidFileError
from numparq.keys.part_keys import part_name, plain_path

from .files import DatasetListing

if TYPE_CHECKING:
    from numparq.format.open_file import OpenFile

ANOTHER_VERSION = "the part is another version than that of expected_parts"
PartNames = Collection[str] | Mapping[str, str | None]


class ExpectedParts:
    """Names of the parts of a dataset, and fingerprints of those whose version is known.

    Parameters
    ----------
    parts : collection of str, or mapping of str to (str or None)
        Paths in the dataset, separated by slashes; a mapping has their fingerprints.
    """

    def __init__(self, parts: PartNames) -> None:
        if isinstance(parts, (str, bytes)) or not isinstance(parts, Collection):
            raise TypeError(f"expected_parts must be a collection of names or a mapping, not {type(parts).__name__}")
        self._fingerprints = dict(parts) if isinstance(parts, Mapping) else dict.fromkeys(parts)
        if not all(isinstance(name, str) for name in self._fingerprints):
            raise TypeError("expected_parts must name parts by str")
        if not all(value is None or isinstance(value, str) for value in self._fingerprints.values()):
            raise TypeError("expected_parts must map names to fingerprints, of type str, or None")

    def check_names(self, listing: DatasetListing) -> None:
        """Raise InvalidFileError unless a listing has exactly these parts."""
        names = part_names(listing)
        missing, added = sorted(self._fingerprints.keys() - set(names)), sorted(set(names) - self._fingerprints.keys())
        for others, what in ((missing, "of expected_parts are missing"), (added, "are not in expected_parts")):
            if others:
                more = ", ..." if len(others) > 1 else ""
                raise InvalidFileError(f"parts {what}: {others[0]!r}{more}", file=listing.base)

    def check_version(self, listing: DatasetListing, part: DataFile, file: OpenFile | None) -> None:
        """Raise InvalidFileError if an open part, None for one of zero bytes, has another fingerprint."""
        expected = self.fingerprint_of(listing, part)
        if expected is not None and (file is None or fingerprint(file) != expected):
            raise InvalidFileError(ANOTHER_VERSION, file=part.name)

    def fingerprint_of(self, listing: DatasetListing, part: DataFile) -> str | None:
        """Return the fingerprint that a part must have; None if any will do."""
        return self._fingerprints[part_names(listing, [part])[0]]


def fingerprint(file: OpenFile) -> str:
    """Return a cryptographic hash of a file's footer as stored, which identifies an encrypted file."""
    footer = file.footer
    if footer.keys is not None:
        return footer.content_digest.hex()
    return hashlib.sha256(footer.data[: footer.length].tobytes()).hexdigest()


def part_names(listing: DatasetListing, files: Sequence[DataFile] | None = None) -> list[str]:
    """Return the paths of files, by default all, relative to the folder of their dataset."""
    if not listing.is_directory:
        raise ValueError("parts are known by their paths in the dataset; open the dataset by its folder")
    is_local = listing.filesystem is None
    base = plain_path(listing.base, is_local)
    files = listing.files if files is None else files
    return [part_name(base, file.committed_path(is_local), is_local) for file in files]
