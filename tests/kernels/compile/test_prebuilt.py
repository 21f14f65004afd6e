"""Choice of the prebuilt library: where it fits, it is used without Numba; elsewhere kernels are compiled.

The library has two tiny kernels, in a copy of the package.
"""

from __future__ import annotations

import os
import platform
import shutil

import pytest

from support.kernels.object_cache import RUN, PackageCopy

BUILD = """
import platform
from numparq.kernels.compile.library import build_library
from numparq.kernels.compile.prebuilt import LIBRARY
build_library(LIBRARY, platform.machine())
"""
MARK_AS_PACKAGED = """
from numparq.kernels.compile.prebuilt import DIGEST_FILE, source_digest
DIGEST_FILE.write_text(source_digest())
"""
# As in an environment without a compiler.
WITHOUT_NUMBA = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ("numba", "llvmlite") else found(name, package)
"""
LOADED, COMPILED = "8 30 -7 library False False", "8 30 -7 object True False"
RAISES = """
try:
    from numparq.kernels.kernel_groups import kernels
    kernels.same(1)
except ImportError as error:
    print(type(error).__name__, error)
"""


def make_library(root):
    made = PackageCopy(root)
    made.run(BUILD)
    return made


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """A copy of the package with a library."""
    library = pytest.importorskip("numparq.kernels.compile.library")
    try:
        library.find_linker(platform.machine())
    except library.LibraryError as error:
        pytest.skip(str(error))
    return make_library(tmp_path_factory.mktemp("linked"))


@pytest.fixture
def project(linked, tmp_path):
    """A copy of the package with a library, to be changed."""
    for name in ("numparq", "cache"):
        if (linked.root / name).exists():
            shutil.copytree(linked.root / name, tmp_path / name, copy_function=shutil.copy2)
    changed = PackageCopy.__new__(PackageCopy)
    changed.root, changed.place = tmp_path, tmp_path / "cache"
    return changed


def test_library_is_used_without_numba(linked):
    assert linked.run() == (LOADED, "")
    assert linked.run(WITHOUT_NUMBA + RUN) == (LOADED, "")
    assert not linked.objects()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have one level")
def test_levels_are_chosen_by_name(linked):
    for level in ("x86-64-v2", "library"):
        assert linked.run(NUMPARQ_KERNELS=level) == (LOADED, "")
    output, _ = linked.run(RAISES, NUMPARQ_KERNELS="aarch64")
    assert "is for aarch64, and this CPU runs ['x86-64-v2'" in output


@pytest.mark.slow
def test_other_ways_are_chosen_by_name(project):
    assert project.run(NUMPARQ_KERNELS="object") == (COMPILED, "")
    assert project.run(NUMPARQ_KERNELS="python")[0] == "8 30 -7 python False False"
    assert project.run(NUMPARQ_KERNELS="dispatcher")[0] == "8 30 -7 dispatcher True False"


def test_stale_library_of_a_checkout_is_not_used(project):
    project.write_factor(10, 4)
    assert project.run() == ("8 70 -7 object True False", "")
    output, _ = project.run(RAISES, NUMPARQ_KERNELS="library")
    assert output.startswith("NoLibraryError")
    assert "was built from other sources" in output


def test_library_beside_a_digest_is_compared_with_that(project):
    project.run(MARK_AS_PACKAGED)
    assert project.run() == (LOADED, "")
    digest = project.root / "numparq" / "kernels" / "_kernels.digest"
    digest.write_text("0" * 64)
    output, _ = project.run(RAISES, NUMPARQ_KERNELS="library")
    assert "was built from other sources" in output


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"\x7fELF" + bytes(99))])
def test_message_names_the_extra_where_nothing_can_run(project, damage):
    damage(project.root / "numparq" / "kernels" / "_kernels.abi3.so")
    output, errors = project.run(WITHOUT_NUMBA + RAISES)
    assert output.startswith("ImportError numparq's kernels are not prebuilt for this process (library: ")
    assert "pip install 'numparq[jit]'" in output
    assert errors == ""


def test_library_in_a_zip_file_is_copied(project):
    path = shutil.make_archive(str(project.root / "package"), "zip", project.root, "numparq")
    shutil.rmtree(project.root / "numparq")
    for _ in range(2):
        assert project.run(WITHOUT_NUMBA + RUN, PYTHONPATH=path) == (LOADED, "")
    (copy,) = project.place.glob("library-*/_kernels.abi3.so")
    whole = copy.read_bytes()
    copy.write_bytes(whole[:1000])
    assert project.run(WITHOUT_NUMBA + RUN, PYTHONPATH=path) == (LOADED, "")
    assert copy.read_bytes() == whole
    assert not project.objects()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only Unix has file modes")
def test_library_in_a_zip_file_is_not_copied_where_others_can_write(project):
    path = shutil.make_archive(str(project.root / "package"), "zip", project.root, "numparq")
    shutil.rmtree(project.root / "numparq")
    project.place.mkdir(exist_ok=True)
    project.place.chmod(0o777)
    output, _ = project.run(RAISES, PYTHONPATH=path, NUMPARQ_KERNELS="library")
    assert output.startswith("NoLibraryError")
    assert "set NUMPARQ_CACHE_DIR" in output
    assert not list(project.place.iterdir())


def test_unknown_layout_of_arrays_is_refused(linked):
    broken = "from numparq.kernels.compile import entry\nentry.ARRAY_FIELDS['ndim'] = 16\n"
    output, _ = linked.run(broken + RAISES, NUMPARQ_KERNELS="library")
    assert output.startswith("NoLibraryError arrays are laid out as")


THREADS_AND_FORKS = """
import os, signal, threading
from numparq.kernels.kernel_groups import kernels
barrier, results = threading.Barrier(8), []
def use():
    barrier.wait()
    results.append(kernels.same(9))
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
child = os.fork()
if not child:
    signal.alarm(30)
    os._exit(kernels.same(3))
for thread in threads: thread.join()
print(results == [9] * 8, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kernels.mode)
"""


def test_threads_and_forks_at_first_use(linked):
    for _ in range(5):
        assert linked.run(THREADS_AND_FORKS)[0] == "True 3 library"
