"""A real node: container runtime and kubelet in namespaces of their own, on a loopback address.

The kubelet's directories are fixed (/var/lib/kubelet), and it writes settings of the whole machine
(/proc/sys). So both run behind overlays on /var, /run and /usr and with stand-ins for those
settings; nothing of the machine changes, and ending one process ends everything on the node. What a
device plugin needs is in `Node.plugins`, reachable from outside; what is put into `Node.driver` is
the node's GPU driver.

Needs root. Which flags it takes on a machine like this, and why, is from measurements: cgroup v1
(failCgroupV1), no right to lower oom scores (restrict_oom_score_adj), no network but the loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from testbed import build, debian, nvidia_runtime, unified_leaves
from testbed.containerd_runtime import Containerd
from testbed.node_runtime import NodeRuntime
from testbed.processes import Child, wait_until

_START_SECONDS = 60.0
_END_SECONDS = 20.0
_CGROUPS = Path("/sys/fs/cgroup")
# Where the node's programs write; what they write is gone with them.
_OVERLAID = ("var", "run", "usr")
# Where a node that was set up by hand has its driver; here it is what is in `Node.driver`.
DRIVER = "/usr/lib/nvidia-375"
# What a kubelet sets for the whole machine.
_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


class Node:
    """`name` is its address as well: a name that is one needs no DNS."""

    def __init__(
        self,
        name: str,
        folder: Path,
        labels: Mapping[str, str] | None = None,
        runtime: NodeRuntime | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.runtime = runtime or Containerd()
        self.labels = dict(labels or {})
        self._cgroup = f"gpupool-{os.getpid()}-{name.replace('.', '-')}"
        self._child: Child | None = None

    @property
    def plugins(self) -> Path:
        return self.folder / "kubelet" / "device-plugins"

    @property
    def driver(self) -> Path:
        return self.folder / "driver"

    @property
    def nri(self) -> Path:
        """The runtime's socket for plugins."""
        return self.folder / "nri.sock"

    @property
    def cdi(self) -> Path:
        """Where its CDI files are."""
        return self.folder / "cdi"

    @property
    def leaves(self) -> Path:
        """Where the cgroups v2 of its pods are, if they have such."""
        return unified_leaves.UNIFIED / self._cgroup

    @property
    def pods(self) -> Path:
        """With the volumes that the kubelet has mounted there, in the node's own namespace."""
        assert self._child is not None
        return Path(f"/proc/{self._child.pid}/root/var/lib/kubelet/pods")

    def start(self, kubeconfig: str, ca_file: Path, images: Path) -> None:
        """`images` is an archive of all the images that its pods may use."""
        # The runtime's folder first: that of the kubelet may have another containerd.
        programs = {**self.runtime.programs(), "kubelet": build.ensure("kubelet")}
        for part in ("kubelet", "driver", "sys", "cni", "cdi"):
            (self.folder / part).mkdir(parents=True)
        for part in _OVERLAID:
            for layer in ("up", "work"):
                (self.folder / f"{part}.{layer}").mkdir()
        self._make_cgroups()
        self._write_files(kubeconfig, ca_file)
        script = self.folder / "node.sh"
        script.write_text(_script(self, programs, images))
        command = ["unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child"]
        self._child = Child(
            f"node {self.name}", [*command, "/bin/sh", "-e", str(script)], self.folder / "node.log"
        )
        wait_until((self.plugins / "kubelet.sock").exists, self._child, _START_SECONDS)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(patience=1.0)
        _remove_cgroups(self._cgroup)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill_kubelet(self) -> None:
        """It is started again at once, as systemd would."""
        subprocess.run(["pkill", "-KILL", "-f", f"hostname-override={self.name}$"], check=True)

    def _make_cgroups(self) -> None:
        _remove_orphaned_cgroups()
        for controller in _CGROUPS.iterdir():
            if not (controller / "cgroup.procs").exists():
                continue
            made = controller / self._cgroup
            made.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (controller / name).exists():
                    (made / name).write_text((controller / name).read_text())

    def _write_files(self, kubeconfig: str, ca_file: Path) -> None:
        private = self.folder / "kubeconfig"
        private.touch(mode=0o600)
        private.write_text(kubeconfig)
        (self.folder / "kubelet.json").write_text(json.dumps(self._kubelet(ca_file)))
        runc = debian.ensure("runc")
        if self.runtime.has_leaves:
            runc = unified_leaves.install(self.folder, runc)
        nvidia = nvidia_runtime.install(self.folder, runc, self.cdi / "nvidia.json")
        self.runtime.write(self.folder, runc, nvidia)
        for name in ("nullnet", "loopback"):
            plugin = self.folder / "cni" / name
            plugin.write_text(_NULLNET.replace("BUSYBOX", str(debian.ensure("busybox"))))
            plugin.chmod(0o755)
        network = {"cniVersion": "0.4.0", "name": "null", "plugins": [{"type": "nullnet"}]}
        (self.folder / "cni" / "10-null.conflist").write_text(json.dumps(network))

    def _kubelet(self, ca_file: Path) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.name,
            "port": 10250,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(ca_file)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": f"unix://{self.runtime.socket(self.folder)}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "enforceNodeAllocatable": ["pods"],
            "makeIPTablesUtilChains": False,
            "nodeStatusUpdateFrequency": "1s",
            "syncFrequency": "5s",
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi"},
            "clusterDNS": ["127.0.0.1"],  # nobody there; without one, every pod gets a warning
            "resolvConf": "",
            "rotateCertificates": False,
            "maxPods": 250,
        }


def _script(node: Node, programs: Mapping[str, Path], images: Path) -> str:
    folder = node.folder
    labels = ",".join(f"{key}={value}" for key, value in sorted(node.labels.items()))
    stand_ins = "\n".join(
        f"cp /proc/sys/{name} {folder}/sys/{name.replace('/', '.')} && "
        f"mount --bind {folder}/sys/{name.replace('/', '.')} /proc/sys/{name}"
        for name in _SETTINGS
    )
    return f"""
mount --make-rprivate /
for part in {" ".join(_OVERLAID)}; do
  mount -t overlay overlay /$part \\
    -o lowerdir=/$part,upperdir={folder}/$part.up,workdir={folder}/$part.work
done
mkdir -p /var/lib/kubelet {DRIVER}
mount --bind {folder}/kubelet /var/lib/kubelet
mount --bind {folder}/driver {DRIVER}
mount --make-shared /var/lib/kubelet
{stand_ins}
export PATH={":".join(dict.fromkeys(str(each.parent) for each in programs.values()))}:$PATH
{node.runtime.script(folder, images)}
while true; do
  kubelet --config={folder}/kubelet.json --kubeconfig={folder}/kubeconfig \\
    --node-labels={labels} --hostname-override={node.name} >> {folder}/kubelet.log 2>&1 || true
  sleep 0.1
done
"""


# Pods have a loopback of their own and nothing else; the address is made up, and nobody asks it.
_NULLNET = """#!/bin/sh
case "$CNI_COMMAND" in
ADD)
  nsenter --net="$CNI_NETNS" BUSYBOX ip link set lo up
  a=$((0x$(echo "$CNI_CONTAINERID" | cut -c1-2)))
  b=$((0x$(echo "$CNI_CONTAINERID" | cut -c3-4)))
  echo '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"127.88.'$a.$b'/32"}]}' ;;
VERSION) echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.1","0.4.0"]}' ;;
esac
"""


def _remove_cgroups(name: str) -> None:
    """Processes that were killed hold theirs until the kernel is done with them."""
    deadline = time.monotonic() + _END_SECONDS
    while _left_of_cgroups(name) and time.monotonic() < deadline:
        time.sleep(0.05)


def _remove_orphaned_cgroups() -> None:
    """Of nodes whose test-bed was killed."""
    for name in {path.name for path in _CGROUPS.glob("*/gpupool-*-127-*")}:
        if not Path("/proc", name.split("-")[1]).exists():
            _remove_cgroups(name)


def _left_of_cgroups(name: str) -> bool:
    """Whether anything is left after a try to remove it."""
    tops = [controller / name for controller in _CGROUPS.iterdir() if (controller / name).exists()]
    for top in tops:
        folders = [top, *(path for path in top.rglob("*") if path.is_dir())]
        for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                folder.rmdir()
    return any(top.exists() for top in tops)
