"""What a hostile manifest tries in order to reach the machine: the five ways out that once worked
(D1 to D5 of issue 13), and their variations. Each goes through real containers."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS
from localkube.kubelet.launches import Launches
from tests.localkube.kubelet.world import (
    PATIENCE_S,
    World,
    container,
    is_ready,
    phase_is,
    settings,
    shell,
    world,
)

pytestmark = pytest.mark.usefixtures("_walled")
SECRET = "the key of the machine"


@pytest.fixture
async def _walled(tmp_path: Path) -> None:
    launches = Launches(tmp_path / "probe", isolate=True)
    try:
        if not await launches.namespaces():
            pytest.skip("this machine allows no user namespaces")
    finally:
        await launches.close()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of the machine that no container may reach."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "key").write_text(SECRET)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def mount(name: str, path: str, **more: object) -> Obj:
    return {"name": name, "mountPath": path, **more}


def first(script: str, *mounts: Obj) -> Obj:
    """An init container."""
    command = ["sh", "-c", script]
    return {"name": "i", "image": "busybox", "command": command, "volumeMounts": list(mounts)}


def untouched(outside: Path) -> bool:
    names = [path.name for path in outside.iterdir()]
    return names == ["key"] and (outside / "key").read_text() == SECRET


def has_settled(found: Obj) -> bool:
    """The container has run, or will not run as things are."""
    state = container(found).get("state", {})
    waiting = state.get("waiting", {}).get("reason")
    problems = ("CreateContainerConfigError", "CreateContainerError", "CrashLoopBackOff")
    phase = found.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed") or waiting in problems


async def said(here: World, obj: Obj) -> str:
    found = await here.run(obj, has_settled)
    try:
        return (await here.log(found)).decode()
    except Exception as error:  # noqa: BLE001  # a container that never ran has no log
        return f"no log: {error}"


READ_AND_WRITE = "ls -la /v; cat /v/key /v 2>/dev/null; echo taken > /v/key; echo taken > /v/new"


async def test_d1_a_host_path_that_becomes_a_link_leads_nowhere(data: Path, outside: Path) -> None:
    """Checked as a directory when the pod starts; an init container then puts a link there."""
    swap = f"rmdir /a/b && ln -s {outside} /a/b"
    async with world(data) as here:
        obj = shell(
            "p",
            READ_AND_WRITE,
            restartPolicy="Never",
            initContainers=[first(swap, mount("a", "/a"))],
            container={"volumeMounts": [mount("b", "/v")]},
            volumes=[
                {"name": "a", "hostPath": {"path": "/a"}},
                {"name": "b", "hostPath": {"path": "/a/b"}},
            ],
        )
        assert SECRET not in await said(here, obj)
    assert untouched(outside)


@pytest.mark.parametrize("kind", ["", "DirectoryOrCreate", "FileOrCreate"])
async def test_d1_no_host_path_is_made_through_a_link(data: Path, outside: Path, kind: str) -> None:
    async with world(data) as here:
        plant = shell(
            "plant",
            f"ln -s {outside} /a/link",
            restartPolicy="Never",
            container={"volumeMounts": [mount("a", "/a")]},
            volumes=[{"name": "a", "hostPath": {"path": "/a"}}],
        )
        await here.run(plant, phase_is("Succeeded"))
        obj = shell(
            "p",
            "true",
            container={"volumeMounts": [mount("b", "/v")]},
            volumes=[{"name": "b", "hostPath": {"path": "/a/link/deep/new", "type": kind}}],
        )
        await here.create(obj)
        event = await here.until_event("FailedMount", "p")
        assert "leads out of" in event["message"]
    assert untouched(outside)


@pytest.fixture
def before_launch(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """`swap` is called after everything was checked, and before the launcher is told to start the
    container named `p`."""
    hooks: dict[str, Any] = {}
    start = Launches.start

    async def swapped(self: Launches, launch: Any, descriptors: list[int]) -> int:
        if launch.view is not None and launch.view.hostname == "p":
            hooks["swap"]()
        return await start(self, launch, descriptors)

    monkeypatch.setattr(Launches, "start", swapped)
    return hooks


@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
async def test_d2_a_part_of_a_volume_that_is_swapped_after_its_check_leads_nowhere(
    data: Path, outside: Path, before_launch: dict[str, Any], field: str
) -> None:
    async with world(data) as here:
        obj = shell(
            "p",
            READ_AND_WRITE,
            restartPolicy="Never",
            container={"volumeMounts": [mount("v", "/v", **{field: "part"})]},
            volumes=[{"name": "v", "emptyDir": {}}],
        )

        def swap() -> None:
            (part,) = (data / "pods").glob("*/volumes/0/part")
            part.rename(part.with_name("aside"))
            part.symlink_to(outside)

        before_launch["swap"] = swap
        assert SECRET not in await said(here, obj)
    assert untouched(outside)


async def test_d2_a_link_inside_of_the_volume_is_still_followed(data: Path) -> None:
    async with world(data) as here:
        obj = shell(
            "p",
            "cat /v/file",
            restartPolicy="Never",
            initContainers=[
                first("mkdir /v/1; echo ours > /v/1/file; ln -s 1 /v/now", mount("v", "/v"))
            ],
            container={"volumeMounts": [mount("v", "/v", subPath="now")]},
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        assert await said(here, obj) == "ours\n"


REMOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
RDONLY, REMOUNT, BIND = 1, 32, 4096
for place in sys.argv[1:]:
    for flags in (REMOUNT | BIND, REMOUNT, 0):
        libc.mount(None, place.encode(), None, ctypes.c_ulong(flags), None)
    attributes = (ctypes.c_uint64 * 4)(0, RDONLY, 0, 0)
    libc.syscall(442, -100, place.encode(), 0x8000, ctypes.byref(attributes), 32)
    print("read-only" if os.statvfs(place).f_flag & RDONLY else f"WRITABLE {place}")
"""


async def test_d3_the_server_writes_through_no_link_in_a_volume(data: Path, outside: Path) -> None:
    quick = replace(settings(data), refresh_s=0.05)
    async with world(data, quick) as here:
        metadata = {"name": "conf", "namespace": "default"}
        await here.kube.create(CONFIG_MAPS, {"metadata": metadata, "data": {"key": "1", "b": "1"}})
        script = f"""
        python -c '{REMOUNT}' /v
        cd /v; rm -f key; ln -s {outside}/key key; ln -s {outside}/key ..b.new
        mv deep away; ln -s {outside} deep; echo ready; exec sleep 1000
        """
        items = [{"key": "key", "path": "key"}, {"key": "key", "path": "deep/key"}]
        obj = shell(
            "p",
            script,
            container={"volumeMounts": [mount("v", "/v")]},
            volumes=[
                {
                    "name": "v",
                    "configMap": {"name": "conf", "items": [*items, {"key": "b", "path": "b"}]},
                }
            ],
        )
        found = await here.run(obj)
        await here.logged(found, "ready")
        change = {"data": {"key": "taken", "b": "taken"}}
        await here.kube.patch(CONFIG_MAPS.path("default", "conf"), change)
        (volume,) = (data / "pods").glob("*/volumes/0")
        for _ in range(400):
            if (volume / "b").read_text() == "taken":
                break
            await here.output(found, "sleep 0.02")
        assert untouched(outside)
        assert not (volume / "key").is_symlink()
        assert (volume / "deep/key").read_text() == "taken"


async def test_d4_no_mount_point_is_made_through_a_link_in_a_volume(
    data: Path, outside: Path
) -> None:
    async with world(data) as here:
        obj = shell(
            "p",
            f"ls /v/in/made; ls {outside}; echo ran",
            restartPolicy="Never",
            initContainers=[first(f"ln -s {outside} /v/in", mount("v", "/v"))],
            container={"volumeMounts": [mount("v", "/v"), mount("w", "/v/in/made/deep")]},
            volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
        )
        await said(here, obj)
    assert untouched(outside)


async def test_d4_no_file_is_made_as_a_mount_point_through_a_link(
    data: Path, outside: Path
) -> None:
    async with world(data) as here:
        obj = shell(
            "p",
            "echo ran",
            restartPolicy="Never",
            initContainers=[first(f"ln -s {outside} /v/in", mount("v", "/v"))],
            container={
                "volumeMounts": [mount("v", "/v")],
                "terminationMessagePath": "/v/in/message",
            },
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        await said(here, obj)
    assert untouched(outside)


async def test_d5_what_is_mounted_read_only_stays_read_only(data: Path) -> None:
    places = ["/usr", "/etc", sys.prefix, "/proc/sys", "/sys/class", "/v"]
    async with world(data) as here:
        obj = shell(
            "p",
            f"python -c '{REMOUNT}' {' '.join(places)}",
            container={"volumeMounts": [mount("v", "/v", readOnly=True)]},
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        obj["spec"]["restartPolicy"] = "Never"
        assert (await said(here, obj)).split() == ["read-only"] * len(places)


async def test_d5_a_program_of_exec_remounts_nothing_either(data: Path) -> None:
    async with world(data) as here:
        found = await here.run(shell("p", "exec sleep 1000"), is_ready)
        code, text = await here.output(found, f"python -c '{REMOUNT}' /usr /etc")
        assert (code, text.split()) == (0, [b"read-only"] * 2)


async def test_links_in_place_of_the_kubelets_directories_are_replaced(
    data: Path, outside: Path
) -> None:
    """A pod with a hostPath can write the whole disk of its node."""
    plugins = "/var/lib/kubelet/device-plugins"
    async with world(data) as here:
        script = f"""
        cd /disk{plugins} && mkfifo kubelet_internal_checkpoint
        cd /disk/var/lib/kubelet && rm -rf pod-resources && ln -s {outside} pod-resources
        """
        obj = shell(
            "p",
            script,
            restartPolicy="Never",
            container={"volumeMounts": [mount("d", "/disk")]},
            volumes=[{"name": "d", "hostPath": {"path": "/"}}],
        )
        await here.run(obj, phase_is("Succeeded"))
    async with world(data) as here:  # a restart: the kubelet listens there again
        (disk,) = (data / "pods/nodes").iterdir()
        await here.run(shell("q", "exec sleep 1000"))
        async with asyncio.timeout(PATIENCE_S):
            for name in ("device-plugins", "pod-resources"):
                while not (disk / f"var/lib/kubelet/{name}/kubelet.sock").is_socket():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        assert not (disk / "var/lib/kubelet/pod-resources").is_symlink()
    assert untouched(outside)


async def test_a_link_that_one_pod_plants_in_a_shared_volume_leads_another_nowhere(
    data: Path, outside: Path
) -> None:
    disk = {"name": "d", "hostPath": {"path": "/shared"}}
    async with world(data) as here:
        plant = f"ln -s {outside} /d/part; ln -s {outside}/key /d/message"
        mounts = {"volumeMounts": [mount("d", "/d")]}
        one = shell("one", plant, restartPolicy="Never", container=mounts, volumes=[disk])
        await here.run(one, phase_is("Succeeded"))
        part = [mount("d", "/v", subPath="part")]
        await here.create(shell("two", "true", container={"volumeMounts": part}, volumes=[disk]))
        event = await here.until_event("Failed", "two")
        assert "subPath 'part' leads out of volume 'd'" in event["message"]
        three = shell(
            "three",
            "echo said > /d/message",
            restartPolicy="Never",
            container={**mounts, "terminationMessagePath": "/d/message"},
            volumes=[disk],
        )
        assert SECRET not in await said(here, three)
    assert untouched(outside)


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/self", "/proc/self/missing", "/v/link"])
async def test_nothing_is_mounted_over_the_root_or_in_proc(data: Path, path: str) -> None:
    """What the processes before the program read there must be true."""
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]
    async with world(data) as here:
        obj = shell(
            "p",
            "echo ran",
            restartPolicy="Never",
            initContainers=[first("ln -s /proc/self /v/link", mount("v", "/v"))],
            container={"volumeMounts": [mount("v", "/v"), mount("w", path)]},
            volumes=volumes,
        )
        found = await here.run(obj, has_settled)
        message = container(found)["state"]["terminated"]["message"]
    assert f"{path} cannot be mounted: it is " in message


async def test_a_volume_may_cover_devices_and_etc(data: Path) -> None:
    """As manifests of device plugins do."""
    mounts = [mount("d", "/dev"), mount("e", "/etc"), mount("e", "/usr/local")]
    volumes = [
        {"name": "d", "hostPath": {"path": "/dev"}},
        {"name": "e", "emptyDir": {}},
    ]
    async with world(data) as here:
        obj = shell(
            "p",
            "ls /dev /etc; read line; echo ran; exec sleep 1000",
            container={"volumeMounts": mounts},
            volumes=volumes,
        )
        found = await here.run(obj)
        assert (await here.logged(found, "ran")).split()[-1] == "ran"
        assert (await here.output(found, "read line; echo ran"))[1] == b"ran\n"
