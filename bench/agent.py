"""What the agent takes of a node with eight cards and a hundred pods: memory, and CPU at rest.

python -m bench.agent [CHECKOUT]     another checkout of gpupool, to compare with

The agent runs as in its DaemonSet: from the wheels, in an environment of what their metadata asks
for, with its endpoint for metrics and readings. The pods hold shares of its cards through the
device plugin; their containers are timers of localkube. Beside that it is a plugin of a container
runtime, played here, which tells it of all pods of the node, and asks it about every start.
"""

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apiserver import cpu_s, memory_mib
from bench.report import aligned
from bench.saved import here_and_now, save
from gpupool.cli.programs import ask_cluster
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION, GROUP_LIMITS, RESOURCE_GPU_MEM
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.hardware.simdriver import create_node, read_cards
from gpupool.hardware.simdriver_cards import card_profile
from kubeclient.client import Kube
from kubeclient.nri import messages as nri
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.cluster import Cluster
from localkube.kubelet.node_files import DEVICE_PLUGINS, node_disk
from tests.kubeclient.nri.runtime import listening
from tools.environments import ROOT, Environment, build_wheels, environment

CARDS, UNITS, CARD_MIB = 8, 15, 16130
PODS_ON_NODE = 100
_NODE = "node-0"
_LIMIT_S = 120.0
_SETTLES_S = 10.0
# Timers have no processes, which the agent looks for twelve times, every five seconds.
_GIVES_UP_S = 60.0
_AT_REST_S = 60.0
_SHARED = {"metadata": {"labels": {"cgpu": "true"}}}
_TIMER = {"localkube.io/runtime": "timer"}
_AS_IN_THE_CHART = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "SSL_CERT_FILE": "/dev/null",
    "SSL_CERT_DIR": "/nonexistent",
}


def measure_agent(root: Path = ROOT) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(prefix="a") as short:
        place = Path(scratch)
        (place / "wheels").mkdir()
        wheels = build_wheels(place / "wheels", root)
        where = environment(place / "env", wheels, "gpupool[kubernetes]")
        # As in the image, where pip has compiled everything: compiling leaves memory behind.
        where.run("python", "-m", "compileall", "-q", str(place / "env" / "lib"))
        # A short path: the agent's sockets lie deep below it.
        with Cluster(nodes=1, directory=Path(short)) as cluster:
            return _measure(where, cluster, place / "driver")


def _measure(where: Environment, cluster: Cluster, driver: Path) -> dict[str, Any]:
    files = create_node(driver, _NODE, [card_profile("Tesla V100", CARD_MIB)] * CARDS)
    uuids = [card.uuid for card in read_cards(files)]
    plugins = node_disk(cluster.directory / "pods", _NODE) / DEVICE_PLUGINS
    flags = ["--node", _NODE, "--plugins", str(plugins), "--simulated", str(files.state)]
    flags += ["--metrics-port", "0", "--way", "runtime", "--kubeconfig", str(cluster.kubeconfig)]
    socket = driver / "nri.sock"
    flags += ["--nri", str(socket), "--nri-only-checks"]
    with (
        _full_node(socket) as starts,
        _running([str(where.path / "bin" / "gpupool"), "agent", *flags], where) as pid,
    ):
        _ask(cluster, lambda kube: kube.patch(NODES.path(name=_NODE), _SHARED))
        idle = _after(lambda: _units(cluster) == CARDS * UNITS, "the node's units", pid)
        _ask(cluster, lambda kube: _create(kube, uuids))
        assert starts.wait(_LIMIT_S), "the runtime was not answered"
        full = _after(lambda: _ready(cluster) == PODS_ON_NODE, "pods that are ready", pid)
        time.sleep(_GIVES_UP_S)
        before, began = cpu_s([pid]), time.monotonic()
        time.sleep(_AT_REST_S)
        percent = 100 * (cpu_s([pid]) - before) / (time.monotonic() - began)
    return {
        "cards": CARDS,
        "pods": PODS_ON_NODE,
        "idle": idle,
        "full": full,
        "cpu_percent": percent,
    }


@dataclass(frozen=True)
class _Synchronize:
    """SynchronizeRequest, with the fields that the agent skips."""

    pods: tuple[nri.PodSandbox, ...]
    containers: tuple[nri.Container, ...]


@contextlib.contextmanager
def _full_node(socket: Path) -> Iterator[threading.Event]:
    """A container runtime with a hundred pods, which asks about the start of each. Set: it has the
    answers."""
    answered, loop = threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with listening(socket) as connected:
            runtime = await connected.get()
            await runtime.accept_registration()
            configured = nri.ConfigureRequest("", "containerd", "v2.2.9")
            await runtime.ask("Configure", configured, nri.ConfigureResponse)
            made = [_made(number) for number in range(PODS_ON_NODE)]
            there = _Synchronize(*zip(*((m.pod, m.container) for m in made), strict=True))
            await runtime.ask("Synchronize", there, nri.SynchronizeResponse)
            for each in made:
                await runtime.ask("StartContainer", each, nri.Empty)
            answered.set()
            await asyncio.Event().wait()  # until it is cancelled

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(serving)

    serving = loop.create_task(serve())
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield answered
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        thread.join()
        loop.close()


def _made(number: int) -> nri.ContainerRequest:
    """With as many variables and mounts as a container of a cluster with some services has."""
    env = tuple(f"SERVICE_{at}_PORT_8080_TCP_ADDR=10.0.{number}.{at}" for at in range(40))
    mounts = tuple(
        nri.Mount(f"/var/run/mounted-{at}", "bind", f"/var/lib/kubelet/pods/{number}/{at}", ("ro",))
        for at in range(15)
    )
    pod = nri.PodSandbox(f"sandbox-{number}", f"pod-{number}", f"uid-{number}", "default")
    container = nri.Container(f"{number:064x}", pod.id, "main", env=env, mounts=mounts)
    return nri.ContainerRequest(pod, container)


@contextlib.contextmanager
def _running(command: list[str], where: Environment) -> Iterator[int]:
    environ = {"PATH": f"{where.path}/bin", "HOME": str(where.path), **_AS_IN_THE_CHART}
    with tempfile.TemporaryFile() as said:
        program = subprocess.Popen(command, env=environ, stdout=said, stderr=subprocess.STDOUT)
        try:
            yield program.pid
        except TimeoutError as error:
            said.seek(0)
            raise RuntimeError(
                f"{error}; the agent says:\n{said.read()[-800:].decode()}"
            ) from error
        finally:
            program.terminate()
            program.wait()


def _after(is_so: Callable[[], bool], what: str, pid: int) -> dict[str, float]:
    """The agent's memory once this is so, and has been for a while."""
    deadline = time.monotonic() + _LIMIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not as wanted after {_LIMIT_S:.0f} s")
        time.sleep(0.2)
    time.sleep(_SETTLES_S)
    return memory_mib(pid)


def _ask(cluster: Cluster, work: Callable[[Kube], Any]) -> Any:
    return ask_cluster(work, "", kubeconfig=str(cluster.kubeconfig))


def _units(cluster: Cluster) -> int:
    node = _ask(cluster, lambda kube: kube.get(NODES, _NODE))
    return int(node["status"]["allocatable"].get(RESOURCE_GPU_MEM, 0))


def _ready(cluster: Cluster) -> int:
    pods = _ask(cluster, lambda kube: kube.list(PODS)).items
    return sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])
        for pod in pods
        if pod["status"].get("conditions")
    )


async def _create(kube: Kube, uuids: list[str]) -> None:
    for number in range(PODS_ON_NODE):
        await kube.create(PODS, _pod(number, uuids[number % CARDS]))


def _pod(number: int, uuid: str) -> Obj:
    share = CardShare(uuid, number % CARDS, 1, CARD_MIB // UNITS, UNITS)
    gpus = ContainerGpus("main", (share,), Isolation.NONE)
    annotations = {
        **_TIMER,
        ANNOTATION_ALLOCATION: allocation_text(Allocation((gpus,))),
        f"{GROUP_LIMITS}/main": f"{uuid} {share.memory_mib} 0\n",
    }
    container = {"name": "main", "image": "none", "resources": {"limits": {RESOURCE_GPU_MEM: "1"}}}
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "annotations": annotations,
        },
        "spec": {"nodeName": _NODE, "containers": [container]},
    }


def main(roots: list[Path]) -> None:
    figures = here_and_now()
    titles = ["here", *(str(root) for root in roots)]
    for title, root in zip(titles, [ROOT, *roots], strict=True):
        print(f"measuring {title} ...", file=sys.stderr, flush=True)
        figures[title] = measure_agent(root)
    print(aligned(_rows([figures[title] for title in titles], titles)))
    save(figures)


def _rows(found: list[dict[str, Any]], titles: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("agent, MiB: resident (PSS, private)", *titles)]
    for when, title in (("idle", f"{CARDS} cards"), ("full", f"and {PODS_ON_NODE} pods")):
        shown = ("{rss} ({pss}, {private})".format(**each[when]) for each in found)
        rows.append((title, *shown))
    rows.append(("CPU at rest, of a core", *(f"{each['cpu_percent']:.2f} %" for each in found)))
    return rows


if __name__ == "__main__":
    main([Path(given).resolve() for given in sys.argv[1:]])
