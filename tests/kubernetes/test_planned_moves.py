"""`gpupool defrag --apply` on equal nodes: what moves lands on the planned card of a real kubelet.

Several cards are equally good for the pod that moves. Which one the scheduler would take by itself,
nobody can say.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool as command
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import ANNOTATION_PLANNED_MOVES, RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from testbed.build import BuildError
from testbed.cluster import Kubernetes
from testbed.gpu_images import write_gpu_images
from testbed.installation import Installation
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, sharing_everywhere
from tests.kubernetes.pods import UNITS_PER_CARD, gpu_pod, is_ready

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

NODES = 4
STAYS = UNITS_PER_CARD // 2  # two of them fit on a card
FILLER = UNITS_PER_CARD - STAYS  # two of them do not


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    try:
        with Kubernetes(nodes=NODES, images=write_gpu_images) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with sharing_everywhere(kubernetes, admin, cards=1) as installed:
        yield installed


def deployment(name: str, replicas: int, units: int) -> Obj:
    template = gpu_pod(name, RESOURCE_GPU_MEM, units)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def running(kubectl: Kubectl, app: str) -> list[Obj]:
    pods: list[Obj] = kubectl.json("get", "pods", "-l", f"app={app}")["items"]
    return [each for each in pods if is_ready(each) and "deletionTimestamp" not in each["metadata"]]


def place_of(pod: Obj) -> tuple[str, str]:
    (share,) = pod_allocation(pod).containers[0].shares
    return pod["spec"]["nodeName"], share.uuid


def asked(*words: str) -> tuple[int, Obj]:
    """Exit code and answer."""
    done = CliRunner().invoke(command, [*words, "-o", "json"])
    return done.exit_code, json.loads(done.stdout)


def cards_of(places: list[Obj]) -> set[tuple[str, str]]:
    return {(place["node"], uuid) for place in places for uuid in place["cards"]}


def test_pods_land_on_the_planned_cards(
    gpupool: Installation, kubectl: Kubectl, tmp_path: Path
) -> None:
    kubectl.apply(deployment("filler", NODES, FILLER))
    eventually(lambda: len(running(kubectl, "filler")) == NODES, LONGEST_S)
    kubectl.apply(deployment("small", NODES, STAYS))
    eventually(lambda: len(running(kubectl, "small")) == NODES, LONGEST_S)
    kubectl("delete", "deployment", "filler", "--timeout=80s")
    eventually(lambda: kubectl.names("pods", "-l", "app=filler") == [], LONGEST_S)
    before = {place_of(pod) for pod in running(kubectl, "small")}
    assert len(before) == NODES

    large = deployment("large", NODES // 2, UNITS_PER_CARD)
    file = tmp_path / "large.json"
    file.write_text(json.dumps(large))
    where = ("-f", str(file), "-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))

    def fitting() -> set[tuple[str, str]]:
        _, answer = asked("whatif", *where)
        (workload,) = answer["workloads"]
        return cards_of(workload["placements"])

    assert fitting() == set()

    code, plan = asked("defrag", *where, "--apply")

    assert code == 0, plan
    assert len(plan["moves"]) == NODES // 2
    eventually(lambda: len(running(kubectl, "small")) == NODES, LONGEST_S)
    planned, left = cards_of(plan["moves"]), cards_of(plan["placements"])
    assert {place_of(pod) for pod in running(kubectl, "small")} == planned == before - left
    nodes = kubectl.json("get", "nodes")["items"]
    assert not any(ANNOTATION_PLANNED_MOVES in each["metadata"]["annotations"] for each in nodes)

    # The kubelets offer the cards again some moments after the cordons have ended.
    eventually(lambda: fitting() == left, LONGEST_S)
    kubectl.apply(large)
    eventually(lambda: len(running(kubectl, "large")) == NODES // 2, LONGEST_S)
    assert {place_of(pod) for pod in running(kubectl, "large")} == left
