"""Writers whose `with` block completes them, or aborts on an exception."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

__all__ = ["TransactionalWriter"]


class TransactionalWriter(ABC):
    """Writer whose ``with`` block closes it, or aborts it if an exception leaves the block."""

    @abstractmethod
    def close(self) -> Any:
        """Complete what was written."""

    @abstractmethod
    def abort(self) -> None:
        """Discard everything written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
