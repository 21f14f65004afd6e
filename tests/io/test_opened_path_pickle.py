"""Objects that are pickled as what opens them again."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass

from numparq.io.opened_path import Reopenable

opened: list[str] = []


class Thing(Reopenable):
    def __init__(self, name: str) -> None:
        opened.append(name)
        self.name, self.lock = name, threading.Lock()

    def _reopener(self) -> Opener:
        return Opener(self.name)


@dataclass
class Opener:
    name: str

    def __call__(self) -> Thing:
        return Thing(self.name)


def test_copy_is_opened_once_by_any_thread():
    opened.clear()
    made = copy.copy(copy.copy(Thing("x")))
    assert opened == ["x"]
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(made.name)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["x"] * 8
    assert opened == ["x", "x"]
    assert not hasattr(made, "other")
