"""Object cache shared by many processes: concurrent starts, and file systems without writes or locks."""

from __future__ import annotations

import os

import pytest

from support.kernels.object_cache import RUN, PackageCopy, finish

COMPILED, LOADED = "8 30 -7 object True False", "8 30 -7 object False False"

# Every change of the cache's directory fails, as on a read-only file system.
READ_ONLY = """
import errno, os, sys
_place = os.environ["NUMPARQ_CACHE_DIR"]
_writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

def _refuse(event, args):
    if event not in ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.utime", "tempfile.mkstemp"):
        return
    if str(args[0]).startswith(_place) and (event != "open" or (args[2] or 0) & _writing):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(args[0]))

sys.addaudithook(_refuse)
"""
# As on shared file systems without locks.
LOCKLESS = """
import errno, fcntl
def _refuse(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = _refuse
"""
PRELOAD = """
import sys
from numparq.kernels.kernel_groups import KERNEL_GROUPS, preload
preload()
print([kernels.group for kernels in KERNEL_GROUPS if kernels.mode], "numba" in sys.modules)
"""
FORKED = """
import os, sys
from numparq.kernels.kernel_groups import kernels, preload
preload()
ends = []
for number in range(3):
    child = os.fork()
    if not child:
        loaded = kernels.mode == "object" and "numba" not in sys.modules
        os._exit(kernels.same(number + 1) if loaded else 100)
    ends.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in ends])
"""


@pytest.fixture
def project(tmp_path):
    return PackageCopy(tmp_path)


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A project whose cache holds its kernels."""
    made = PackageCopy(tmp_path_factory.mktemp("warm"))
    assert made.run()[0] == COMPILED
    return made


def content(project):
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in project.place.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("prelude", ["", LOCKLESS], ids=["locks", "no locks"])
def test_many_processes_start_on_an_empty_cache(project, prelude):
    pytest.importorskip("fcntl")
    outputs = [finish(process) for process in [project.start(prelude + RUN) for _ in range(4)]]
    assert {output for output, _ in outputs} <= {COMPILED, LOADED}
    assert not any(errors for _, errors in outputs)
    names = [path.name for path in project.place.iterdir() if not path.name.endswith(".lock")]
    assert names == [path.name for path in project.objects()]
    assert len(names) == 1
    assert project.run(prelude + RUN) == (LOADED, "")


def test_one_of_concurrent_processes_compiles(project):
    pytest.importorskip("fcntl")
    outputs = [finish(process)[0] for process in [project.start() for _ in range(3)]]
    assert sorted(outputs) == sorted([COMPILED, LOADED, LOADED])


def test_read_only_cache_is_loaded(warm):
    before = content(warm)
    assert warm.run(READ_ONLY + RUN) == (LOADED, "")
    assert content(warm) == before


@pytest.mark.slow
@pytest.mark.parametrize("exists", [False, True])
def test_read_only_cache_without_the_entry(project, exists):
    """As in an image that was warmed up on another CPU: every process compiles, and warns once."""
    if exists:
        project.place.mkdir(mode=0o755)
        (project.place / "kernels-reading-0123456789abcdef01234567.bin").write_bytes(b"of another CPU")
        before = content(project)
    output, errors = project.run(READ_ONLY + RUN)
    assert output == COMPILED
    assert errors.count("RuntimeWarning") == 1
    assert "Read-only file system" in errors
    assert str(project.place) in errors
    assert project.place.exists() == exists
    assert not exists or content(project) == before


@pytest.mark.slow
def test_full_disk(project):
    full = READ_ONLY.replace("EROFS", "ENOSPC").replace('"tempfile.mkstemp"', '"none"').replace('"open", ', "")
    output, errors = project.run(full + RUN)
    assert output == COMPILED
    assert "No space left" in errors


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only Unix has owners")
def test_objects_built_by_root_are_loaded_by_others(warm):
    if os.geteuid() != 0:
        pytest.skip("only root can create files of root")
    other = "import os\nos.geteuid = lambda: 12345\n"
    assert warm.run(other + READ_ONLY + RUN) == (LOADED, "")


@pytest.mark.slow
def test_preload_loads_cached_groups_and_the_reading_group(project):
    assert project.run(PRELOAD) == ("['reading'] True", "")
    assert project.run(PRELOAD) == ("['reading'] False", "")
    assert (
        project.run("from numparq.kernels.kernel_groups import nested_decode_kernels; nested_decode_kernels.load()")[0]
        == ""
    )
    assert project.run(PRELOAD) == ("['reading', 'nested'] False", "")


@pytest.mark.parametrize("mode", ["dispatcher", "python"])
def test_preload_without_objects(project, mode):
    assert project.run(PRELOAD, NUMPARQ_KERNELS=mode)[0].startswith("['reading'] ")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_inherit_preloaded_kernels(warm):
    assert warm.run(FORKED) == ("[1, 2, 3]", "")


UPGRADED = """
import os, time
import numparq.kernels.kernel_groups, numparq.kernels.factor
time.sleep(0.05)
path = os.environ["FACTOR"]
text = open(path).read()
open(path, "w").write(text.replace("value + 0", "value + 4"))
"""


@pytest.mark.slow
def test_process_running_during_an_upgrade_stores_nothing(project):
    """Its functions in memory are older than the files that its cache key is computed from."""
    factor = str(project.root / "numparq" / "kernels" / "factor.py")
    assert project.run(UPGRADED + RUN, FACTOR=factor)[0] == COMPILED  # as it was imported
    assert not project.objects()
    upgraded = COMPILED.replace("30", "70")
    assert project.run()[0] == upgraded
    assert project.run()[0] == upgraded.replace("True", "False", 1)
    project.write_factor(10, 0)
    before = content(project)
    assert project.run(UPGRADED + RUN, FACTOR=factor)[0] == COMPILED  # and loads no object of the newer sources
    assert content(project) == before
