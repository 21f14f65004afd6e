"""LLVM text of the extension module whose functions are kernels: method tables, initialisation, choice of a CPU level.

The module begins without kernels. `use(level, ndarray)` stores NumPy's array type and adds those of a CPU level.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence

from numparq.kernels.registry import Kernel

from .entry import ARRAY_TYPE, ENTRY_PREFIX, OBJECT_HEAD_BYTES, POINTER, c_string

MODULE_NAME = "_kernels"
INITIALISE = f"PyInit_{MODULE_NAME}"

_METHOD = "{ptr, ptr, i32, ptr}"  # PyMethodDef
_FASTCALL = 128  # METH_FASTCALL
_EXECUTE = 2  # Py_mod_exec
_TYPE_SUBCLASS = 1 << 31  # Py_TPFLAGS_TYPE_SUBCLASS: of the type of every type

_LEVEL_DOC = "level()\n--\n\nReturn the number of the highest of `levels` that this CPU runs, -1 if it runs none."
_USE_DOC = """use(level, array_type, /)
--

Add the kernels of a level, by its number, to this module; `array_type` is numpy.ndarray."""

_TEXTS = {
    "name": MODULE_NAME,
    "doc": "Compiled kernels of numparq.",
    "digest_name": "digest",
    "levels_name": "levels",
    "level_name": "level",
    "level_doc": _LEVEL_DOC,
    "use_name": "use",
    "use_doc": _USE_DOC,
    "use_error": "use takes the number of a level and the type of arrays",
    "level_error": "this CPU does not run level %zd",
}
_DECLARED = """
@PyExc_TypeError = external global ptr
@PyExc_ValueError = external global ptr
declare ptr @PyModuleDef_Init(ptr)
declare i32 @PyModule_AddFunctions(ptr, ptr)
declare i32 @PyModule_AddStringConstant(ptr, ptr, ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_Format(ptr, ptr, ...)
declare i64 @PyType_GetFlags(ptr)
declare void @Py_IncRef(ptr)
"""


def table_name(level: str, number: int = 0) -> str:
    """Return the symbol of the method table of a level's kernels in object file `number`."""
    return f"numparq.table.{level}.{number}"


def table_text(table: str, kernels: Mapping[str, Kernel]) -> str:
    """Return the method table of kernels, whose entries are linked with it."""
    lines, rows = [], []
    for name, kernel in kernels.items():
        lines.append(c_string(f"numparq.method.{name}", name))
        lines.append(c_string(f"numparq.method_doc.{name}", _documentation(name, kernel)))
        lines.append(f'declare ptr @"{ENTRY_PREFIX}{name}"(ptr, ptr, i64)\n')
        rows.append(
            f'{_METHOD} {{ptr @"numparq.method.{name}", ptr @"{ENTRY_PREFIX}{name}", i32 {_FASTCALL}, '
            f'ptr @"numparq.method_doc.{name}"}}'
        )
    rows.append(f"{_METHOD} zeroinitializer")
    return "".join(lines) + f'@"{table}" = hidden constant [{len(rows)} x {_METHOD}] [{", ".join(rows)}]\n'


def _documentation(name: str, kernel: Kernel) -> str:
    """Return the docstring with a signature in front, as `inspect.signature` reads it."""
    parameters = ", ".join(kernel.function.__code__.co_varnames[: kernel.function.__code__.co_argcount])
    return f"{name}({parameters}, /)\n--\n\n{inspect.getdoc(kernel.function) or ''}"


def module_text(tables: Mapping[str, Sequence[str]], digest: str, cpu_test: str) -> str:
    """Return the module: `tables` are the method tables of each level, the lowest level first.

    `cpu_test` is LLVM text of ``i64 @numparq.level()``, the number of the highest level that the CPU runs, -1 if none.
    """
    texts = _TEXTS | {"digest": digest, "levels": " ".join(tables)}
    strings = "".join(c_string(f"numparq.{name}", text) for name, text in texts.items())
    return f"""{cpu_test}
@"{ARRAY_TYPE}" = hidden global ptr null
{_DECLARED}{strings}
@methods = internal global [3 x {_METHOD}] [
  {_METHOD} {{ptr @numparq.level_name, ptr @level, i32 {_FASTCALL}, ptr @numparq.level_doc}},
  {_METHOD} {{ptr @numparq.use_name, ptr @use, i32 {_FASTCALL}, ptr @numparq.use_doc}},
  {_METHOD} zeroinitializer]
@slots = internal global [2 x {{i32, ptr}}] [
  {{i32, ptr}} {{i32 {_EXECUTE}, ptr @execute}}, {{i32, ptr}} zeroinitializer]
@definition = internal global {{i64, [4 x ptr], ptr, ptr, i64, ptr, ptr, [3 x ptr]}} {{
  i64 1, [4 x ptr] zeroinitializer, ptr @numparq.name, ptr @numparq.doc, i64 0, ptr @methods, ptr @slots,
  [3 x ptr] zeroinitializer}}

define ptr @{INITIALISE}() {{
  %definition = call ptr @PyModuleDef_Init(ptr @definition)
  ret ptr %definition
}}

define internal i32 @execute(ptr %module) {{
  %first = call i32 @PyModule_AddStringConstant(ptr %module, ptr @numparq.digest_name, ptr @numparq.digest)
  %bad = icmp slt i32 %first, 0
  br i1 %bad, label %failed, label %levels
failed:
  ret i32 -1
levels:
  %second = call i32 @PyModule_AddStringConstant(ptr %module, ptr @numparq.levels_name, ptr @numparq.levels)
  ret i32 %second
}}

define internal ptr @level(ptr %module, ptr %args, i64 %size) {{
  %level = call i64 @numparq.level()
  %object = call ptr @PyLong_FromLongLong(i64 %level)
  ret ptr %object
}}

{_use_text(tables.values())}
{_declared(tables.values())}"""


def _use_text(levels: Collection[Sequence[str]]) -> str:
    """Return the function `use` for the method tables of each level."""
    return f"""
define internal ptr @use(ptr %module, ptr %args, i64 %size) {{
  %two = icmp eq i64 %size, 2
  br i1 %two, label %arguments, label %refuse
refuse:
  %type_error = load ptr, ptr @PyExc_TypeError
  %t = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %type_error, ptr @numparq.use_error)
  br label %failed
failed:
  ret ptr null
arguments:
  %type_at = getelementptr ptr, ptr %args, i64 1
  %type = load ptr, ptr %type_at
  %kind_at = getelementptr i8, ptr %type, i64 {OBJECT_HEAD_BYTES - POINTER}
  %kind = load ptr, ptr %kind_at
  %flags = call i64 @PyType_GetFlags(ptr %kind)
  %subclass = and i64 %flags, {_TYPE_SUBCLASS}
  %is_type = icmp ne i64 %subclass, 0
  br i1 %is_type, label %number, label %refuse
number:
  %first = load ptr, ptr %args
  %level = call i64 @PyLong_AsLongLong(ptr %first)
  %negative = icmp slt i64 %level, 0
  br i1 %negative, label %doubt, label %bounded
doubt:
  %error = call ptr @PyErr_Occurred()
  %set = icmp ne ptr %error, null
  br i1 %set, label %failed, label %unfit
unfit:
  %value_error = load ptr, ptr @PyExc_ValueError
  %v = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %value_error, ptr @numparq.level_error, i64 %level)
  br label %failed
bounded:
  %highest = call i64 @numparq.level()
  %above = icmp sgt i64 %level, %highest
  br i1 %above, label %unfit, label %store
store:
  call void @Py_IncRef(ptr %type)
  store ptr %type, ptr @"{ARRAY_TYPE}"
  switch i64 %level, label %unfit [{" ".join(f"i64 {i}, label %level{i}.0" for i in range(len(levels)))}]
{_additions(levels)}
added:
  %answer = call ptr @PyLong_FromLongLong(i64 %level)
  ret ptr %answer
}}
"""


def _additions(levels: Iterable[Sequence[str]]) -> str:
    """Return the blocks of `use` that add the method tables of each level."""
    blocks = []
    for i, tables in enumerate(levels):
        for k, table in enumerate(tables):
            following = f"level{i}.{k + 1}" if k + 1 < len(tables) else "added"
            blocks.append(f"""level{i}.{k}:
  %s{i}.{k} = call i32 @PyModule_AddFunctions(ptr %module, ptr @"{table}")
  %bad{i}.{k} = icmp slt i32 %s{i}.{k}, 0
  br i1 %bad{i}.{k}, label %failed, label %{following}""")
    return "\n".join(blocks)


def _declared(levels: Iterable[Sequence[str]]) -> str:
    return "\n".join(f'@"{table}" = external hidden constant {_METHOD}' for tables in levels for table in tables)
