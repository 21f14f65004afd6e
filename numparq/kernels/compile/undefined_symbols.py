"""Undefined symbols of object files in ELF, and those that a library of kernels may have."""

from __future__ import annotations

import struct

# Functions and exceptions of CPython's stable ABI. `PyUnicode_New` is a weak symbol; LLVM writes calls of the last two.
ALLOWED = frozenset(
    (
        "PyBytes_FromStringAndSize",
        "PyDict_GetItemWithError",
        "PyErr_Clear",
        "PyErr_Format",
        "PyErr_Occurred",
        "PyEval_RestoreThread",
        "PyEval_SaveThread",
        "PyExc_TypeError",
        "PyExc_ValueError",
        "PyLong_AsLongLong",
        "PyLong_FromLongLong",
        "PyModuleDef_Init",
        "PyModule_AddFunctions",
        "PyModule_AddStringConstant",
        "PyType_GetFlags",
        "PyType_IsSubtype",
        "PyUnicode_DecodeUTF8",
        "PyUnicode_New",
        "Py_DecRef",
        "Py_IncRef",
        "memcpy",
        "memset",
    )
)
_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, entry size
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_SYMBOL_TABLE = 2


def undefined_symbols(code: bytes) -> set[str]:
    """Return the names of the symbols that a 64-bit little-endian object file refers to without defining them."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise ValueError("this is no 64-bit little-endian ELF file")
    (first,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [_SECTION.unpack_from(code, first + size * number) for number in range(count)]
    undefined = set()
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for name, _, _, section, _, _ in _SYMBOL.iter_unpack(code[offset : offset + length]):
                if not section and name:
                    start = names + name
                    undefined.add(code[start : code.index(b"\0", start)].decode())
    return undefined
