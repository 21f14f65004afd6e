"""Undefined symbols of object files, against those of an object that LLVM writes from text."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from numparq.kernels.compile.build import emit_object
from numparq.kernels.compile.targets import LIBRARY_TARGETS
from numparq.kernels.compile.undefined_symbols import undefined_symbols

TEXT = """
declare i64 @other(i64)
declare extern_weak i64 @weak(i64)
@data = external global i64
define i64 @visible(i64 %x) {
  %a = call i64 @other(i64 %x)
  %b = call i64 @weak(i64 %a)
  %c = load i64, ptr @data
  %d = sdiv i64 %b, %c
  ret i64 %d
}
define i128 @wide(i128 %x, i128 %y) {
  %z = sdiv i128 %x, %y
  ret i128 %z
}
"""


@pytest.mark.parametrize("machine", LIBRARY_TARGETS)
def test_symbols_of_text_and_those_that_llvm_adds(machine):
    target = LIBRARY_TARGETS[machine][0]
    code = emit_object(llvm.parse_assembly(""), target, [TEXT], {"visible", "wide"})
    found = undefined_symbols(code)
    assert found - {"__divti3", "_GLOBAL_OFFSET_TABLE_"} == {"other", "weak", "data"}
    assert "__divti3" in found


def test_other_files_are_refused():
    with pytest.raises(ValueError, match="ELF"):
        undefined_symbols(b"MZ" + bytes(100))
