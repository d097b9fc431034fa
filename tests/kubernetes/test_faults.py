"""All of gpupool behind a proxy that refuses, delays and loses, while pods come and go on kubelets.

tests/faults/test_faulty_api.py does the same to the scheduler alone, in seconds.
"""

import random
from collections.abc import Iterator

import pytest

from kubeclient.credentials import find_access
from kubeclient.https import connected
from kubeclient.objects import Obj
from testbed.cluster import Kubernetes
from testbed.faulty_proxy import READS, WATCHES, WRITES, FaultyProxy, faulty_proxy
from testbed.gpu_images import write_gpu_images
from testbed.installation import Installation
from tests.e2e.kubectl import Kubectl
from tests.faults.churn import Churn
from tests.kubernetes.conftest import sharing_everywhere
from tests.kubernetes.pods import UNITS_PER_CARD, is_ready, mismatches, telling

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1500)]

NODES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
CARDS_PER_NODE, PODS_PER_CARD = 4, 3
LONG_S = 400.0
ROUNDS = 3


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    with Kubernetes(nodes=len(NODES), images=write_gpu_images) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(kubernetes: Kubernetes) -> Iterator[FaultyProxy]:
    with faulty_proxy(kubernetes.plane.url, kubernetes.plane.ca_file, seed=6) as running:
        yield running
    common = {fault for odds in (WRITES, READS, WATCHES) for fault in odds if odds[fault] >= 3}
    assert common <= set(running.injected)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl, proxy: FaultyProxy) -> Iterator[Installation]:
    with sharing_everywhere(kubernetes, admin, CARDS_PER_NODE, proxy) as installed:
        yield installed


def pod(name: str) -> Obj:
    made = telling(name, UNITS_PER_CARD // PODS_PER_CARD)
    # Gone from the API only when its container has ended: until then the kubelet counts it.
    made["spec"]["terminationGracePeriodSeconds"] = 1
    return made


def container(pod: Obj) -> str:
    if not is_ready(pod):
        return ""
    (status,) = pod["status"]["containerStatuses"]
    return f"{status['containerID']} {status['restartCount']}"


async def test_no_card_is_given_twice_no_pod_waits_for_ever_and_none_is_touched(
    kubectl: Kubectl, kubernetes: Kubernetes
) -> None:
    access = await find_access({}, kubeconfig=str(kubernetes.plane.kubeconfig))
    async with connected(access, "test") as kube:
        churn = Churn(
            kube,
            kubectl.namespace,
            pod,
            container,
            len(NODES) * CARDS_PER_NODE * PODS_PER_CARD,
            UNITS_PER_CARD,
            random.Random(6),
        )
        for _ in range(ROUNDS):
            await churn.round(LONG_S)
    running = kubectl.json("get", "pods")["items"]
    assert not [each for found in running for each in mismatches(kubectl, found)]
