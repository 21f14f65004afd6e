"""The lock of whoever compiles or loads kernels; a fork waits for it.

A fork while another thread is inside LLVM, or inside an import, leaves locks held in the child that nobody there will
ever release. Everything that may do either happens under this lock, from the first import on.
"""

from __future__ import annotations

import os
import threading

LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
