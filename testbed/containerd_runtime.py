"""containerd 1.7 or 2 as the container runtime of a node, and how it brings cards into containers.

On a node that a GPU Operator of today has set up, containerd knows NVIDIA's runtime by a name that
a runtime class refers to, and runs everything else by runc. On an older one, NVIDIA's runtime is
the default. NRI is on: in containerd 2 as it comes, in 1.7 because it is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed import build
from testbed.images import PAUSE

_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
NVIDIA = "nvidia"  # the name of the handler


@dataclass(frozen=True)
class Containerd:
    is_v2: bool = False
    has_nvidia: bool = False  # knows NVIDIA's runtime by name
    runs_nvidia: bool = False  # and runs everything by it
    has_leaves: bool = False  # containers have cgroups v2 (`unified_leaves.py`)

    def programs(self) -> dict[str, Path]:
        folder = "containerd2/" if self.is_v2 else ""
        return {name: build.ensure(f"{folder}{name}") for name in _PROGRAMS}

    def socket(self, folder: Path) -> Path:
        return folder / "containerd.sock"

    def write(self, folder: Path, runc: Path, nvidia: Path) -> None:
        (folder / "containerd.toml").write_text(self.config(folder, runc, nvidia))

    def script(self, folder: Path, images: Path) -> str:
        socket = self.socket(folder)
        return f"""\
containerd -c {folder}/containerd.toml > {folder}/containerd.log 2>&1 &
until ctr -a {socket} version > /dev/null 2>&1; do sleep 0.05; done
ctr -a {socket} -n k8s.io images import {images} > {folder}/import.log 2>&1
"""

    def config(self, folder: Path, runc: Path, nvidia: Path) -> str:
        runtimes = {"runc": runc}
        if self.has_nvidia or self.runs_nvidia:
            runtimes[NVIDIA] = nvidia
        default = NVIDIA if self.runs_nvidia else "runc"
        write = _version_3 if self.is_v2 else _version_2
        return write(folder, runtimes, default)


def _version_2(folder: Path, runtimes: dict[str, Path], default: str) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""
version = 2
{_places(folder)}
[{cri}]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
{_network(cri, folder)}
{_runtimes(cri, runtimes, default)}
[plugins."io.containerd.nri.v1.nri"]
  disable = false
{_nri(folder)}
"""


def _version_3(folder: Path, runtimes: dict[str, Path], default: str) -> str:
    cri = 'plugins."io.containerd.cri.v1.runtime"'
    return f"""
version = 3
{_places(folder)}
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{PAUSE}"
[{cri}]
  restrict_oom_score_adj = true
{_network(cri, folder)}
{_runtimes(cri, runtimes, default)}
[plugins."io.containerd.nri.v1.nri"]
{_nri(folder)}
"""


def _places(folder: Path) -> str:
    return f"""\
root = "{folder}/containerd"
state = "{folder}/containerd.state"
[grpc]
  address = "{folder}/containerd.sock"
"""


def _network(cri: str, folder: Path) -> str:
    return f"""\
[{cri}.cni]
  bin_dir = "{folder}/cni"
  conf_dir = "{folder}/cni"
"""


def _runtimes(cri: str, runtimes: dict[str, Path], default: str) -> str:
    text = f'[{cri}.containerd]\n  default_runtime_name = "{default}"\n'
    for name, program in runtimes.items():
        text += f"""\
[{cri}.containerd.runtimes.{name}]
  runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.{name}.options]
  BinaryName = "{program}"
"""
    return text


def _nri(folder: Path) -> str:
    return f"""\
  socket_path = "{folder}/nri.sock"
  plugin_path = "{folder}/nri/plugins"
  plugin_config_path = "{folder}/nri/conf.d"
"""
