"""What the agent costs a container that gets a card through NRI: from the runtime's question to the
answer, over a real socket, on a node with eight cards and CDI files as long as nvidia-ctk's.

The bare round trip, without a card, is measured in turns with it. The CPU is that of both ends,
which are in one process: the asking counts in it, the machine's other work does not.
"""

import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from gpupool.agent.injector import Injector
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION, HELD_BACK
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.hardware.cdi import Specs
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Disconnected, Name, run_plugin
from kubeclient.wire import encode
from tests.kubeclient.nri.runtime import Runtime, listening

CONTAINERS = 2_000
CARDS = 8
LIBRARIES = 60  # that nvidia-ctk finds of one driver


def measure_nri() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(_measure(Path(scratch)))


async def _measure(place: Path) -> dict[str, Any]:
    (place / "nvidia.json").write_text(json.dumps(_spec()))
    injector = Injector("gpu-1", Specs((place,)), lambda: (), _NoWall(), lambda is_asked: None)
    socket = place / "nri.sock"
    async with listening(socket) as connected:
        plugin = asyncio.create_task(run_plugin(socket, Name("bench", "95"), injector))
        runtime = await connected.get()
        await runtime.accept_registration()
        with_card, bare = [], []
        for number in range(CONTAINERS):
            with_card.append(await _ask(runtime, number % CARDS, HELD_BACK))
            bare.append(await _ask(runtime, number % CARDS, "/data"))
    with contextlib.suppress(Disconnected):
        await plugin
    return {"containers": CONTAINERS, "card": _figures(with_card), "bare": _figures(bare)}


class _NoWall:
    async def hold(self, container: str, shares: object) -> None:
        pass

    async def release(self, container: str, shares: object) -> None:
        pass


async def _ask(runtime: Runtime, card: int, mount: str) -> tuple[float, float]:
    """Milliseconds by the clock, and of CPU."""
    gpus = ContainerGpus("main", (CardShare(_uuid(card), card, 3, 3226, 15),), Isolation.NONE)
    text = allocation_text(Allocation((gpus,)))
    pod = nri.PodSandbox("s", "pod", "uid", "default", annotations={ANNOTATION_ALLOCATION: text})
    container = nri.Container("c", "s", "main", mounts=(nri.Mount(mount, "bind", "/dev/null"),))
    request = encode(nri.ContainerRequest(pod, container))
    began, worked = time.perf_counter(), time.process_time()
    # What the runtime does with the answer is not the agent's time.
    await runtime.ask_raw("CreateContainer", request)
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
