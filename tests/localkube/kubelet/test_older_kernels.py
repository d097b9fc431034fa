"""Containers on kernels without openat2, open_tree, mount_setattr or Landlock: the same wall, made
in steps. The calls are taken away from the launcher by giving them numbers that no kernel has."""

import subprocess
import sys
from pathlib import Path

import pytest

from localkube.kubelet.launches import Launches
from localkube.kubelet.node_files import make_private
from tests.localkube.kubelet.world import phase_is, shell, world

ROOT = Path(__file__).parents[3]
OLDER = """
import sys
from localkube.kubelet import beneath, confine, launcher, mounts
for name in sys.argv.pop().split(","):
    module, _, call = name.partition(".")
    place = {"beneath": beneath, "confine": confine, "mounts": mounts}[module]
    assert hasattr(place, call)
    setattr(place, call, 9999)
launcher.main()
"""
KERNELS = {
    "6.11": "confine._SYS_LANDLOCK_CREATE_RULESET",
    "5.11": "mounts._SYS_MOUNT_SETATTR,confine._SYS_LANDLOCK_CREATE_RULESET",
    "5.1": "beneath._SYS_OPENAT2,mounts._SYS_OPEN_TREE,mounts._SYS_MOUNT_SETATTR,"
    "confine._SYS_LANDLOCK_CREATE_RULESET",
}
READ_ONLY = """python -c 'import os, sys
print([p for p in sys.argv[1:] if not os.statvfs(p).f_flag & os.ST_RDONLY])' /usr /etc /proc/sys /r
"""


@pytest.fixture(params=KERNELS)
def older(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = KERNELS[request.param]

    def spawn(self: Launches, descriptor: int) -> subprocess.Popen[bytes]:
        directory = make_private(self._directory)
        return subprocess.Popen(
            [sys.executable, "-c", OLDER, str(descriptor), str(directory), missing],
            stdin=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            env={"PYTHONPATH": str(ROOT / "src")},
            cwd="/",
            start_new_session=True,
        )

    monkeypatch.setattr(Launches, "_spawn", spawn)


@pytest.mark.usefixtures("older")
async def test_a_container_has_its_view_and_nothing_more(tmp_path: Path) -> None:
    mounts = [
        {"name": "v", "mountPath": "/v"},
        {"name": "v", "mountPath": "/r", "readOnly": True},
        {"name": "v", "mountPath": "/w", "subPath": "now"},
        {"name": "w", "mountPath": "/v/out/made"},
    ]
    plant = "mkdir /v/1; echo ours > /v/1/f; ln -s 1 /v/now; ln -s /tmp /v/out"
    first = {"name": "i", "image": "busybox", "command": ["sh", "-c", plant]}
    async with world(tmp_path) as here:
        if not await here.fleet.mounts_into_containers():
            pytest.skip("this machine allows no user namespaces")
        found = await here.run(
            shell(
                "p",
                f"cat /w/f; {READ_ONLY}ls /tmp | grep made; grep -c ^CapEff:.*0$ /proc/self/status",
                restartPolicy="Never",
                initContainers=[{**first, "volumeMounts": mounts[:1]}],
                container={"volumeMounts": mounts},
                volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
            ),
            phase_is("Succeeded"),
        )
        said = (await here.log(found)).decode().split()
    assert said == ["ours", "[]", "made", "1"]
