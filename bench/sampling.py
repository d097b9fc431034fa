"""What it costs the agent to watch cards and containers, and Prometheus to read it.

By CPU time of this process, through NVML on simulated cards, with a process of its own for each
pod: the driver is asked for every card and every process, and each process's cgroup is read.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpupool.agent import sampler
from gpupool.agent.metrics import Metrics
from gpupool.agent.owners import container_by_cgroup, owner_by_cgroup
from gpupool.agent.sampler import Sampler
from gpupool.agent.settings import AgentSettings
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.core.gpu import Allocation, Card, CardShare, ContainerGpus, Inventory, Isolation, Wall
from gpupool.hardware.nvml import NvmlDriver
from gpupool.hardware.simdriver import create_node
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_state import card_uuid
from kubeclient.objects import Obj

NODE = "gpu-1"
SAMPLES = 40
# Cards and pods: what is aimed at, what a scrape is measured with, and what tells the two apart.
SIZES = ((8, 100), (8, 160), (8, 0), (1, 0))
_MODEL = "Tesla V100-SXM2-16GB"
# Holds memory of the card of its number, and sleeps. Forked, so that a hundred of them are cheap.
_HOLDER = """
import ctypes, os, signal, sys
pods, cards = int(sys.argv[1]), int(sys.argv[2])
for number in range(pods):
    reader, writer = os.pipe()
    if os.fork() == 0:
        cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        assert not cuda.cuInit(0)
        assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number % cards)
        assert not cuda.cuCtxSetCurrent(context)
        assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(100 << 20))
        os.write(writer, b".")
        sys.stdin.read()
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
print("ready", flush=True)
sys.stdin.read()
"""


def measure_sampling() -> dict[str, Any]:
    found = {}
    for cards, pods in SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            profile = card_profile(_MODEL, 16130)
            files = create_node(Path(scratch), NODE, [profile] * cards)
            # A process finds the simulated libraries only if it starts with this variable.
            variables = {**os.environ, "LD_LIBRARY_PATH": str(files.libraries)}
            command = (sys.executable, "-m", "bench.sampling", str(cards), str(pods))
            done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True)
        found[f"{cards}x{pods}"] = json.loads(done.stdout)
    return found


def _measure(cards: int, pods: int) -> dict[str, Any]:
    command = (sys.executable, "-c", _HOLDER, str(pods), str(cards))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holders:
        assert holders.stdout
        holders.stdout.readline()
        try:
            return asyncio.run(_with_holders(cards, pods))
        finally:
            holders.communicate()


async def _with_holders(cards: int, pods: int) -> dict[str, Any]:
    driver = NvmlDriver()
    await driver.look()
    known = tuple(Card(at, card_uuid(NODE, at), _MODEL, 16130) for at in range(cards))
    inventory = Inventory(known, "550", wall=Wall.LIMITER)
    pids = sorted(use.pid for use in (await driver.uses()).programs)
    numbers = {pid: number for number, pid in enumerate(pids)}

    def owner(pid: int) -> str:
        owner_by_cgroup(pid)  # for what it costs: here nobody has the cgroup of a pod
        return f"uid-{numbers[pid]}" if pid in numbers else ""

    def container(pid: int) -> str:
        container_by_cgroup(pid)
        return f"id-{numbers[pid]}"

    settings = AgentSettings(NODE, owner=owner, container=container)
    made = Sampler(settings, driver, lambda: inventory)
    for number in range(pods):
        made.pod_changed(None, _pod(number, number % cards))
    sampler.FRESH_S = 0.0
    took = []
    for _ in range(SAMPLES):
        began = time.process_time()
        readings = await made.readings()
        took.append(time.process_time() - began)
    await driver.close()
    metrics = Metrics(NODE, True, inventory)
    metrics.text(readings)  # imports
    began = time.process_time()
    text = metrics.text(readings)
    sample_s = statistics.median(took)
    return {
        "containers": sum(len(card.containers or ()) for card in readings.cards),
        "sample_ms": sample_s * 1e3,
        "percent_of_a_core": sample_s / settings.sample_s * 100,
        "scrape_ms": (time.process_time() - began) * 1e3,
        "scrape_bytes": len(text),
        "series": sum(not line.startswith("#") for line in text.splitlines()),
    }


def _pod(number: int, card: int) -> Obj:
    share = CardShare(card_uuid(NODE, card), card, 1, 1075, 15)
    allocation = Allocation((ContainerGpus("main", (share,), Isolation.LIMIT),))
    metadata = {
        "namespace": f"team-{number % 7}",
        "name": f"trainer-{number}",
        "uid": f"uid-{number}",
        "annotations": {ANNOTATION_ALLOCATION: allocation_text(allocation)},
    }
    statuses = [{"name": "main", "containerID": f"containerd://id-{number}"}]
    return {"metadata": metadata, "status": {"phase": "Running", "containerStatuses": statuses}}


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]), int(sys.argv[2]))))
