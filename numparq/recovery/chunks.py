"""Column chunks whose metadata in the footer is damaged: that costs these chunks, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..column.chunks import MAGIC_BYTES, ChunkTables
from ..errors import InvalidFileError, ParquetError
from ..metadata.chunks import FACTS, PRESENCE
from ..metadata.footer import Footer
from ..schema import Leaf

if TYPE_CHECKING:
    from ..io.joint import JointSource

__all__ = ["SoundTables", "is_within"]


class SoundTables(ChunkTables):
    """Chunk tables in which a chunk that the footer describes wrongly is one without any bytes.

    Parameters
    ----------
    footer, leaves, row_groups, end, files
        As in `ChunkTables`.
    condemned : mapping of (int, str) to ParquetError
        Chunks that are known to be lost, by row group and column, or what is within one.

    Attributes
    ----------
    faults : dict of (int, int) to ParquetError
        What is wrong with such a chunk, by row group and position among the leaves.
    """

    def __init__(
        self, footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: JointSource | None,
        condemned: Mapping[tuple[int, str], ParquetError],
    ) -> None:  # fmt: skip
        self.footer = footer
        self.leaves = leaves
        self.faults: dict[tuple[int, int], ParquetError] = {}
        for (row_group, name), error in condemned.items():
            guilty = (place for place, leaf in enumerate(leaves) if is_within(leaf.name, name))
            self.faults.update(((row_group, place), error) for place in guilty)
        super().__init__(footer, leaves, row_groups, end, files)

    def _read_facts(self, footer: Footer) -> dict[str, np.ndarray]:
        """Read what the footer says of the chunks; nothing where that is damaged."""
        try:
            return super()._read_facts(footer)
        except InvalidFileError:
            pass
        shape = len(self._row_groups), len(self._leaves)
        facts = {name: np.zeros(shape, np.int64) for name in (*FACTS, *PRESENCE)}
        for at in np.ndindex(shape):
            row_group = self._row_groups[at[0]]
            try:
                known = footer.chunks.table([row_group], [self._leaves[at[1]].index])
            except InvalidFileError as error:
                self.faults.setdefault((row_group, at[1]), error)
                continue
            for name, values in known.items():
                facts[name][at] = values[0, 0]
        return facts

    def _refuse(self, row_group: int, place: int, error: ParquetError) -> None:
        """Note a chunk whose file is not read."""
        self.faults.setdefault((row_group, place), error)

    def _check(self) -> None:
        """Note what is wrong with each chunk, and take the bytes away from those with a fault."""
        for failed, kind, message in self._checks():
            for group, place in np.argwhere(failed).tolist():
                self.faults.setdefault((self._row_groups[group], place), kind(message))
        for row_group, place in self.faults:
            if row_group not in self._place:
                continue
            at = self._place[row_group], place
            self._starts[at] = MAGIC_BYTES
            for name, value in (("total_compressed_size", 0), ("num_values", self._num_rows[at[0]]), ("codec", 0),
                                ("null_count", -1), ("total_uncompressed_size", 0)):  # fmt: skip
                self._facts[name][at] = value


def is_within(leaf: str, column: str) -> bool:
    """Tell whether a path is that of a column, or of a part of it."""
    return leaf == column or leaf.startswith(column + ".")
