"""Writers whose `with` block completes them, or aborts on an exception."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

__all__ = ["TransactionalWriter"]


class TransactionalWriter(ABC):
    """A writer that a ``with`` block closes when it is left, or, by an exception, aborts."""

    @abstractmethod
    def close(self) -> Any:
        """Complete what was written."""

    @abstractmethod
    def abort(self) -> None:
        """Give up, and leave nothing of it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
