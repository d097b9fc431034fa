"""A wheel contains the compiled native parts."""

import os
import platform
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_has_its_platform_tag_and_contains_the_native_parts(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    environment = {key: value for key, value in os.environ.items() if key != "GPUPOOL_NATIVE"}
    subprocess.run([*pip, "-w", str(tmp_path), str(ROOT)], check=True, env=environment)
    (wheel,) = tmp_path.glob("*.whl")
    machine = platform.machine()
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{machine}.whl")
    with zipfile.ZipFile(wheel) as archive:
        native = {
            info.filename.removeprefix("gpupool/_native/"): info.external_attr >> 16
            for info in archive.infolist()
            if "/_native/" in info.filename
        }
    assert {f"{machine}/bin/nvidia-smi", f"{machine}/lib/libcuda.so.1"} <= set(native)
    assert f"{machine}/engine/libgpupool-engine.so" in native
    assert {name.partition("/")[0] for name in native} == {machine}
    assert native[f"{machine}/bin/nvidia-smi"] & stat.S_IXUSR
