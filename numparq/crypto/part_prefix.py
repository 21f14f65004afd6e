"""AAD prefixes of a dataset's parts, by which parts that were swapped, moved or taken from elsewhere are noticed."""

from __future__ import annotations

import os


class PartPrefix:
    """AAD prefix of each part of a dataset: the dataset's own, and the part's path in the dataset.

    Parameters
    ----------
    prefix : bytes
        Identity of the dataset, such as ``b"lake/events"``. A part has the AAD prefix ``prefix + b"/" + path``, where
        the path is that in the dataset, with the folders of partitions.
    root : str or os.PathLike, optional
        Folder, or URL, of the dataset; default: the folder that is read or written. It is needed to read less than the
        dataset: one of its folders, some of its files, or a pattern.

    Attributes
    ----------
    prefix, root
        The parameters.

    Examples
    --------
    >>> import numparq
    >>> numparq.PartPrefix(b"lake/events").of("year=2026/part-0.parquet")
    b'lake/events/year=2026/part-0.parquet'
    """

    __slots__ = ("prefix", "root")

    def __init__(self, prefix: bytes, root: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(prefix, bytes) or not prefix:
            raise TypeError("prefix must be bytes, at least one")
        self.prefix = prefix
        self.root = None if root is None else os.fsdecode(root)

    def __repr__(self) -> str:
        root = "" if self.root is None else f", root={self.root!r}"
        return f"PartPrefix({self.prefix!r}{root})"

    def of(self, name: str) -> bytes:
        """Return the AAD prefix of a part.

        Parameters
        ----------
        name : str
            Path of the part in the dataset, separated by slashes.

        Returns
        -------
        bytes
        """
        return self.prefix + b"/" + os.fsencode(name)
