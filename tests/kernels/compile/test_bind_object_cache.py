"""Object cache of the kernels, from an empty cache on, in separate processes.

They run a copy of the package with two tiny kernels instead of all others, so that compiling is quick.
"""

from __future__ import annotations

import os
import shutil

import pytest

from support.kernels.object_cache import RUN, PackageCopy, finish


@pytest.fixture
def project(tmp_path):
    return PackageCopy(tmp_path)


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A project whose cache holds its kernels."""
    made = PackageCopy(tmp_path_factory.mktemp("warm"))
    assert made.run()[0] == "8 30 -7 object True False"
    return made


def test_warm_process_imports_neither_numba_nor_thriftpy2(warm):
    for _ in range(2):
        assert warm.run() == ("8 30 -7 object False False", "")
    assert len(warm.objects()) == 1


def test_importing_the_kernels_imports_nothing_else(warm):
    names = ("numba", "llvmlite", "numparq.util.disk_cache")
    program = f"import sys, numparq.kernels; print([m for m in {names} if m in sys.modules])"
    assert warm.run(program)[0] == "[]"


@pytest.mark.slow
def test_two_processes_start_on_an_empty_cache(project):
    both = [project.start(), project.start()]
    outputs = [finish(process) for process in both]
    assert all(output.startswith("8 30 -7 object") and not errors for output, errors in outputs)
    assert len(project.objects()) == 1
    assert project.run()[0] == "8 30 -7 object False False"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["object", "dispatcher"])
def test_zip_file_is_compiled_once_whatever_its_name(project, mode):
    """Spark copies ``--py-files`` to another folder in each job and executor."""
    archive = shutil.make_archive(str(project.root / "one"), "zip", project.root, "numparq")
    shutil.rmtree(project.root / "numparq")
    assert project.run(PYTHONPATH=archive, NUMPARQ_KERNELS=mode) == (f"8 30 -7 {mode} True False", "")
    known = sorted(project.place.rglob("*.*"))
    other = shutil.move(archive, project.root / "other.zip")
    loads_numba = mode == "dispatcher"
    assert project.run(PYTHONPATH=str(other), NUMPARQ_KERNELS=mode) == (f"8 30 -7 {mode} {loads_numba} False", "")
    assert sorted(project.place.rglob("*.*")) == known


@pytest.mark.slow
def test_changed_sources_are_recompiled(project):
    assert project.run()[0].startswith("8 30 ")
    project.write_factor(10, 4)  # a helper in another file
    assert project.run()[0] == "8 70 -7 object True False"
    project.write_factor(100, 4)  # a constant
    assert project.run()[0] == "8 700 -7 object True False"
    project.write_factor(10, 0)
    assert project.run()[0] == "8 30 -7 object False False"
    assert len(project.objects()) == 3


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:500],
        lambda whole: whole[:-1],
        lambda whole: b"",
        lambda whole: whole[:700] + bytes([whole[700] ^ 4]) + whole[701:],
    ],
)
def test_damaged_object_is_rebuilt(warm, damage):
    (path,) = warm.objects()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    try:
        assert warm.run()[0] == "8 30 -7 object True False"
        assert warm.run()[0] == "8 30 -7 object False False"
    finally:
        path.write_bytes(whole)


def test_unwritable_cache_warns_once(project):
    (project.root / "file").write_text("")
    output, errors = project.run(NUMPARQ_CACHE_DIR=str(project.root / "file" / "cache"))
    assert output == "8 30 -7 object True False"
    assert errors.count("RuntimeWarning") == 1
    assert "NUMPARQ_CACHE_DIR" in errors


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only Unix has file modes")
def test_code_writable_by_others_is_not_loaded(warm):
    warm.place.chmod(0o777)
    try:
        output, errors = warm.run()
    finally:
        warm.place.chmod(0o700)
    assert output == "8 30 -7 object True False"
    assert "other users can write" in errors


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"NUMPARQ_KERNELS": "dispatcher"}, {"NUMBA_BOUNDSCHECK": "1"}])
def test_dispatcher_gives_equal_results(project, settings):
    assert project.run(**settings)[0] == "8 30 -7 dispatcher True False"
    assert not project.objects()
    project.write_factor(10, 4)
    assert project.run(**settings)[0] == "8 70 -7 dispatcher True False"


@pytest.mark.parametrize("settings", [{"NUMPARQ_KERNELS": "python"}, {"NUMBA_DISABLE_JIT": "1"}])
def test_python_mode_gives_equal_results(project, settings):
    assert project.run(**settings) == ("8 30 -7 python False False", "")


def test_unknown_mode_is_refused(project):
    process = project.start(NUMPARQ_KERNELS="fortran")
    assert (
        "must be one of library, x86-64-v2, x86-64-v3, aarch64, object, dispatcher, python" in process.communicate()[1]
    )


BROKEN_LOADER = """
from numparq.kernels.compile import load
def refuse(code):
    raise RuntimeError("no loader on this machine")
load.load_object = refuse
"""


@pytest.mark.slow
def test_dispatcher_replaces_objects_that_cannot_be_loaded(warm):
    output, errors = warm.run(BROKEN_LOADER + RUN)
    assert output == "8 30 -7 dispatcher True False"
    assert errors.count("RuntimeWarning") == 1
    assert "no loader on this machine" in errors


FORKS = """
import os, signal, threading, time
import numpy as np
from numparq.kernels.compile import load
from numparq.kernels.compile.bind import _excluded_modules, _load_or_build
from numparq.kernels.kernel_groups import kernels
kernels.same(1)
(code,) = _load_or_build("reading", load.object_key(_excluded_modules("reading")))
stop = False

def keep_loading():
    while not stop:
        load.load_object(code)

def in_child():
    signal.alarm(30)  # a child that hangs ends with a signal
    assert kernels.same(5) == 5
    assert load.load_object(code)["same"](6) == 6
    os._exit(0)

thread = threading.Thread(target=keep_loading)
thread.start()
ends = []
for _ in range(25):
    child = os.fork()
    if not child:
        in_child()
    ends.append(os.waitpid(child, 0)[1])
    time.sleep(0.002)
stop = True
thread.join()
print(set(ends))
"""

FORK_AT_FIRST_USE = """
import os, signal, threading, time
from numparq.kernels.kernel_groups import kernels
thread = threading.Thread(target=lambda: kernels.same(1))
thread.start()
time.sleep(0.02)
child = os.fork()
if not child:
    signal.alarm(60)
    os._exit(kernels.same(3))
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kernels.same(4))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_while_another_thread_loads(warm):
    assert warm.run(FORKS)[0] == "{0}"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_another_thread_compiles(project):
    assert project.run(FORK_AT_FIRST_USE)[0] == "3 4"


THREADS = """
import threading
from numparq.kernels.kernel_groups import kernels
results = []
barrier = threading.Barrier(8)

def use():
    barrier.wait()
    results.append(kernels.same(9))

threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == [9] * 8)
"""


def test_concurrent_first_use(warm):
    assert warm.run(THREADS)[0] == "True"


@pytest.mark.slow
def test_parallel_build(project):
    assert project.run(NUMPARQ_BUILD_PROCESSES="2")[0] == "8 30 -7 object True False"
    assert project.run(NUMPARQ_BUILD_PROCESSES="2")[0] == "8 30 -7 object False False"


@pytest.mark.slow
def test_failed_build_workers_fall_back_to_local_compilation(project):
    broken = "import numparq.kernels.compile.parallel_build as workers\nworkers._PROGRAM = 'print(1)'\n"
    assert project.run(broken + RUN, NUMPARQ_BUILD_PROCESSES="2")[0] == "8 30 -7 object True False"
    nowhere = (
        "import sys\nimport numparq.kernels.compile.parallel_build as workers\nsys.executable = '/no/such/python'\n"
    )
    project.write_factor(1, 0)
    assert project.run(nowhere + RUN, NUMPARQ_BUILD_PROCESSES="2")[0] == "8 3 -7 object True False"


@pytest.mark.slow
def test_warmup_fills_the_cache(project):
    assert project.run("from numparq.kernels.kernel_groups import warmup; print(warmup())")[0] == "object"
    assert project.run()[0] == "8 30 -7 object False False"


@pytest.mark.slow
def test_package_in_a_zip_file(project):
    shutil.make_archive(str(project.root / "package"), "zip", project.root, "numparq")
    shutil.rmtree(project.root / "numparq")
    path = str(project.root / "package.zip")
    assert project.run(PYTHONPATH=path) == ("8 30 -7 object True False", "")
    assert project.run(PYTHONPATH=path) == ("8 30 -7 object False False", "")
