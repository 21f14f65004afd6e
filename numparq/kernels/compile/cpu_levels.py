"""LLVM text that chooses among the library's CPU levels, by x86's CPUID and XGETBV."""

from __future__ import annotations

_SAVED = 6  # bits of XCR0: the operating system saves XMM and YMM registers
_OPERATING_SYSTEM_SAVES = 1 << 27  # OSXSAVE, without which XGETBV is no instruction
# Bits by CPUID's leaf and register, beyond those of the level before. AMD's and Intel's manuals name them.
_V2 = {
    ("1", "c"): 1 << 0 | 1 << 1 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23,  # SSE3 to SSE4.2, PCLMULQDQ, POPCNT
    ("80000001", "c"): 1 << 0,  # LAHF
}
_V3 = {
    ("1", "c"): 1 << 12 | 1 << 22 | _OPERATING_SYSTEM_SAVES | 1 << 28 | 1 << 29,  # FMA, MOVBE, AVX, F16C
    ("7", "b"): 1 << 3 | 1 << 5 | 1 << 8,  # BMI1, AVX2, BMI2
    ("80000001", "c"): 1 << 5,  # LZCNT
}

ALWAYS = "define internal i64 @numparq.level() {\n  ret i64 0\n}\n"

_CPUID = '{i32, i32, i32, i32} asm "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"'
_XGETBV = '{i32, i32} asm "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"'


def x86_text() -> str:
    """Return ``i64 @numparq.level()``: 0 and 1 for x86-64-v2 and x86-64-v3 with PCLMULQDQ, -1 for lesser CPUs."""
    return f"""
define internal i64 @numparq.level() {{
  %highest = call {_CPUID}(i32 0, i32 0)
  %highest_leaf = extractvalue {{i32, i32, i32, i32}} %highest, 0
  %extended = call {_CPUID}(i32 -2147483648, i32 0)
  %highest_extended = extractvalue {{i32, i32, i32, i32}} %extended, 0
  %has_extended = icmp uge i32 %highest_extended, -2147483647
  br i1 %has_extended, label %read, label %none
none:
  ret i64 -1
read:
  %leaf1 = call {_CPUID}(i32 1, i32 0)
  %c1 = extractvalue {{i32, i32, i32, i32}} %leaf1, 2
  %leaf80000001 = call {_CPUID}(i32 -2147483647, i32 0)
  %c80000001 = extractvalue {{i32, i32, i32, i32}} %leaf80000001, 2
{_masked("v2", _V2)}
  br i1 %v2, label %above, label %none
above:
  %has_leaf7 = icmp uge i32 %highest_leaf, 7
  %saves_bit = and i32 %c1, {_OPERATING_SYSTEM_SAVES}
  %saves = icmp ne i32 %saves_bit, 0
  %may = and i1 %has_leaf7, %saves
  br i1 %may, label %third, label %second
second:
  ret i64 0
third:
  %leaf7 = call {_CPUID}(i32 7, i32 0)
  %b7 = extractvalue {{i32, i32, i32, i32}} %leaf7, 1
  %xcr0 = call {_XGETBV}(i32 0)
  %saved = extractvalue {{i32, i32}} %xcr0, 0
  %saved_bits = and i32 %saved, {_SAVED}
  %all_saved = icmp eq i32 %saved_bits, {_SAVED}
{_masked("features", _V3)}
  %v3 = and i1 %features, %all_saved
  %level = zext i1 %v3 to i64
  ret i64 %level
}}
"""


def _masked(name: str, features: dict[tuple[str, str], int]) -> str:
    """Return lines that compute whether all bits of features are set, as ``i1 %name``."""
    lines, results = [], []
    for (leaf, register), mask in features.items():
        one = f"{name}.{register}{leaf}"
        lines.append(f"  %{one}.bits = and i32 %{register}{leaf}, {mask}\n  %{one} = icmp eq i32 %{one}.bits, {mask}")
        results.append(one)
    for i, one in enumerate(results[1:], 1):
        before = results[0] if i == 1 else f"{name}.{i - 1}"
        after = name if i == len(results) - 1 else f"{name}.{i}"
        lines.append(f"  %{after} = and i1 %{before}, %{one}")
    return "\n".join(lines)
