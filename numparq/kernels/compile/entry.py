"""LLVM text of the C entries that unpack Python arguments and call a kernel."""

from __future__ import annotations

import numpy as np

from numparq.kernels.registry import Kernel
from numparq.kernels.status import RAISED

ENTRY_PREFIX = "np_"
ARRAY_TYPE = "numparq_array_type"
# An entry that refuses argument i returns FIRST_REFUSAL + i; len(signature) as i is a wrong number of arguments.
FIRST_REFUSAL = -(1 << 63)
LAST_REFUSAL = FIRST_REFUSAL + 1000

POINTER = 8
OBJECT_HEAD_BYTES = object.__basicsize__  # of every Python object; the last field is the type
ARRAY_FIELDS = {"data": 0, "ndim": 8, "descr": 40, "flags": 48}  # after the head of a PyArrayObject
DESCR_FIELDS = {"byteorder": 10, "type_num": 12, "itemsize": 24}  # after the head of a PyArray_Descr, NumPy 2
CONTIGUOUS_AND_ALIGNED = 0x101
OBJECT_TYPE_NUM = 17

# Length of arrays as Numba sees it: kernels take lengths as arguments and never use it.
ANY_LENGTH = 1 << 40

_UNPACK = f"""
@{ARRAY_TYPE} = global ptr null
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()

define i64 @numparq.unpack(ptr %args, ptr %wanted, i64 %count, ptr %out) noinline {{
start:
  %size = call i64 @PyTuple_Size(ptr %args)
  %same = icmp eq i64 %size, %count
  br i1 %same, label %loop, label %wrong_count
wrong_count:
  ret i64 %count
loop:
  %i = phi i64 [0, %start], [%following, %next]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %item, label %good
good:
  ret i64 -1
bad:
  ret i64 %i
next:
  %following = add i64 %i, 1
  br label %loop
item:
  %object = call ptr @PyTuple_GetItem(ptr %args, i64 %i)
  %want_at = getelementptr i16, ptr %wanted, i64 %i
  %want = load i16, ptr %want_at
  %slot = getelementptr i64, ptr %out, i64 %i
  %is_int = icmp eq i16 %want, 0
  br i1 %is_int, label %integer, label %array
integer:
  %number = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %number, ptr %slot
  %doubtful = icmp eq i64 %number, -1
  br i1 %doubtful, label %doubt, label %next
doubt:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %next, label %bad
array:
  %type_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES - POINTER}
  %type = load ptr, ptr %type_at
  %array_type = load ptr, ptr @{ARRAY_TYPE}
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %fields, label %bad
fields:
  %data_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES + ARRAY_FIELDS["data"]}
  %data = load i64, ptr %data_at
  store i64 %data, ptr %slot
  %ndim_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES + ARRAY_FIELDS["ndim"]}
  %ndim = load i32, ptr %ndim_at
  %flat = icmp eq i32 %ndim, 1
  %flags_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES + ARRAY_FIELDS["flags"]}
  %flags = load i32, ptr %flags_at
  %packed_flags = and i32 %flags, {CONTIGUOUS_AND_ALIGNED}
  %packed = icmp eq i32 %packed_flags, {CONTIGUOUS_AND_ALIGNED}
  %descr_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES + ARRAY_FIELDS["descr"]}
  %descr = load ptr, ptr %descr_at
  %order_at = getelementptr i8, ptr %descr, i64 {OBJECT_HEAD_BYTES + DESCR_FIELDS["byteorder"]}
  %order = load i8, ptr %order_at
  %native = icmp ne i8 %order, {ord(">")}
  %num_at = getelementptr i8, ptr %descr, i64 {OBJECT_HEAD_BYTES + DESCR_FIELDS["type_num"]}
  %num = load i32, ptr %num_at
  %itemsize_at = getelementptr i8, ptr %descr, i64 {OBJECT_HEAD_BYTES + DESCR_FIELDS["itemsize"]}
  %itemsize = load i64, ptr %itemsize_at
  %minus = sub i64 0, %itemsize
  %is_object = icmp eq i32 %num, {OBJECT_TYPE_NUM}
  %have = select i1 %is_object, i64 %minus, i64 %itemsize
  %want64 = sext i16 %want to i64
  %fits = icmp eq i64 %have, %want64
  %both = and i1 %flat, %packed
  %three = and i1 %both, %native
  %all = and i1 %three, %fits
  br i1 %all, label %next, label %bad
}}
"""

_SHARED = """
declare i64 @numparq.unpack(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""


def argument_unpacker() -> str:
    """Return the LLVM text that all entries of an object share."""
    return _UNPACK


def argument_code(letter: str) -> int:
    """Return the code of an argument: 0 for an int, else the item size, negative for Python objects."""
    if letter == "x":
        return 0
    return -POINTER if letter == "O" else np.dtype(letter).itemsize


def entry_text(name: str, kernel: Kernel, native: str) -> tuple[str, int]:
    """Return the C entry of a kernel in LLVM text, and the number of arguments that `native` must have.

    `native` is Numba's function: pointers for result and error, then the arguments, seven for each array.
    """
    sizes = [argument_code(letter) for letter in kernel.signature]
    lines, arguments = [], ["ptr %result", "ptr %error"]
    for i, size in enumerate(sizes):
        lines.append(f"  %at{i} = getelementptr i64, ptr %values, i64 {i}\n  %a{i} = load i64, ptr %at{i}")
        if size:
            noalias = "noalias " if kernel.noalias else ""
            lines.append(f"  %p{i} = inttoptr i64 %a{i} to ptr")
            arguments += [
                "ptr null",
                "ptr null",
                f"i64 {ANY_LENGTH}",
                f"i64 {abs(size)}",
                f"ptr {noalias}%p{i}",
                f"i64 {ANY_LENGTH}",
                f"i64 {abs(size)}",
            ]
        else:
            arguments.append(f"i64 %a{i}")
    count, values = len(sizes), "\n".join(lines)
    release = "" if kernel.gil else "  %thread = call ptr @PyEval_SaveThread()"
    acquire = "" if kernel.gil else "  call void @PyEval_RestoreThread(ptr %thread)"
    return (
        f"""{_SHARED}
@"numparq.wanted.{name}" = internal constant [{count} x i16] [{", ".join(f"i16 {size}" for size in sizes)}]
define i64 @{ENTRY_PREFIX}{name}(ptr %args) {{
  %values = alloca i64, i64 {max(count, 1)}
  %result = alloca i64
  %error = alloca ptr
  store i64 0, ptr %result
  %refused = call i64 @numparq.unpack(ptr %args, ptr @"numparq.wanted.{name}", i64 {count}, ptr %values)
  %good = icmp slt i64 %refused, 0
  br i1 %good, label %run, label %refuse
refuse:
  %code = add i64 %refused, {FIRST_REFUSAL}
  ret i64 %code
run:
{values}
{release}
  %status = call i32 @"{native}"({", ".join(arguments)})
{acquire}
  %value = load i64, ptr %result
  %returned = icmp eq i32 %status, 0
  %answer = select i1 %returned, i64 %value, i64 {RAISED}
  ret i64 %answer
}}
""",
        len(arguments),
    )
