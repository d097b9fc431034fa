"""Programs that use no GPU run under the limiter as they do without it.

/etc/ld.so.preload reaches every program of a container. Here it is the real list, in a mount
namespace of its own. What is not installed on this machine, or cannot be fetched, is not tested,
and a warning says so.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.native import debian
from tests.native.isolation import ordinary
from tests.native.isolation.limited import PRELOAD, make_container
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
SOURCE = HERE / "surroundings.c"
LIBRARIES = f"usr/lib/{platform.machine()}-linux-gnu"
WRAPPER = "a library that wraps dlopen and dlvsym"
ALLOCATORS = {
    "jemalloc": debian.Program("bookworm", "main", "libjemalloc2", f"{LIBRARIES}/libjemalloc.so.2"),
    "tcmalloc": debian.Program(
        "bookworm", "main", "libtcmalloc-minimal4", f"{LIBRARIES}/libtcmalloc_minimal.so.4"
    ),
    "heaptrack": debian.Program(
        "bookworm", "main", "libheaptrack", "usr/lib/heaptrack/libheaptrack_preload.so"
    ),
}
PRINTED = "child\nthread 1 0 1\n"

pytestmark = pytest.mark.filterwarnings("default:NOT TESTED")


def skip(reason: str) -> None:
    warnings.warn(f"NOT TESTED: {reason}", stacklevel=2)
    pytest.skip(reason)


class Machine:
    """This machine with the limiter in its preload list, or without."""

    def __init__(self, place: Path) -> None:
        self.etc = place / "etc"
        # Without what only root may read, and without links that lead nowhere.
        command = ["cp", "-a", "/etc", str(self.etc)]
        subprocess.run(command, capture_output=True, check=False)
        files = make_container(place / "container", way=PRELOAD).files
        self.preload = files.directory / "ld.so.preload"

    def run(
        self, *command: str | Path, limited: bool, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        target = self.etc / "ld.so.preload"
        target.unlink(missing_ok=True)
        if limited:
            shutil.copy(self.preload, target)
        enter = f'mount --bind "{self.etc}" /etc && exec "$@"'
        # The variables are set inside: mount and sh are not what is tested.
        variables = [f"{name}={value}" for name, value in (extra or {}).items()]
        return subprocess.run(
            ["unshare", "-Urm", "sh", "-c", enter, "sh", "env", *variables, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"},
        )


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    made = Machine(tmp_path_factory.mktemp("machine"))
    if made.run("true", limited=False).returncode:
        skip("this machine lets nobody make namespaces, so there is no preload list")
    maps = made.run("cat", "/proc/self/maps", limited=True).stdout
    assert "libgpupool-limiter.so" in maps
    return made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("program") / "program"
    compile_c(SOURCE, made, "-DPROGRAM", "-lpthread")
    return made


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wrapper") / "wrapper.so"
    compile_c(SOURCE, made, "-shared", "-fPIC")
    return made


@pytest.fixture(params=["nothing", *ALLOCATORS, WRAPPER])
def variables(
    request: pytest.FixtureRequest, machine: Machine, wrapper: Path, tmp_path: Path
) -> dict[str, str]:
    """What is preloaded in addition, before the limiter."""
    if request.param == "nothing":
        return {}
    known = ALLOCATORS.get(request.param)
    library = debian.available(known) if known else wrapper
    made = {"LD_PRELOAD": str(library), "DUMP_HEAPTRACK_OUTPUT": str(tmp_path / "heaptrack")}
    done = machine.run("true", limited=False, extra=made)
    if done.returncode or done.stderr:
        skip(f"{request.param} does not work on this machine: {done.stderr}")
    return made


def test_a_hundred_ordinary_programs_do_the_same_as_without_the_limiter(
    machine: Machine, variables: dict[str, str]
) -> None:
    results = []
    for limited in (False, True):
        done = machine.run(
            *(sys.executable, "-I", HERE / "ordinary.py"), limited=limited, extra=variables
        )
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    bare, limited_results = results
    missing = [line.split()[0] for line, result in bare.items() if result is None]
    if missing:
        warnings.warn(f"NOT TESTED, not installed: {', '.join(missing)}", stacklevel=1)
    assert {line: r for line, r in limited_results.items() if r != bare[line]} == {}
    assert len(ordinary.COMMANDS) >= 100


@pytest.mark.parametrize("kind", ["address", "thread", "undefined", "leak", "memory"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_programs_with_sanitizers_run(
    machine: Machine, tmp_path: Path, compiler: str, kind: str
) -> None:
    built = tmp_path / "program"
    flags = ("-g", "-DPROGRAM", f"-fsanitize={kind}", "-pthread")
    command = [compiler, *flags, str(SOURCE), "-o", str(built), "-ldl"]
    if not shutil.which(compiler) or subprocess.run(command, check=False).returncode:
        skip(f"no {compiler} with -fsanitize={kind} here")
    # Memory that the loader holds at the end is not the program's leak.
    extra = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
    if machine.run(built, limited=False, extra=extra).stdout != PRINTED:
        skip(f"programs with -fsanitize={kind} of {compiler} do not run on this machine")
    done = machine.run(built, limited=True, extra=extra)
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED, "")


@pytest.mark.parametrize("setting", [{}, {"LD_BIND_NOW": "1"}, {"LD_DEBUG": "files"}])
def test_a_program_runs_beside_whatever_else_is_preloaded(
    machine: Machine,
    program: Path,
    variables: dict[str, str],
    setting: dict[str, str],
    tmp_path: Path,
) -> None:
    # The loader adds the number of the process. Where it may not write, it uses standard output.
    setting = {**setting, "LD_DEBUG_OUTPUT": str(tmp_path / "loader")}
    done = machine.run(program, limited=True, extra={**variables, **setting})
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr


@pytest.mark.parametrize("flags", [("gcc", "-static"), ("musl-gcc",), ("musl-gcc", "-static")])
def test_programs_that_the_preload_list_does_not_reach_run(
    machine: Machine, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    source, built = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); }\n', encoding="ascii")
    command = [*flags, str(source), "-o", str(built)]
    if not shutil.which(flags[0]) or subprocess.run(command, check=False).returncode:
        skip(f"no {' '.join(flags)} here")
    done = machine.run(built, limited=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


# In a mount namespace: nothing of it is seen outside, or stays.
SETUID = """
mount -t tmpfs -o mode=755 tmpfs /mnt
cp "$1"/* /usr/bin/id /mnt
chown 12345 /mnt/id
chmod 4755 /mnt/id
echo /mnt/libgpupool-limiter.so > "$2/ld.so.preload"
mount --bind "$2" /etc
exec /mnt/id -u
"""


def test_a_setuid_program_runs(machine: Machine) -> None:
    if os.geteuid() != 0:
        skip("only root can make a program that runs as another user")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", SETUID, "sh", machine.preload.parent, machine.etc],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "12345\n", "")
