"""What a request costs the one who sends it: CPU of kubeclient, beside that of another checkout.

python -m bench.client [CHECKOUT]

The server is localkube's, in a process of its own. Each checkout sends the same requests from a
fresh process, in turns. CPU time is of that process alone, so others on the machine change it
little.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.report import aligned
from bench.saved import here_and_now, save
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.https import connected
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from localkube.cluster import Cluster
from tools.environments import ROOT

TURNS, COUNT, IN_FLIGHT, LISTS = 5, 600, 16, 20
_DRIVE = "--drive"


def _name(number: int) -> str:
    return f"pod-{os.getpid()}-{number}"  # of this turn


def _pod(number: int) -> Obj:
    return {
        "metadata": {"name": _name(number), "namespace": "default"},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "a", "image": "none"}]},
    }


async def _each(count: int, act: Callable[[int], Awaitable[object]]) -> float:
    """Microseconds of CPU for each of them."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await act(number)

    before = time.process_time()
    await asyncio.gather(*(work() for _ in range(min(IN_FLIGHT, count))))
    return 1e6 * (time.process_time() - before) / count


async def _drive(kubeconfig: str) -> dict[str, float]:
    async with connected(await find_access(os.environ, kubeconfig=kubeconfig), "bench") as kube:
        pods: dict[int, Obj] = {}

        async def create(number: int) -> None:
            pods[number] = await kube.create(PODS, _pod(number))

        return {
            "POST a pod": await _each(COUNT, create),
            "GET a pod": await _each(COUNT, lambda n: kube.get(PODS, _name(n), "default")),
            f"list {COUNT} pods": await _each(LISTS, lambda _: _body(kube)),
            # Last: pods of a node that is none are removed.
            "POST a Binding": await _each(COUNT, lambda n: kube.bind(pods[n], "nowhere", {})),
        }


async def _body(kube: Kube) -> None:
    """Without parsing, which is the same everywhere."""
    await kube._transport.call("GET", PODS.path("default"), query={}, headers={}, body=b"")


def measure_client(roots: list[Path]) -> list[dict[str, float]]:
    """Medians of the turns, for each checkout."""
    with Cluster(nodes=0) as cluster:
        turns = [[_turn(root, cluster) for root in roots] for _ in range(TURNS)]
    return [
        {what: statistics.median(turn[n][what] for turn in turns) for what in turns[0][n]}
        for n in range(len(roots))
    ]


def _turn(root: Path, cluster: Cluster) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.client", _DRIVE, str(cluster.kubeconfig)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(roots: list[Path]) -> None:
    titles = ["here", *(str(root) for root in roots)]
    found = measure_client([ROOT, *roots])
    rows = [("CPU of the client, us", *titles)]
    rows += [(what, *(f"{each[what]:.0f}" for each in found)) for what in found[0]]
    print(aligned(rows))
    save({**here_and_now(), "client": dict(zip(titles, found, strict=True))})


if __name__ == "__main__":
    if sys.argv[1:2] == [_DRIVE]:
        import uvloop

        print(json.dumps(uvloop.run(_drive(sys.argv[2]))))
    else:
        main([Path(given).resolve() for given in sys.argv[1:]])
