"""Order of imports, modules that a plain import loads, and test modules that mirror the package."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import numparq
import numparq.spark
from numparq.kernels.groups import GROUPS
from support.syntax_trees import PACKAGE, module_paths, syntax_tree

TESTS = Path(__file__).resolve().parents[1]
# Folders with tests of the public API or the whole package. A test module in any other folder tests one module.
BY_BEHAVIOUR = {
    "benchmarks",
    "conformance",
    "differential",
    "hostile",
    "interop",
    "project",
    "read",
    "spark/jvm",
    "without_pyarrow",
    "write",
}

# From the bottom up: a package imports from lower layers only, not from packages in its own layer.
LAYERS = [
    ["errors", "util"],
    ["typing"],
    ["kernels"],
    ["io", "crypto"],
    ["format"],
    ["compression"],
    ["plan", "keys"],
    ["types"],
    ["column"],
    ["to_pandas", "expr"],
    ["prune"],
    ["from_pandas", "scan"],
    ["file"],
    ["dataset"],
    ["skipping"],
    ["api"],
    ["tools"],
    ["pandas", "spark"],
    ["cli"],
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
# Imported only to compile kernels, so it may import numba.
COMPILING = ("kernels.compile.numba_pipeline",)
# Their classes derive from Spark's data source classes, so they cannot be imported without pyspark.
DERIVED_FROM_SPARK = (
    "spark.data_source.source",
    "spark.data_source.stream_reader",
    "spark.data_source.stream_writer",
    "spark.data_source.writer",
    "spark.data_source.pushdown",
    "toplevel.pyspark_numparq",
)
# Besides these, only `format.module_reader` reads bytes of a source, so that decryption has one place. These are the
# sources, the footer, contents of FILE references, and programs that check or rebuild files by the specification.
READS_SOURCES = ("io", "format.footer", "format.file_reference", "scan.joined_files", "tools.verify", "tools.salvage")
# Functions and classes of `io` and the footer that hand out stored bytes, and who may import them: besides the above,
# what copies whole files, and what wraps bytes that it has in memory.
STORED_BYTES = {
    "read_bytes": (),
    "tail_bytes": ("format.open_file",),
    "copy_prefix": ("file.append",),
    "leading_magic": (),
    "BytesSource": ("prune.dictionary_page", "dataset.small_files"),
}
# Modules above all layers, which only forward.
FORWARDERS = {"__init__", "__main__"}

Name = tuple[str, ...]
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # what may hold an import


def name_of(path: Path) -> Name:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_type_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def statements_outside(tree: ast.AST, skips: Callable[[ast.AST], bool]) -> Iterator[ast.AST]:
    """Yield the statements of a tree, without those that are skipped and all below them."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        children = (child for child in ast.iter_child_nodes(node) if isinstance(child, STATEMENTS))
        left += [child for child in children if not skips(child)]


@cache
def imported_names(path: Path, skips: Callable[[ast.AST], bool] = is_type_block) -> set[Name]:
    """Return the full names, in parts, that a module imports; by default outside of TYPE_CHECKING blocks."""
    here = ["numparq", *path.relative_to(PACKAGE).parts[:-1]]
    found: set[Name] = set()
    for node in statements_outside(syntax_tree(path), skips):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            full = [*base, *(node.module.split(".") if node.module else [])]
            found |= {(*full, alias.name) for alias in node.names}
    return found


@cache
def imports() -> dict[Name, set[Name]]:
    """Return the modules of numparq that each of its modules imports."""
    known = known_modules()
    found: dict[Name, set[Name]] = {}
    for name, path in known.items():
        found[name] = set()
        for _, *parts in (full for full in imported_names(path) if full[0] == "numparq"):
            target = tuple(parts)
            while target not in known:
                target = target[:-1]
            if target not in (name, ()):
                found[name].add(target)
    return found


def known_modules() -> dict[Name, Path]:
    return {name_of(path): path for path in module_paths()}


def all_imports() -> dict[Name, set[Name]]:
    """Return what each module imports anywhere: for types and in functions too.

    ``from . import x`` imports the package as well as its module ``x``.
    """
    known = known_modules()
    graph = {}
    for name, path in known.items():
        full_names = [parts for root, *parts in imported_names(path, lambda node: False) if root == "numparq"]
        targets = {tuple(parts[:end]) for parts in full_names for end in (len(parts), len(parts) - 1)}
        graph[name] = {target for target in targets if target in known and target != name}
    return graph


def imports_at_import() -> dict[Name, set[Name]]:
    """Return what is imported when each module is: other modules, and the packages that it and they are in.

    The package itself is left out: nothing of it is imported before it.
    """
    known = known_modules()
    graph: dict[Name, set[Name]] = {}
    for name, path in known.items():
        names = imported_names(path, lambda node: is_type_block(node) or is_function(node))
        full_names = [parts for root, *parts in names if root == "numparq"] + [list(name)]
        targets = {tuple(parts[:end]) for parts in full_names for end in range(1, len(parts) + 1)}
        graph[name] = {target for target in targets if target in known and target != name}
    return graph


def import_cycle(graph: Mapping[Name, set[Name]]) -> list[str]:
    """Return modules that import each other in a cycle, or an empty list."""
    done: set[Name] = set()

    def visit(name: Name, path: tuple[Name, ...]) -> list[str]:
        if name in path:
            return [".".join(one) for one in path[path.index(name) :]]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := visit(other, (*path, name)):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name, ()))), [])


def test_packages_import_only_lower_layers() -> None:
    wrong = []
    for path in module_paths():
        layer = layer_of(path)
        if layer in FORWARDERS:
            continue
        assert layer in LAYER, f"{layer} is not listed in LAYERS"
        for full in (full for full in imported_names(path) if full[0] == "numparq"):
            name = full[1] if len(full) > 1 else "__init__"
            if name != layer and LAYER.get(name, len(LAYERS)) >= LAYER[layer]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {'.'.join(full)}, which is not below {layer}")
    assert wrong == []


def test_no_import_cycles_of_modules() -> None:
    assert import_cycle(all_imports()) == []


def test_threads_can_import_modules_in_any_order() -> None:
    """A package that imports its own modules waits for a thread that has begun one of these, which waits for it."""
    assert import_cycle(imports_at_import()) == []


def test_cycles_are_found() -> None:
    a, b, c = ("a",), ("a", "b"), ("c",)
    assert import_cycle({a: {b}, b: {c}, c: set()}) == []
    assert import_cycle({a: {b}, b: {c}, c: {a}}) == ["a", "a.b", "c"]
    graph = all_imports()
    assert ("expr",) not in graph["expr", "bind"]
    assert {("compression", "lz4_lzo"), ("compression",)} <= graph["compression", "codecs"], "from . import lz4_lzo"
    assert ("api", "read") in graph[()], "only for types"
    assert ("scan", "select_rows") in graph["scan", "file_reader"], "in a function"
    assert {("expr",), ("expr", "bound")} <= imports_at_import()["expr", "bind"]


def test_no_import_cycles_of_subpackages() -> None:
    packages = {name_of(path) for path in module_paths() if path.name == "__init__.py"}
    graph: dict[Name, set[Name]] = defaultdict(set)
    for name, targets in imports().items():
        folder = name if name in packages else name[:-1]
        for target in targets:
            other = target if target in packages else target[:-1]
            if folder != other and len(folder) == len(other) == 2 and folder[0] == other[0]:
                graph[folder].add(other)
    assert import_cycle(graph) == []


@pytest.mark.parametrize("package", [numparq, numparq.spark], ids=lambda package: package.__name__)
def test_no_module_has_the_name_of_a_public_function(package) -> None:
    """Importing it would replace the function as the attribute of the package."""
    folder = Path(package.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert names.isdisjoint(package.__all__)


def source_reads(path: Path) -> list[str]:
    """Return the calls in a module that read bytes of a `Source`, not of a `ModuleReader`."""
    nodes = (node.func for node in ast.walk(syntax_tree(path)) if isinstance(node, ast.Call))
    calls = [call for call in nodes if isinstance(call, ast.Attribute)]
    reads = [ast.unparse(call) for call in calls if call.attr in ("read_into", "read_ranges", "view")]
    reads = [read for read in reads if not read.endswith(".view") or "source.view" in read]
    return [read for read in reads if not read.split(".")[-2].endswith("reader")]


def test_one_object_reads_modules() -> None:
    readers = {".".join(name_of(path)) for path in module_paths() if source_reads(path)}
    assert "format.module_reader" in readers
    others = [name for name in readers if not name.startswith((*READS_SOURCES, "format.module_reader"))]
    assert others == []


@pytest.mark.parametrize("name", STORED_BYTES)
def test_stored_bytes_are_handed_to_few_modules(name: str) -> None:
    """Encrypted files need each of them to know what a module is, so that nothing reads ciphertext as plaintext."""
    importers = {
        ".".join(name_of(path)) for path in module_paths() for full in imported_names(path) if full[-1] == name
    }
    assert importers, f"nothing imports {name}"
    assert sorted(each for each in importers if not each.startswith((*READS_SOURCES, *STORED_BYTES[name]))) == []


def test_kernels_do_not_raise_or_use_forbidden_features() -> None:
    for path in (path for path in module_paths() if layer_of(path) == "kernels"):
        text = path.read_text()
        for word in ("parallel=True", "guvectorize", "jitclass", "fastmath=True"):
            assert word not in text, path
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.FunctionDef) and any(
                "kernel" in ast.unparse(d) or "helper" in ast.unparse(d) for d in node.decorator_list
            ):
                assert not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), f"{path}: {node.name} raises"


@pytest.mark.parametrize("group", GROUPS)
def test_kernels_use_only_modules_of_their_group(group: str) -> None:
    modules_of_groups = {module for table in GROUPS.values() for module in table}
    graph = imports()
    for module in GROUPS[group]:
        used = {".".join(name[1:]) for name in graph["kernels", *module.split(".")] if name[0] == "kernels"}
        assert used & modules_of_groups <= set(GROUPS[group]), f"{module} uses a kernel module of another group"


def test_importing_everything_imports_neither_numba_nor_thriftpy2() -> None:
    names = [".".join(["numparq", *name_of(path)]) for path in module_paths()]
    names = [name for name in names if not name.endswith(("__main__", *COMPILING))]
    if importlib.util.find_spec("pyspark") is None:
        names = [name for name in names if not name.endswith(DERIVED_FROM_SPARK)]
    code = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
    code += "print([name for name in ('numba', 'thriftpy2') if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]", output.stdout


def test_only_one_package_imports_pyspark() -> None:
    for path in module_paths():
        uses = any(name[0] == "pyspark" for name in imported_names(path))
        assert not uses or layer_of(path) == "spark", f"{path} imports pyspark"


def test_plain_import_is_light() -> None:
    heavy = ("numpy", "pandas", "numba", "llvmlite", "pyarrow")
    code = f"import sys, numparq; print([name for name in {heavy} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_test_modules_mirror_the_package() -> None:
    """``tests/prune/test_lookup_x.py`` tests ``numparq/prune/lookup.py``, or a package ``numparq/prune/lookup/``."""
    num_mirrored, wrong = 0, []
    for path in sorted(TESTS.rglob("test_*.py")):
        folder = path.relative_to(TESTS).parent
        if folder.as_posix() in BY_BEHAVIOUR:
            continue
        package = PACKAGE / folder
        names = {each.stem for each in package.glob("*.py")} | {each.parent.name for each in package.glob("*/*.py")}
        if not any(path.stem == f"test_{name}" or path.stem.startswith(f"test_{name}_") for name in names):
            wrong.append(path.relative_to(TESTS).as_posix())
        num_mirrored += 1
    assert wrong == []
    assert num_mirrored > 150


@pytest.mark.slow
def test_helpers_are_only_in_support() -> None:
    """No module imports a test module or a `conftest`, and all other modules are in ``tests/support``."""
    num_modules, wrong = 0, []
    for path in sorted(TESTS.rglob("*.py")):
        is_helper = path.relative_to(TESTS).parts[0] == "support"
        if not is_helper and path.name != "conftest.py" and not path.name.startswith("test_"):
            wrong.append(f"{path.relative_to(TESTS)} is a helper outside of support/")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                if node.level and is_helper:
                    continue
                names = [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                parts = name.split(".")
                beginnings = [Path(*parts[:end]).with_suffix(".py") for end in range(1, len(parts) + 1)]
                found = [
                    folder / each for folder in {TESTS, path.parent} for each in beginnings if (folder / each).exists()
                ]
                if name.startswith(".") or (found and parts[0] != "support" and not is_helper):
                    wrong.append(f"{path.relative_to(TESTS)} imports {name}")
                if any(part.startswith("test_") or part == "conftest" for part in parts[:-1]):
                    wrong.append(f"{path.relative_to(TESTS)} imports {name}")
        num_modules += 1
    assert wrong == []
    assert num_modules > 300
