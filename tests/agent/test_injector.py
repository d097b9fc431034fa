"""What the agent answers when the container runtime asks about a container."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpupool.agent.injection import Injection
from gpupool.agent.injector import Injector
from gpupool.agent.plugin import HOLD_BACK
from gpupool.agent.settings import AgentSettings
from gpupool.agent.wall_plan import Shares
from gpupool.agent.walls import WallRefused
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION, GROUP_LIMITS, HELD_BACK
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.hardware.cdi import Specs
from kubeclient.kubeletapi.messages import Mount
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Refused

FIRST, SECOND = (f"GPU-1ad9a4c5-0000-4000-8000-00000000000{n}" for n in (1, 2))
HELD = nri.Mount(HELD_BACK, "bind", "/dev/null", ("rbind", "ro"))
LIMITER = Mount("/usr/local/gpupool", "/var/lib/gpupool/limiter/1", read_only=True)
SPEC = f"""
kind: nvidia.com/gpu
devices:
  - name: {FIRST}
    containerEdits: {{deviceNodes: [{{path: /dev/nvidia0, type: c, major: 195, minor: 0}}]}}
  - name: {SECOND}
    containerEdits: {{deviceNodes: [{{path: /dev/nvidia1, type: c, major: 195, minor: 1}}]}}
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void, NVIDIA_CTK=1]
  deviceNodes: [{{path: /dev/nvidiactl, type: c, major: 195, minor: 255, fileMode: 438}}]
  hooks: [{{hookName: createContainer, path: /usr/bin/hook, args: [hook, ldcache], timeout: 5}}]
  mounts:
    - {{hostPath: /lib/libcuda.so.1, containerPath: /usr/lib/libcuda.so.1, options: [ro, bind]}}
"""


@dataclass
class Wall:
    """The driver's limits, as they were set and taken away."""

    calls: list[tuple[str, str, Shares]] = field(default_factory=list)
    broken: str = ""

    async def hold(self, container: str, shares: Shares) -> None:
        if self.broken:
            raise WallRefused(self.broken)
        self.calls.append(("hold", container, shares))

    async def release(self, container: str, shares: Shares) -> None:
        self.calls.append(("release", container, shares))


def share(uuid: str, index: int = 0) -> CardShare:
    return CardShare(uuid, index, units=3, memory_mib=3226, card_units=15)


def pod(*containers: ContainerGpus) -> nri.PodSandbox:
    text = allocation_text(Allocation(containers))
    return nri.PodSandbox("s", "train", "u", "ml", annotations={ANNOTATION_ALLOCATION: text})


def container(name: str = "main", *mounts: nri.Mount) -> nri.Container:
    return nri.Container("c", "s", name, mounts=mounts)


@pytest.fixture
def injector(tmp_path: Path) -> Injector:
    (tmp_path / "nvidia.yaml").write_text(SPEC)
    return Injector("gpu-1", Specs((tmp_path,)), lambda: (LIMITER,), Wall(), lambda is_asked: None)


async def test_a_container_gets_its_card_and_is_no_longer_held_back(injector: Injector) -> None:
    whole = ContainerGpus("main", (share(SECOND, 1),), Isolation.WHOLE)
    found = await injector.create(pod(whole), container("main", HELD))
    assert found == nri.ContainerAdjustment(
        mounts=(
            nri.Mount(f"-{HELD_BACK}"),
            nri.Mount("/usr/lib/libcuda.so.1", "bind", "/lib/libcuda.so.1", ("ro", "bind")),
        ),
        env=(nri.KeyValue("NVIDIA_CTK", "1"),),
        hooks=nri.Hooks(
            create_container=(
                nri.Hook("/usr/bin/hook", ("hook", "ldcache"), (), nri.OptionalNumber(5)),
            )
        ),
        linux=nri.LinuxContainerAdjustment(
            (
                nri.LinuxDevice("/dev/nvidiactl", "c", 195, 255, nri.OptionalNumber(438)),
                nri.LinuxDevice("/dev/nvidia1", "c", 195, 1),
            )
        ),
    )


async def test_an_isolated_share_also_gets_the_limiter(injector: Injector) -> None:
    isolated = ContainerGpus("main", (share(FIRST),), Isolation.LIMIT)
    found = await injector.create(pod(isolated), container("main", HELD))
    assert found
    assert found.mounts[-1] == nri.Mount(
        "/usr/local/gpupool", "bind", "/var/lib/gpupool/limiter/1", ("rbind", "rprivate", "ro")
    )


async def test_each_container_of_a_pod_gets_its_own_card(injector: Injector) -> None:
    whose = pod(
        ContainerGpus("a", (share(FIRST),), Isolation.WHOLE),
        ContainerGpus("b", (share(SECOND, 1),), Isolation.WHOLE),
    )
    for name, path in (("a", "/dev/nvidia0"), ("b", "/dev/nvidia1")):
        found = await injector.create(whose, container(name, HELD))
        assert found
        assert found.linux
        assert [device.path for device in found.linux.devices] == ["/dev/nvidiactl", path]


async def test_a_container_without_devices_of_the_kubelet_is_left_alone(injector: Injector) -> None:
    """Also if its pod says that it has a card: whoever wrote that, the kubelet knows nothing."""
    whole = ContainerGpus("main", (share(FIRST),), Isolation.WHOLE)
    assert await injector.create(pod(whole), container("main")) is None


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({}, "pod ml/train, container main: gpupool on node gpu-1 cannot read its allocation"),
        ({ANNOTATION_ALLOCATION: "{"}, "cannot read its allocation"),
        ({ANNOTATION_ALLOCATION: '{"version": 9}'}, "version 9"),
        (
            {ANNOTATION_ALLOCATION: '{"version": 1, "containers": {}}'},
            "has no card for it, although the kubelet of node gpu-1 has given it one",
        ),
    ],
)
async def test_a_container_whose_card_is_not_known_is_refused_in_words(
    injector: Injector, annotations: dict[str, str], words: str
) -> None:
    whose = nri.PodSandbox("s", "train", "u", "ml", annotations=annotations)
    with pytest.raises(Refused, match=words):
        await injector.create(whose, container("main", HELD))


async def test_a_card_without_a_cdi_device_is_refused_in_words(
    injector: Injector, tmp_path: Path
) -> None:
    (tmp_path / "broken.yaml").write_text("kind: [")
    lost = ContainerGpus("main", (share("GPU-lost"),), Isolation.WHOLE)
    with pytest.raises(Refused, match="node gpu-1 has no CDI device GPU-lost in") as told:
        await injector.create(pod(lost), container("main", HELD))
    assert str(tmp_path / "broken.yaml") in str(told.value)
    assert "nvidia-ctk cdi generate" in str(told.value)


async def test_a_device_that_is_gone_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        f"kind: nvidia.com/gpu\ndevices: [{{name: {FIRST}, containerEdits: "
        "{deviceNodes: [{path: /dev/gpupool-gone}]}}]\n"
    )
    injector = Injector("gpu-1", Specs((tmp_path,)), lambda: (), Wall(), lambda is_asked: None)
    whole = ContainerGpus("main", (share(FIRST),), Isolation.WHOLE)
    with pytest.raises(Refused, match="No such file or directory: '/dev/gpupool-gone'"):
        await injector.create(pod(whole), container("main", HELD))


async def test_a_promise_of_isolation_is_not_broken_without_the_limiter(tmp_path: Path) -> None:
    (tmp_path / "nvidia.yaml").write_text(SPEC)
    injector = Injector("gpu-1", Specs((tmp_path,)), lambda: (), Wall(), lambda is_asked: None)
    isolated = ContainerGpus("main", (share(FIRST),), Isolation.LIMIT)
    with pytest.raises(Refused, match="the limiter is not installed on node gpu-1"):
        await injector.create(pod(isolated), container("main", HELD))


async def test_a_new_file_counts_from_the_next_container_on(
    injector: Injector, tmp_path: Path
) -> None:
    late = "GPU-late"
    whole = ContainerGpus("main", (share(late),), Isolation.WHOLE)
    with pytest.raises(Refused, match="no CDI device GPU-late"):
        await injector.create(pod(whole), container("main", HELD))
    (tmp_path / "late.yaml").write_text(SPEC.replace(FIRST, late))
    assert await injector.create(pod(whole), container("main", HELD))


async def test_the_driver_holds_a_share_before_the_program_starts_until_it_has_ended() -> None:
    wall = Wall()
    injector = Injector("gpu-1", Specs(()), lambda: (), wall, lambda is_asked: None)
    limits = {f"{GROUP_LIMITS}/main": f"{FIRST} 3226 0\n", f"{GROUP_LIMITS}/free": "unlimited\n"}
    whose = nri.PodSandbox("s", "train", "u", "ml", annotations=limits)
    for name in ("main", "free", "sidecar"):
        each = nri.Container(f"id-{name}", "s", name)
        await injector.start(whose, each)
        await injector.removed(whose, each)
    assert wall.calls == [
        ("hold", "id-main", {FIRST: 3226}),
        ("release", "id-main", {FIRST: 3226}),
    ]


async def test_a_container_that_the_driver_does_not_hold_does_not_start() -> None:
    wall = Wall(broken="no cgroup")
    injector = Injector("gpu-1", Specs(()), lambda: (), wall, lambda is_asked: None)
    limits = {f"{GROUP_LIMITS}/main": f"{FIRST} 3226 0\n"}
    whose = nri.PodSandbox("s", "train", "u", "ml", annotations=limits)
    with pytest.raises(Refused, match=r"container main .* not hold it on node gpu-1: no cgroup"):
        await injector.start(whose, nri.Container("c", "s", "main"))


def test_the_mount_that_holds_back_is_of_something_that_every_node_has() -> None:
    assert Path(HOLD_BACK.host_path).exists()


def test_an_agent_that_is_no_plugin_does_not_load_the_messages_of_nri() -> None:
    """Each agent would keep them in memory, on every node."""
    shows = "import gpupool.agent.run, sys; print('kubeclient.nri.messages' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", shows], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


async def test_a_plugin_without_a_runtime_says_so_and_tries_again(tmp_path: Path) -> None:
    settings = AgentSettings("n", nri=tmp_path / "nri.sock", cdi=Specs(()))
    injection = Injection(settings, tuple, Wall(), lambda: None, lambda uid, words: None)
    running = asyncio.create_task(injection.run())
    async with asyncio.timeout(60):
        while "not connected yet" in injection.problem(0.0):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert "nri.sock" in injection.problem(0.0)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
