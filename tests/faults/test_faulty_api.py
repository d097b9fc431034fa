"""The scheduler behind a proxy that loses, delays and refuses: on a real socket, with real retries.

tests/kubernetes/test_faults.py does the same to all programs on a real Kubernetes.
"""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from kubeclient.access import Access, trust
from kubeclient.client import Kube
from kubeclient.https import connected
from kubeclient.objects import Obj
from testbed.faulty_proxy import Fault, faulty_proxy
from tests.faults.api_child import TOKEN, ApiChild, Nursery, running
from tests.faults.churn import Churn
from tests.scheduler.world import CARD_UNITS, add_node, elected, gpu_pod

NODES, CARDS, PODS_PER_CARD = 3, 2, 4
LONG_S = 250.0


@pytest.fixture
def child(nursery: Nursery, tmp_path: Path) -> Iterator[ApiChild]:
    with running(nursery, tmp_path / "data") as made:
        yield made


def ca_file(child: ApiChild) -> Path:
    return child.directory / "ca-for-tests.crt"


@asynccontextmanager
async def client(url: str, ca: Path) -> AsyncIterator[Kube]:
    async def authorization() -> str:
        return f"Bearer {TOKEN}"

    access = Access(url, trust(ca_file=str(ca)), authorization)
    async with connected(access, "test") as kube:
        yield kube


def pod(name: str) -> Obj:
    return gpu_pod(name, units=CARD_UNITS // PODS_PER_CARD, terminationGracePeriodSeconds=0)


def place(pod: Obj) -> str:
    """There is no kubelet: a pod that has its node is as far as it gets."""
    return (
        f"{pod['spec']['nodeName']} {pod['metadata']['annotations']}"
        if pod["spec"].get("nodeName")
        else ""
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 7))
async def test_no_card_is_given_twice_and_no_pod_waits_for_ever(child: ApiChild, seed: int) -> None:
    straight = f"https://127.0.0.1:{child.port}"
    with faulty_proxy(straight, ca_file(child), seed=seed) as proxy:
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(client(straight, ca_file(child)))
            for node in range(NODES):
                await add_node(kube, f"n{node}", CARDS)
            for number in range(2):
                faulty = await stack.enter_async_context(client(proxy.url, proxy.ca_file))
                await stack.enter_async_context(elected(faulty, f"s{number}", 3.0))
            churn = Churn(
                kube,
                "default",
                pod,
                place,
                NODES * CARDS * PODS_PER_CARD,
                CARD_UNITS,
                random.Random(seed),
            )
            for _ in range(2):
                await churn.round(LONG_S)
    assert {Fault.BUSY, Fault.BROKEN, Fault.CUT} <= set(proxy.injected), proxy.injected
