"""Installations of the limiter: complete, named by their content, never changed."""

import os
import stat
from pathlib import Path

import pytest

from gpupool.contract.names import LIMITER_DIRECTORY
from gpupool.hardware.limiter import (
    LIBRARY,
    STAND_INS,
    LimiterError,
    LimiterFiles,
    NotBuilt,
    Settings,
    install,
)


def installed(root: Path, settings: Settings) -> LimiterFiles:
    try:
        return install(root, settings)
    except NotBuilt as error:
        pytest.skip(str(error))


def test_an_installation_is_complete_and_read_only(tmp_path: Path) -> None:
    files = installed(tmp_path, Settings(driver="/usr/lib/driver", context_mib=312))
    names = {LIBRARY, *STAND_INS, "limiter.conf", "ld.so.preload"}
    assert {path.name for path in files.directory.iterdir()} == names
    assert not any(path.stat().st_mode & stat.S_IWUSR for path in files.directory.iterdir())
    assert (files.directory / "limiter.conf").read_text(encoding="ascii").splitlines() == [
        "limits=/etc/gpupool/limits",
        "limits_mount=/etc/gpupool",
        "root=/",
        "region=/run/gpupool/region-1",
        "cuda=/usr/lib/driver/libcuda.so.1",
        "nvml=/usr/lib/driver/libnvidia-ml.so.1",
        "context_mib=312",
    ]
    assert [path.name for path in tmp_path.iterdir()] == [files.directory.name]


def test_containers_find_it_in_one_place(tmp_path: Path) -> None:
    files = installed(tmp_path, Settings())
    assert files.mounts == (
        (str(files.directory), LIMITER_DIRECTORY),
        (str(files.directory / "ld.so.preload"), "/etc/ld.so.preload"),
    )
    preload = (files.directory / "ld.so.preload").read_text(encoding="ascii")
    assert preload == f"{LIMITER_DIRECTORY}/{LIBRARY}\n"


def test_without_a_driver_there_are_no_stand_ins(tmp_path: Path) -> None:
    files = installed(tmp_path, Settings())
    assert not any((files.directory / name).exists() for name in STAND_INS)


def test_the_same_settings_give_the_same_installation(tmp_path: Path) -> None:
    first = installed(tmp_path, Settings(context_mib=1))
    before = (first.directory / LIBRARY).stat()
    assert installed(tmp_path, Settings(context_mib=1)) == first
    assert (first.directory / LIBRARY).stat() == before


def test_other_settings_give_another_installation_and_keep_the_first(tmp_path: Path) -> None:
    first = installed(tmp_path, Settings(context_mib=1))
    second = installed(tmp_path, Settings(context_mib=2))
    assert first.directory != second.directory
    assert "context_mib=1" in (first.directory / "limiter.conf").read_text(encoding="ascii")


def test_a_stand_in_depends_on_the_drivers_file(tmp_path: Path) -> None:
    files = installed(tmp_path, Settings(driver="/usr/lib/driver"))
    for name in STAND_INS:
        content = (files.directory / name).read_bytes()
        assert f"/usr/lib/driver/{name}\0".encode() in content
        assert b"/gpupool-driver" not in content


@pytest.mark.parametrize("driver", ["lib", "/" + "x" * 300, "/a\nlimits=/etc/motd"])
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, driver: str) -> None:
    installed(tmp_path, Settings())
    with pytest.raises(LimiterError, match="wanted an absolute path"):
        install(tmp_path, Settings(driver=driver))


def test_processes_outside_of_containers_get_the_limiter_by_variables(tmp_path: Path) -> None:
    files = installed(tmp_path, Settings(directory=""))
    own = str(files.directory)
    assert files.variables({}) == {"LD_PRELOAD": f"{own}/{LIBRARY}", "LD_LIBRARY_PATH": own}
    found = files.variables({"LD_PRELOAD": "/a.so", "LD_LIBRARY_PATH": "/b"})
    assert found == {
        "LD_PRELOAD": f"{own}/{LIBRARY}{os.pathsep}/a.so",
        "LD_LIBRARY_PATH": f"{own}{os.pathsep}/b",
    }
