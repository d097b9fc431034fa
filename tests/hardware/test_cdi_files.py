"""Specifications made from the driver's own files, and NVML loaded from its root."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.hardware.cdi import Specs, edits_for
from gpupool.hardware.cdi_files import DriverFiles, DriverRoot, driver_spec, read_driver_files
from gpupool.hardware.simdriver import create_node
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_state import Driver

UUID = "GPU-1ad9a4c5-0000-4000-8000-000000000001"
VERSION = "550.163.01"
LIBRARIES = {
    "libcuda.so": "libcuda.so.1",
    "libcuda.so.1": f"libcuda.so.{VERSION}",
    f"libcuda.so.{VERSION}": "",
    "libnvidia-nvvm.so.4": f"libnvidia-nvvm.so.{VERSION}",
    f"libnvidia-nvvm.so.{VERSION}": "",
    "libnvidia-container.so.1": "",  # of the toolkit, not of the driver
    "libcuda.so.535.54.03": "",  # left over from another driver
}


def files(**more: object) -> DriverFiles:
    found = {
        "version": VERSION,
        "minors": {UUID: 3},
        "libraries": {"usr/lib64": LIBRARIES},
        "programs": ["usr/bin/nvidia-smi"],
        "control": ["nvidiactl", "nvidia-uvm"],
    }
    return DriverFiles(**(found | more))  # type: ignore[arg-type]


def test_a_container_gets_the_cards_own_device_and_the_libraries_of_this_driver() -> None:
    edits = edits_for([driver_spec(files(), "/run/nvidia/driver")], UUID)
    assert edits is not None
    assert [node.path for node in edits.device_nodes] == [
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia3",
    ]
    mounts = {mount.container_path: mount.host_path for mount in edits.mounts}
    driver = f"/run/nvidia/driver/usr/lib64/libcuda.so.{VERSION}"
    for directory in ("/usr/lib64", "/usr/lib/x86_64-linux-gnu"):
        assert mounts[f"{directory}/libcuda.so.1"] == mounts[f"{directory}/libcuda.so"] == driver
        assert f"{directory}/libnvidia-nvvm.so.4" in mounts
    assert mounts["/usr/bin/nvidia-smi"] == "/run/nvidia/driver/usr/bin/nvidia-smi"
    assert not any("container" in path or "535" in path for path in mounts)
    assert all("ro" in mount.options for mount in edits.mounts)
    assert edits.hooks == ()


@given(st.dictionaries(st.from_regex(r"GPU-[0-9a-f]{8}", fullmatch=True), st.integers(0, 63)))
def test_a_card_brings_its_device_and_no_other(minors: dict[str, int]) -> None:
    spec = driver_spec(files(minors=minors), "/")
    for uuid, minor in minors.items():
        edits = edits_for([spec], uuid)
        assert edits is not None
        assert [n.path for n in edits.device_nodes[2:]] == [f"/dev/nvidia{minor}"]


def test_links_that_lead_in_a_circle_end() -> None:
    circle = {"libcuda.so.1": "libcuda.so", "libcuda.so": "libcuda.so.1"}
    names = {**circle, f"libcuda.so.{VERSION}": ""}
    assert driver_spec(files(libraries={"usr/lib": names}), "/").container_edits.mounts


def module(directory: Path, minor: str = "3") -> Path:
    card = directory / "module" / "gpus" / "0000:01:00.0"
    card.mkdir(parents=True)
    (card / "information").write_text(
        f"Model: \t\t Tesla\nGPU UUID: \t {UUID}\nDevice Minor: \t {minor}\n"
    )
    version = (
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {VERSION}  Tue Nov\nGCC version: 12\n"
    )
    (directory / "module" / "version").write_text(version)
    return directory / "module"


@pytest.mark.parametrize("words", ["", "for x86_64"])
def test_the_kernel_module_tells_version_and_devices(tmp_path: Path, words: str) -> None:
    found = module(tmp_path)
    text = (found / "version").read_text().replace("Module  ", f"Module {words} ")
    (found / "version").write_text(text)
    libraries = tmp_path / "root" / "usr" / "lib64"
    libraries.mkdir(parents=True)
    (libraries / f"libcuda.so.{VERSION}").touch()
    (libraries / "libcuda.so.1").symlink_to(f"libcuda.so.{VERSION}")
    read = read_driver_files(tmp_path / "root", tmp_path, found)
    assert (read.version, read.minors) == (VERSION, {UUID: 3})
    assert read.libraries == {
        "usr/lib64": {"libcuda.so.1": f"libcuda.so.{VERSION}", f"libcuda.so.{VERSION}": ""}
    }


def test_a_card_that_is_not_initialised_has_no_specification(tmp_path: Path) -> None:
    assert read_driver_files(tmp_path, tmp_path, module(tmp_path, "??")).minors == {}


def test_what_files_of_the_node_say_comes_first_and_a_new_driver_is_noticed(tmp_path: Path) -> None:
    found = module(tmp_path)
    cdi = tmp_path / "cdi"
    cdi.mkdir()
    root = DriverRoot("/", tmp_path, Path("/dev"), found)
    specs = Specs((cdi,), Path("/dev"), root.spec)
    made = root.spec()
    assert made is not None
    assert made is root.spec()
    assert specs.kind(UUID) == ""  # NVIDIA's plugin does not know what we make
    (found / "version").write_text("NVRM version: X  Kernel Module  600.1  Tue\n")
    assert root.spec() is not made
    (found / "version").unlink()
    assert root.spec() is None


def test_nvml_is_loaded_from_the_root_of_the_driver(tmp_path: Path) -> None:
    node = create_node(tmp_path / "node", "n", [card_profile("Tesla T4", 15109)], Driver())
    root = tmp_path / "root" / "usr" / "lib64"
    root.mkdir(parents=True)
    for name in ("libnvidia-ml.so.1",):
        (root / name).symlink_to(node.libraries / name)
    code = (
        "import sys, asyncio; from pathlib import Path\n"
        "from gpupool.hardware.cdi_files import DriverRoot\n"
        "from gpupool.hardware.nvml import NvmlDriver\n"
        "root = DriverRoot('/', Path(sys.argv[1]))\n"
        "print(asyncio.run(NvmlDriver(load=root.load_nvml).look()).cards[0].model)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "root")],
        env={"GPUPOOL_SIM_STATE": str(node.state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "Tesla T4\n", done.stderr
