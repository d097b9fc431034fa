"""Two hundred pods on three real kubelets: each sees the cards and the limit meant for it.

The kubelet never says which pod it asks for. That nobody guesses is what is shown here: agents that
answer late, pods of equal and of different sizes, bound in any order, everything killed meanwhile.
"""

import collections
import random
from collections.abc import Iterator

import pytest

from gpupool.contract.allocation import pod_allocation
from kubeclient.objects import Obj
from testbed.cluster import Kubernetes
from testbed.gpu_images import write_gpu_images
from testbed.installation import Installation
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import sharing_everywhere
from tests.kubernetes.pods import UNITS_PER_CARD, is_ready, mismatches, telling

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1500)]

NODES = tuple(f"127.0.0.{number}" for number in range(2, 5))
CARDS_PER_NODE = 8
LONG_S = 600.0


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    with Kubernetes(nodes=len(NODES), images=write_gpu_images) as running:
        yield running


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with sharing_everywhere(kubernetes, admin, CARDS_PER_NODE) as installed:
        yield installed


def pods(kubectl: Kubectl) -> list[Obj]:
    items: list[Obj] = kubectl.json("get", "pods")["items"]
    return items


def ready_pods(kubectl: Kubectl) -> list[Obj]:
    return [pod for pod in pods(kubectl) if is_ready(pod)]


def assert_no_card_over(found: list[Obj]) -> None:
    used: collections.Counter[str] = collections.Counter()
    for pod in found:
        if pod["status"]["phase"] not in ("Failed", "Succeeded"):
            for gpus in pod_allocation(pod).containers:
                used.update({share.uuid: share.units for share in gpus.shares})
    assert not {uuid: units for uuid, units in used.items() if units > UNITS_PER_CARD}


def test_two_hundred_pods_see_what_was_meant_for_them(
    kubectl: Kubectl, gpupool: Installation
) -> None:
    sizes = [1] * 100 + [2] * 60 + [3] * 40
    random.Random(6).shuffle(sizes)
    agents = [f"agent-{node}" for node in NODES]
    for agent in agents:
        gpupool.freeze(agent)
    try:
        kubectl.apply(*(telling(f"pod-{n}", size) for n, size in enumerate(sizes)))
        # All are bound, and wait for their agents at the same time.
        eventually(lambda: all(pod["spec"].get("nodeName") for pod in pods(kubectl)), LONG_S)
    finally:
        for agent in agents:
            gpupool.thaw(agent)
    eventually(lambda: len(ready_pods(kubectl)) == len(sizes), LONG_S)
    found = pods(kubectl)
    assert {pod["spec"]["nodeName"] for pod in found} == set(NODES)
    assert_no_card_over(found)
    assert not [each for pod in found for each in mismatches(kubectl, pod)]
    kubectl("delete", "pods", "--all", "--wait=false")
    eventually(lambda: not pods(kubectl), LONG_S)


def replicas(name: str, units: int, count: int) -> Obj:
    template = telling(name, units)
    template["metadata"]["labels"] = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }


def identities(found: list[Obj]) -> dict[str, tuple[str, int]]:
    return {
        pod["metadata"]["uid"]: (status["containerID"], status["restartCount"])
        for pod in found
        for status in pod["status"]["containerStatuses"]
    }


def test_everything_may_be_killed_while_pods_come(
    kubectl: Kubectl, gpupool: Installation, kubernetes: Kubernetes
) -> None:
    def kill_leader() -> None:
        leader = eventually(gpupool.leader, LONG_S)
        gpupool.kill(leader)
        gpupool.start(leader)

    def restart(name: str) -> None:
        gpupool.kill(name)
        gpupool.start(name)

    strikes = {
        "kubelet": kubernetes.nodes[0].kill_kubelet,
        "agent": lambda: restart(f"agent-{NODES[1]}"),
        "scheduler": kill_leader,
        "admission": lambda: restart("admission"),
        "apiserver": kubernetes.plane.restart_apiserver,
    }
    running: list[Obj] = []
    for number, (name, strike) in enumerate(strikes.items(), 1):
        kubectl.apply(replicas(name, 1 + number % 3, 12))
        strike()
        eventually(lambda n=number: len(ready_pods(kubectl)) == 12 * n, LONG_S)  # type: ignore[misc]
        found = pods(kubectl)
        assert_no_card_over(found)
        now = identities([pod for pod in found if is_ready(pod)])
        assert identities(running).items() <= now.items(), f"killing the {name} touched pods"
        running = [pod for pod in found if is_ready(pod)]
    assert not [each for pod in running for each in mismatches(kubectl, pod)]
