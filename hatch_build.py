"""Builds the native parts when a wheel is made, also the one of an editable install.

Wheels are for any machine, so ziglang compiles them; an editable install is for this one.

GPUPOOL_NATIVE=all builds them for every architecture; otherwise it is this machine's. On other
systems than Linux there are none, and the wheel is pure Python.
"""

import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def native_build() -> ModuleType:
    """native/build.py: the build runs where this directory is not on the path."""
    path = Path(__file__).resolve().parent / "native" / "build.py"
    spec = importlib.util.spec_from_file_location("gpupool_native_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # a plugin of hatchling
    """Hatchling finds it by its base class."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        native = native_build()
        if self.target_name != "wheel" or not native.is_possible():
            return
        everything = os.environ.get("GPUPOOL_NATIVE") == "all"
        chosen = native.ARCHITECTURES if everything else (platform.machine(),)
        for architecture in chosen:
            made = native.build(architecture, shipped=version != "editable")
            place = made.relative_to(self.root)
            # Not in git.
            build_data["artifacts"] += [
                f"{place}/{part}" for part in ("lib/*", "bin/*", "limiter/lib*", "engine/*")
            ]
        glibc = native.GLIBC.replace(".", "_")
        tags = ".".join(f"manylinux_{glibc}_{architecture}" for architecture in chosen)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tags}"
