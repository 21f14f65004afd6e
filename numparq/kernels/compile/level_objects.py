"""Object files of a prebuilt library: the same kernels for each CPU level of a machine."""

from __future__ import annotations

import marshal
from collections.abc import Mapping

from numparq.kernels.registry import Kernel

from .build import compile_kernels, emit_object
from .extension_module import table_name, table_text
from .targets import LIBRARY_TARGETS

# Words of LLVM text that depends on the CPU.
_OF_ONE_CPU = ("target-cpu", "target-features", "llvm.x86.", "llvm.aarch64.")


class LibraryError(RuntimeError):
    """The library cannot be built here."""


def level_objects(kernels: Mapping[str, Kernel], machine: str, number: int) -> bytes:
    """Compile kernels for each CPU level of a machine; return a marshalled list of object files.

    `number` is that of these kernels' method tables (see `extension_module.table_name`).
    """
    main, codes = compile_kernels(kernels, is_portable=True), []
    text = str(main)
    for word in _OF_ONE_CPU:
        if word in text:
            raise LibraryError(f"kernels depend on the CPU before they are compiled for one: {word}")
    for target in LIBRARY_TARGETS[machine]:
        table = table_name(target.level, number)
        codes.append(emit_object(main.clone(), target, [table_text(table, kernels)], {table}))
    return marshal.dumps(codes)
