"""Ways to get past the limiter. Each is held to the limit, or documented in docs/limits.md."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from native import build
from tests.native.isolation.limited import BOTH, PRELOAD, STAND_IN, WAYS, Container, make_container
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
HELD = "3226 2\n"
PAST = "16130 0\n"  # the whole card; documented in docs/limits.md
NOTHING = "nothing found\n"
SBIN = "/usr/sbin:/sbin"

# What the program does (bypass.c), and with which file (name: libcuda.so.1; driver: the path of the
# driver's library; library: one that is linked with the driver). Then what it prints when the
# limiter is loaded both ways, by preload alone, and by stand-ins alone.
HOLDS = {
    ("dlopen", "name"): (HELD, HELD, HELD),
    ("deepbind", "name"): (HELD, HELD, HELD),
    ("default", "name"): (HELD, HELD, HELD),
    ("asked", "name"): (HELD, HELD, HELD),
    ("dlmopen", "name"): (HELD, HELD, HELD),
    ("dlvsym", "name"): (NOTHING, NOTHING, NOTHING),
    ("linked", "library"): (HELD, HELD, HELD),
    ("linked-deepbind", "library"): (HELD, PAST, HELD),
    ("linked-dlmopen", "library"): (HELD, PAST, HELD),
    ("dlopen", "driver"): (HELD, HELD, PAST),
    ("asked", "driver"): (HELD, HELD, PAST),
    ("by-hand", "driver"): (PAST, PAST, PAST),
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bypass")
    compile_c(HERE / "bypass.c", place / "bypass")
    driver = build.TARGET / os.uname().machine / "lib" / "libcuda.so.1"
    flags = ("-shared", "-fPIC", "-Wl,--no-as-needed", str(driver))
    compile_c(HERE / "linked.c", place / "liblinked.so", *flags)
    return place


def file_words(container: Container, tools: Path, file: str) -> list[str]:
    places = {
        "library": tools / "liblinked.so",
        "driver": container.node.libraries / "libcuda.so.1",
    }
    return [str(places[file])] if file in places else []


@pytest.mark.parametrize("loaded", WAYS)
@pytest.mark.parametrize(("way", "file"), HOLDS)
def test_a_bypass_is_held_to_the_limit_or_documented(
    tmp_path: Path, tools: Path, way: str, file: str, loaded: str
) -> None:
    container = make_container(tmp_path, way=loaded)
    done = container.run(tools / "bypass", way, *file_words(container, tools, file))
    expected = HOLDS[way, file][(BOTH, PRELOAD, STAND_IN).index(loaded)]
    assert done.stdout == expected, done.stderr


def test_stand_ins_hold_a_static_program_to_the_limit(tmp_path: Path) -> None:
    program = tmp_path / "static"
    command = ["gcc", "-static", str(HERE / "bypass.c"), "-o", str(program), "-ldl"]
    if (
        not shutil.which("gcc")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("no compiler here makes static programs with the C library of this machine")
    for loaded, expected in zip(WAYS, (HELD, PAST, HELD), strict=True):
        container = make_container(tmp_path / loaded, way=loaded)
        assert container.run(program, "dlopen").stdout == expected


def run_with_etc(etc: Path, script: str) -> str:
    """What the script prints where this directory is /etc, in which the loader has its settings."""
    whole = f"mount --bind {etc} /etc && {script}"
    command = ["unshare", "-Urm", "sh", "-c", whole]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets nobody make namespaces")
    assert done.stdout, done.stderr
    return done.stdout


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (made := tmp_path / "etc").mkdir()
    return made


def test_ld_so_preload_holds_a_program_with_an_empty_environment(
    tmp_path: Path, etc: Path, tools: Path
) -> None:
    container = make_container(tmp_path, way=PRELOAD)
    shutil.copy(container.files.directory / "ld.so.preload", etc)
    driver = container.node.libraries / "libcuda.so.1"
    assert run_with_etc(etc, f"env -i {tools / 'bypass'} dlopen {driver}") == HELD


@pytest.mark.skipif(not shutil.which("ldconfig", path=SBIN), reason="there is no ldconfig here")
def test_stand_ins_in_ld_so_conf_hold_a_program_with_an_empty_environment(
    tmp_path: Path, etc: Path, tools: Path
) -> None:
    container = make_container(tmp_path, way=STAND_IN)
    known = f"{container.files.directory}\n{container.node.libraries}\n"
    (etc / "ld.so.conf").write_text(known, encoding="utf-8")
    ldconfig = f"PATH={SBIN} ldconfig -X 2>/dev/null"
    assert run_with_etc(etc, f"{ldconfig}; env -i {tools / 'bypass'} dlopen") == HELD
