"""CPU levels chosen by CPUID, against what LLVM says of this CPU."""

from __future__ import annotations

import ctypes
import platform

import llvmlite.binding as llvm
import pytest

from numparq.kernels.compile import cpu_levels
from numparq.kernels.compile.build import emit_object
from numparq.kernels.compile.targets import host_target

V2 = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf", "pclmul"}
V3 = V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}


def level_of(text):
    """Run ``numparq.level`` of LLVM text in this process."""
    entry = "define i64 @visible() {\n  %l = call i64 @numparq.level()\n  ret i64 %l\n}\n"
    code = emit_object(llvm.parse_assembly(""), host_target(), [text + entry], {"visible"})
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("visible")
    library = builder.link(llvm.create_lljit_compiler(machine), "level")
    return ctypes.CFUNCTYPE(ctypes.c_int64)(library["visible"])()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="CPUID is an instruction of x86")
def test_level_equals_what_llvm_detects():
    features = {name for name, there in llvm.get_host_cpu_features().items() if there}
    expected = 1 if features >= V3 else 0 if features >= V2 else -1
    assert level_of(cpu_levels.x86_text()) == expected


@pytest.mark.skipif(platform.machine() != "x86_64", reason="CPUID is an instruction of x86")
@pytest.mark.parametrize(("missing", "level"), [("_V3", 0), ("_V2", -1)])
def test_missing_feature_lowers_the_level(missing, level, monkeypatch):
    """The last bit of that register is reserved."""
    monkeypatch.setattr(cpu_levels, missing, getattr(cpu_levels, missing) | {("80000001", "c"): 1 << 31})
    assert level_of(cpu_levels.x86_text()) == level


def test_other_machines_have_one_level():
    assert level_of(cpu_levels.ALWAYS) == 0
