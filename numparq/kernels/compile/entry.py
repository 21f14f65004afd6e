"""LLVM text of the entries: functions of CPython's METH_FASTCALL that check arguments and call a kernel."""

from __future__ import annotations

import numpy as np

from numparq.kernels.registry import Kernel
from numparq.kernels.status import RAISED

ENTRY_PREFIX = "np_"
ARRAY_TYPE = "numparq.array_type"

POINTER = 8
OBJECT_HEAD_BYTES = 16  # of every Python object, where there is a GIL; the last field is the type
ARRAY_FIELDS = {"data": 0, "ndim": 8, "descr": 40, "flags": 48}  # after the head of a PyArrayObject
DESCR_FIELDS = {"byteorder": 10, "type_num": 12, "itemsize": 24}  # after the head of a PyArray_Descr, NumPy 2
CONTIGUOUS_AND_ALIGNED = 0x101
OBJECT_TYPE_NUM = 17

# Length of arrays as Numba sees it: kernels take lengths as arguments and never use it.
ANY_LENGTH = 1 << 40


def c_string(name: str, text: str) -> str:
    """Return the LLVM text of a constant that holds a string with a zero at the end."""
    raw = text.encode() + b"\0"
    escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in raw)
    return f'@"{name}" = internal constant [{len(raw)} x i8] c"{escaped}"\n'


_STRINGS = "".join(
    c_string(f"numparq.{name}", text)
    for name, text in {
        "wrong_count": "kernel %s takes %zd arguments, not %zd",
        "wrong_type": "kernel %s: argument %zd must be an array with items of %d bytes%s, not %R",
        "wrong_array": "kernel %s: argument %zd must be a contiguous, aligned array of one dimension, in native byte "
        "order, with items of %d bytes%s; it has %d dimensions and dtype %S",
        "objects": " that are Python objects",
        "no_objects": "",
    }.items()
)

# `numparq.unpack` returns -1, or the number of the first wrong argument; `count` for a wrong number of arguments.
# `numparq.refuse` raises TypeError for that, unless an error is set, and returns a null pointer.
_SHARED = f"""
@"{ARRAY_TYPE}" = external hidden global ptr
@PyExc_TypeError = external global ptr
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_Format(ptr, ptr, ...)
declare i32 @PyType_IsSubtype(ptr, ptr)
{_STRINGS}
define i64 @numparq.unpack(ptr %args, i64 %size, ptr %wanted, i64 %count, ptr %out) noinline {{
start:
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
  %arg_at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %arg_at
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
  %array_type = load ptr, ptr @"{ARRAY_TYPE}"
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %fields, label %derived
derived:
  %derives = call i32 @PyType_IsSubtype(ptr %type, ptr %array_type)
  %is_derived = icmp ne i32 %derives, 0
  br i1 %is_derived, label %fields, label %bad
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

define ptr @numparq.refuse(ptr %name, ptr %args, i64 %size, ptr %wanted, i64 %count, i64 %bad) noinline cold {{
  %error = call ptr @PyErr_Occurred()
  %unset = icmp eq ptr %error, null
  br i1 %unset, label %unknown, label %done
done:
  ret ptr null
unknown:
  %type_error = load ptr, ptr @PyExc_TypeError
  %is_count = icmp eq i64 %bad, %count
  br i1 %is_count, label %number, label %argument
number:
  %n = call ptr (ptr, ptr, ...) @PyErr_Format(
    ptr %type_error, ptr @numparq.wrong_count, ptr %name, i64 %count, i64 %size)
  br label %done
argument:
  %want_at = getelementptr i16, ptr %wanted, i64 %bad
  %want = load i16, ptr %want_at
  %want32 = sext i16 %want to i32
  %minus = sub i32 0, %want32
  %is_object = icmp slt i32 %want32, 0
  %bytes = select i1 %is_object, i32 %minus, i32 %want32
  %kind = select i1 %is_object, ptr @numparq.objects, ptr @numparq.no_objects
  %arg_at = getelementptr ptr, ptr %args, i64 %bad
  %object = load ptr, ptr %arg_at
  %type_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES - POINTER}
  %type = load ptr, ptr %type_at
  %array_type = load ptr, ptr @"{ARRAY_TYPE}"
  %derives = call i32 @PyType_IsSubtype(ptr %type, ptr %array_type)
  %is_array = icmp ne i32 %derives, 0
  br i1 %is_array, label %array, label %other
array:
  %ndim_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES + ARRAY_FIELDS["ndim"]}
  %ndim = load i32, ptr %ndim_at
  %descr_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD_BYTES + ARRAY_FIELDS["descr"]}
  %descr = load ptr, ptr %descr_at
  %a = call ptr (ptr, ptr, ...) @PyErr_Format(
    ptr %type_error, ptr @numparq.wrong_array, ptr %name, i64 %bad, i32 %bytes, ptr %kind, i32 %ndim, ptr %descr)
  br label %done
other:
  %o = call ptr (ptr, ptr, ...) @PyErr_Format(
    ptr %type_error, ptr @numparq.wrong_type, ptr %name, i64 %bad, i32 %bytes, ptr %kind, ptr %type)
  br label %done
}}
"""

_DECLARED = """
declare i64 @numparq.unpack(ptr, i64, ptr, i64, ptr)
declare ptr @numparq.refuse(ptr, ptr, i64, ptr, i64, i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
"""


def shared_text() -> str:
    """Return the LLVM text that all entries of an object share."""
    return _SHARED


def argument_code(letter: str) -> int:
    """Return the code of an argument: 0 for an int, else the item size, negative for Python objects."""
    if letter == "x":
        return 0
    return -POINTER if letter == "O" else np.dtype(letter).itemsize


def entry_text(name: str, kernel: Kernel, native: str) -> tuple[str, int]:
    """Return the entry of a kernel in LLVM text, and the number of arguments that `native` must have.

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
    expected = f'ptr @"numparq.wanted.{name}", i64 {count}'
    return (
        f"""{_DECLARED}
@"numparq.wanted.{name}" = internal constant [{count} x i16] [{", ".join(f"i16 {size}" for size in sizes)}]
{c_string(f"numparq.kernel.{name}", name)}
define ptr @"{ENTRY_PREFIX}{name}"(ptr %self, ptr %args, i64 %size) {{
  %values = alloca i64, i64 {max(count, 1)}
  %result = alloca i64
  %error = alloca ptr
  store i64 0, ptr %result
  %bad = call i64 @numparq.unpack(ptr %args, i64 %size, {expected}, ptr %values)
  %good = icmp slt i64 %bad, 0
  br i1 %good, label %run, label %refuse
refuse:
  %none = call ptr @numparq.refuse(ptr @"numparq.kernel.{name}", ptr %args, i64 %size, {expected}, i64 %bad)
  ret ptr null
run:
{values}
{release}
  %status = call i32 @"{native}"({", ".join(arguments)})
{acquire}
  %value = load i64, ptr %result
  %returned = icmp eq i32 %status, 0
  %answer = select i1 %returned, i64 %value, i64 {RAISED}
  %object = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %object
}}
""",
        len(arguments),
    )
