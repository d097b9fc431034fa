"""CRI-O as the container runtime of a node, where this machine has it.

It is not built here: no registry that we use has all of its sources. Its programs are wanted on
PATH (crio, pinns, conmon) beside skopeo, which brings images into its store.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.build import BuildError
from testbed.images import PAUSE, names_in

_PROGRAMS = ("crio", "pinns", "conmon", "skopeo")
_TRUSTED = {"default": [{"type": "insecureAcceptAnything"}]}  # the images are our own

# CRI-O limits huge pages where the kernel can, also where no such hierarchy is mounted: then runc
# fails. So the kernel says that it cannot.
_ONLY_MOUNTED_CONTROLLERS = """\
if ! [ -e /sys/fs/cgroup/hugetlb ]; then
  sed 's/^\\(hugetlb.*\\)1$/\\10/' /proc/cgroups > FOLDER/sys/cgroups
  mount --bind FOLDER/sys/cgroups /proc/cgroups
fi"""


def missing_programs() -> list[str]:
    return [name for name in _PROGRAMS if shutil.which(name) is None]


@dataclass(frozen=True)
class Crio:
    has_leaves: bool = False

    def programs(self) -> dict[str, Path]:
        found = {name: shutil.which(name) for name in _PROGRAMS}
        missing = [name for name, path in found.items() if path is None]
        if missing:
            raise BuildError(f"CRI-O: wanted {', '.join(missing)} on PATH, found none")
        return {name: Path(path) for name, path in found.items() if path is not None}

    def socket(self, folder: Path) -> Path:
        return folder / "crio.sock"

    def write(self, folder: Path, runc: Path, nvidia: Path) -> None:
        (folder / "crio.conf").write_text(_config(folder, runc))
        (folder / "policy.json").write_text(json.dumps(_TRUSTED))

    def script(self, folder: Path, images: Path) -> str:
        store = f"containers-storage:[overlay@{folder}/crio+{folder}/crio.state]"
        copy = f"skopeo --policy={folder}/policy.json copy --quiet"
        copies = "\n".join(
            f"{copy} {shlex.quote(f'docker-archive:{images}:{name}')} "
            f"{shlex.quote(f'{store}{name}')} >> {folder}/import.log 2>&1"
            for name in names_in(images)
        )
        return f"""\
{copies}
{_ONLY_MOUNTED_CONTROLLERS.replace("FOLDER", str(folder))}
crio --config={folder}/crio.conf --config-dir= > {folder}/crio.log 2>&1 &
until [ -S {self.socket(folder)} ]; do sleep 0.05; done
"""


def _config(folder: Path, runc: Path) -> str:
    return f"""
[crio]
root = "{folder}/crio"
runroot = "{folder}/crio.state"
storage_driver = "overlay"
log_dir = "{folder}/crio.logs"
version_file = "{folder}/crio.version"
version_file_persist = ""
clean_shutdown_file = ""
[crio.api]
listen = "{folder}/crio.sock"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
default_runtime = "runc"
namespaces_dir = "{folder}/crio.namespaces"
container_exits_dir = "{folder}/crio.exits"
container_attach_socket_dir = "{folder}/crio.attach"
cdi_spec_dirs = ["{folder}/cdi"]
hooks_dir = []
[crio.runtime.runtimes.runc]
runtime_path = "{runc}"
runtime_root = "{folder}/crio.runc"
monitor_path = "{shutil.which("conmon")}"
monitor_cgroup = "pod"
[crio.image]
pause_image = "{PAUSE}"
pause_command = "/bin/sleep 2147483647"
signature_policy = "{folder}/policy.json"
signature_policy_dir = "{folder}/policies"
[crio.network]
network_dir = "{folder}/cni"
plugin_dirs = ["{folder}/cni"]
[crio.nri]
enable_nri = true
nri_listen = "{folder}/nri.sock"
nri_plugin_dir = "{folder}/nri/plugins"
nri_plugin_config_dir = "{folder}/nri/conf.d"
"""
