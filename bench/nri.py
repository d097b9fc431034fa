"""What the agent costs a container that gets a card through NRI: from the runtime's question to the
answer, over a real socket, on a node with eight cards and CDI files as long as nvidia-ctk's.

And what it costs where others put cards in, and the agent only looks before the program starts
(gpupool/agent/start_check.py), at the mounts of a real process.

The bare round trip, without a card, is measured in turns with both. The CPU is that of both ends,
which are in one process: the asking counts in it, the machine's other work does not.
"""

import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from gpupool.agent.covered import mounts_of
from gpupool.agent.injector import Injector
from gpupool.agent.owners import container_by_cgroup
from gpupool.agent.start_check import StartCheck
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION, ENV_CARD_CHECK, HELD_BACK
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.hardware.cdi import Specs
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Disconnected, Name, run_plugin
from kubeclient.wire import encode
from tests.kubeclient.nri.runtime import Runtime, listening

CONTAINERS = 2_000
CARDS = 8
LIBRARIES = 60  # that nvidia-ctk finds of one driver
_ID = "c" * 64
_ENV = (f"{ENV_CARD_CHECK}=/dev/nvidiactl node gpu-1, way runtime",)


def measure_nri() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(_measure(Path(scratch)))


async def _measure(place: Path) -> dict[str, Any]:
    (place / "nvidia.json").write_text(json.dumps(_spec()))
    told = _NoWall(), lambda is_asked: None, lambda runtime: None, _starts()
    injector = Injector("gpu-1", Specs((place,)), lambda: (), *told)
    socket = place / "nri.sock"
    async with listening(socket) as connected:
        plugin = asyncio.create_task(run_plugin(socket, Name("bench", "95"), injector))
        runtime = await connected.get()
        await runtime.accept_registration()
        with_card, start, bare = [], [], []
        for number in range(CONTAINERS):
            with_card.append(await _ask(runtime, _made(number % CARDS, HELD_BACK)))
            start.append(await _ask(runtime, _made(number % CARDS, "/data"), "StartContainer"))
            bare.append(await _ask(runtime, _made(number % CARDS, "/data")))
    with contextlib.suppress(Disconnected):
        await plugin
    found = {"card": with_card, "start": start, "bare": bare}
    return {"containers": CONTAINERS, **{key: _figures(each) for key, each in found.items()}}


def _starts() -> StartCheck:
    def container(pid: int) -> str:
        container_by_cgroup(pid)
        return _ID

    def mountinfo(pid: int) -> str:
        return f"{mounts_of(pid)}9 1 0:9 / /usr/lib64/libcuda.so.1 ro - ext4 /dev/sda ro\n"

    return StartCheck("gpu-1", None, mountinfo, container, lambda ids: {}, lambda uid, words: None)


class _NoWall:
    async def hold(self, container: str, shares: object) -> None:
        pass

    async def release(self, container: str, shares: object) -> None:
        pass


def _made(card: int, mount: str) -> nri.ContainerRequest:
    gpus = ContainerGpus("main", (CardShare(_uuid(card), card, 3, 3226, 15),), Isolation.NONE)
    text = allocation_text(Allocation((gpus,)))
    pod = nri.PodSandbox("s", "pod", "uid", "default", annotations={ANNOTATION_ALLOCATION: text})
    mounts = (nri.Mount(mount, "bind", "/dev/null"),)
    container = nri.Container(_ID, "s", "main", env=_ENV, mounts=mounts, pid=os.getpid())
    return nri.ContainerRequest(pod, container)


async def _ask(
    runtime: Runtime, about: nri.ContainerRequest, method: str = "CreateContainer"
) -> tuple[float, float]:
    """Milliseconds by the clock, and of CPU."""
    request = encode(about)
    began, worked = time.perf_counter(), time.process_time()
    # What the runtime does with the answer is not the agent's time.
    await runtime.ask_raw(method, request)
    return (time.perf_counter() - began) * 1e3, (time.process_time() - worked) * 1e3


def _figures(asked: list[tuple[float, float]]) -> dict[str, float]:
    times_ms, cpu_ms = (list(each) for each in zip(*asked, strict=True))
    cuts, cpu = (statistics.quantiles(each, n=100) for each in (times_ms, cpu_ms))
    return {
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
        "max_ms": max(times_ms),
        "cpu_p50_ms": cpu[49],
        "cpu_p99_ms": cpu[98],
    }


def _uuid(card: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{card:012d}"


def _spec() -> dict[str, Any]:
    paths = [f"/usr/lib/x86_64-linux-gnu/libnvidia-{n}.so.615.10" for n in range(LIBRARIES)]
    mounts = [
        {"hostPath": path, "containerPath": path, "options": ["ro", "nosuid", "nodev", "rbind"]}
        for path in paths
    ]
    # /dev/zero is everywhere, as device nodes of a driver are not.
    nodes = [[{"path": f"/dev/nvidia{card}", "hostPath": "/dev/zero"}] for card in range(CARDS)]
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "containerEdits": {"mounts": mounts},
        "devices": [
            {"name": _uuid(card), "containerEdits": {"deviceNodes": node}}
            for card, node in enumerate(nodes)
        ],
    }
