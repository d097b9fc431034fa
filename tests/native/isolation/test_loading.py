"""Programs that load the driver in unusual ways, and drivers that load others."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpupool.hardware.limiter import Settings, install
from tests.native.isolation.limited import BOTH, PRELOAD, WAYS, Container, make_container
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
HELD = "3226 2\n"
SHARED = ("-shared", "-fPIC", "-Wl,--no-as-needed")
# Memory that was freed is overwritten, so that its use shows.
PERTURBED = {"MALLOC_PERTURB_": "165"}


@pytest.fixture
def preloaded(tmp_path: Path) -> Container:
    return make_container(tmp_path, way=PRELOAD)


@pytest.fixture(scope="module")
def loading(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compile_c(HERE / "loading.c", program := tmp_path_factory.mktemp("loading") / "loading")
    return program


def driver_of(container: Container) -> Path:
    return container.node.libraries / "libcuda.so.1"


def image_driver(container: Container) -> Path:
    """A second driver on the same cards, in a directory of its own, as cuda-compat is."""
    place = container.node.libraries.with_name("compat")
    shutil.copytree(container.node.libraries, place)
    return place / "libcuda.so.1"


def outer_driver(container: Container, *flags: str) -> Path:
    """A driver in front of the container's, which is then its inner driver."""
    inner = container.node.libraries.with_name("inner") / "libcuda.so.1.1"
    shutil.copytree(container.node.libraries, inner.parent)
    (inner.parent / "libcuda.so.1").rename(inner)
    outer = driver_of(container)
    outer.unlink()
    compile_c(
        *(HERE / "outer_driver.c", outer, *SHARED, "-Wl,-soname,libcuda.so.1"),
        *(f'-DINNER="{inner}"', *flags),
    )
    return outer


def linked_with(driver: Path, *flags: str) -> tuple[Path, Path]:
    """A library that is linked with the driver, and a program that is linked with the library."""
    library, program = driver.with_name("liblinked.so"), driver.with_name("linked-program")
    compile_c(HERE / "linked.c", library, *SHARED, str(driver), "-Wl,-soname,liblinked.so", *flags)
    compile_c(HERE / "linked_program.c", program, str(library), f"-Wl,-rpath-link,{driver.parent}")
    return library, program


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_program_that_is_linked_with_a_driver_of_its_image_uses_only_that(
    tmp_path: Path, way: str
) -> None:
    container = make_container(tmp_path, way=way)
    _, program = linked_with(compat := image_driver(container))
    extra = {"LD_LIBRARY_PATH": str(compat.parent)}
    done = container.run(program, extra=extra)
    assert done.stdout == HELD, done.stderr


def test_a_library_that_is_linked_with_a_driver_of_its_image_uses_only_that(
    preloaded: Container, loading: Path, tmp_path: Path
) -> None:
    library, _ = linked_with(compat := image_driver(preloaded))
    extra = {"LD_LIBRARY_PATH": str(compat.parent)}
    compile_c(HERE / "bypass.c", bypass := tmp_path / "bypass")
    assert preloaded.run(bypass, "linked", library, extra=extra).stdout == HELD


@pytest.mark.parametrize("way", WAYS)
def test_the_loader_of_the_image_may_say_where_the_driver_is(
    tmp_path: Path, loading: Path, way: str
) -> None:
    """$LIB is lib64 in an image like Red Hat, and lib/x86_64-linux-gnu in one like Debian."""
    plain = make_container(tmp_path, way=way)
    (tmp_path / "usr" / "lib").mkdir(parents=True)
    for name in ("lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        (tmp_path / "usr" / name).symlink_to(plain.node.libraries)
    settings = Settings(
        driver=f"{tmp_path}/usr/$LIB",
        limits=str(plain.limits),
        limits_mount="",
        region=str(plain.region),
        directory="",
    )
    container = replace(plain, files=install(tmp_path / "limiter", settings))
    done = container.run(loading, "open", "libcuda.so.1")
    assert done.stdout == HELD, done.stderr


def test_a_driver_is_known_by_its_soname_whatever_its_file_is_called(
    preloaded: Container, loading: Path
) -> None:
    renamed = driver_of(preloaded).with_name("renamed.so")
    shutil.copy(driver_of(preloaded), renamed)
    assert preloaded.run(loading, "open", renamed).stdout == HELD


@pytest.mark.parametrize("way", [PRELOAD, BOTH])
def test_a_program_may_ask_two_drivers_in_turns(tmp_path: Path, loading: Path, way: str) -> None:
    container = make_container(tmp_path, way=way)
    # By its name it is the stand-in, by its path the driver.
    first = "libcuda.so.1" if way == BOTH else driver_of(container)
    done = container.run(loading, "turns", first, image_driver(container))
    assert done.stdout == HELD * 2, done.stderr


def test_a_program_may_close_the_handle_that_it_has_asked(
    preloaded: Container, loading: Path
) -> None:
    library, _ = linked_with(driver_of(preloaded))
    done = preloaded.run(loading, "close", driver_of(preloaded), library, extra=PERTURBED)
    assert (done.returncode, done.stdout) == (0, HELD), done.stderr


def test_a_program_may_close_a_driver_in_another_namespace(
    preloaded: Container, loading: Path
) -> None:
    done = preloaded.run(loading, "close-namespace", driver_of(preloaded), extra=PERTURBED)
    assert (done.returncode, done.stdout) == (0, HELD), done.stderr


@pytest.mark.parametrize("when", [(), ("-DEARLY",)], ids=["late", "early"])
def test_a_driver_that_looks_up_an_inner_driver_gets_its_own_functions(
    preloaded: Container, loading: Path, when: tuple[str, ...]
) -> None:
    done = preloaded.run(loading, "open", outer_driver(preloaded, *when))
    assert (done.returncode, done.stdout) == (0, HELD), done.stderr


@pytest.mark.parametrize("when", [(), ("-DEARLY",)], ids=["late", "early"])
def test_a_program_that_is_linked_with_such_a_driver_is_held(
    preloaded: Container, when: tuple[str, ...]
) -> None:
    _, program = linked_with(outer_driver(preloaded, *when))
    done = preloaded.run(program)
    assert (done.returncode, done.stdout) == (0, HELD), done.stderr


def test_a_function_that_the_driver_does_not_have_is_an_error_for_the_program(
    preloaded: Container, loading: Path
) -> None:
    outer = outer_driver(preloaded)
    done = preloaded.run(loading, "missing", outer)
    assert done.stdout == f"{outer}: undefined symbol: cuMemAllocAsync\n"


def test_a_library_behind_the_limiter_that_asks_for_the_next_function_is_held(
    tmp_path: Path,
) -> None:
    for way in WAYS:
        container = make_container(tmp_path / way, way=way)
        _, program = linked_with(driver_of(container), "-DBY_NEXT")
        done = container.run(program)
        assert (done.returncode, done.stdout) == (0, HELD), done.stderr


def test_a_function_at_an_unknown_address_is_found_by_its_name(
    preloaded: Container, loading: Path
) -> None:
    outer = outer_driver(preloaded)
    assert preloaded.run(loading, "ask", outer, "12040").stdout == HELD


def test_a_version_of_a_hooked_function_that_nobody_knows_yet_is_refused(
    preloaded: Container, loading: Path
) -> None:
    outer = outer_driver(preloaded)
    assert preloaded.run(loading, "ask", outer, "99000").stdout == "cuMemAlloc 500 1\n"


def test_a_constructor_may_call_the_driver_beside_another_thread(
    preloaded: Container, tmp_path: Path
) -> None:
    program, library = tmp_path / "constructor", tmp_path / "libconstructor.so"
    drivers = [str(preloaded.node.libraries / f"lib{name}.so.1") for name in ("cuda", "nvidia-ml")]
    compile_c(HERE / "constructor.c", program, "-rdynamic", "-lpthread", *drivers)
    compile_c(HERE / "constructor.c", library, "-DLIBRARY", "-shared", "-fPIC")
    done = preloaded.run(program, library)
    assert done.stdout == "constructor 0\nfirst thread 0\n", done.stderr
