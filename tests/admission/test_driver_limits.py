"""Variables for the hook of NVIDIA's container toolkit, where the driver holds shares itself."""

import pytest

from gpupool.admission.cards import ClusterCards, cluster_cards
from gpupool.core.gpu import Card, GpuMode, Inventory, Wall
from gpupool.core.nodes import NodeInfo
from kubeclient.objects import Obj
from tests.admission.pods import admitted, container, environment, pod, refusal

CARD = Card(0, "GPU-a", "Tesla V100", 16130)
REQUEST, LIMIT = "NVIDIA_GPU_MEMORY_REQUEST", "NVIDIA_GPU_MEMORY_LIMIT"
ON_DRIVER = {"key": "gpupool.io/isolation", "operator": "In", "values": ["driver"]}


def node(name: str, wall: Wall | None, *, isolates: bool = True) -> NodeInfo:
    inventory = Inventory((CARD,), isolates=isolates, wall=wall)
    labels = {"pool": name}
    return NodeInfo(name, labels, inventory=inventory, gpu_mode=GpuMode.SHARED, isolates=isolates)


DRIVER = cluster_cards([node("a", Wall.DRIVER), node("b", Wall.DRIVER)])
MIXED = cluster_cards([node("a", Wall.DRIVER), node("b", Wall.LIMITER)])


def terms(made: Obj) -> list[Obj]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found: list[Obj] = made["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
    return found


def test_where_all_nodes_have_driver_limits_a_share_gets_the_variables_of_the_hook() -> None:
    made = admitted(pod(container("main", gpu_mem=3), container("other")), DRIVER)
    found = environment(made)
    assert found[REQUEST] == "metadata.annotations['memory-request.gpupool.io/main']"
    assert found[LIMIT] == "metadata.annotations['memory-limit.gpupool.io/main']"
    assert terms(made) == [{"matchExpressions": [ON_DRIVER]}]
    assert environment(made, 1) == {"NVIDIA_VISIBLE_DEVICES": "void"}
    # A pod may pass admission twice.
    assert admitted(made | {"spec": {**made["spec"], "schedulerName": "default-scheduler"}}, DRIVER)


@pytest.mark.parametrize(
    "cards",
    [
        MIXED,
        cluster_cards([node("a", None)]),
        cluster_cards([node("a", Wall.DRIVER), node("b", Wall.DRIVER, isolates=False)]),
        cluster_cards([]),
    ],
    ids=["another wall", "an old agent", "no isolation", "no node"],
)
def test_elsewhere_it_gets_none_because_the_hook_refuses_empty_ones(cards: ClusterCards) -> None:
    made = admitted(pod(container("main", gpu_mem=1)), cards)
    assert LIMIT not in environment(made)
    assert "affinity" not in made["spec"]


def test_a_pod_that_chooses_nodes_with_driver_limits_gets_them() -> None:
    made = admitted(pod(container("main", gpu_mem=3), nodeSelector={"pool": "a"}), MIXED)
    assert LIMIT in environment(made)


def test_every_term_of_the_users_affinity_gets_the_rule() -> None:
    mine = [
        {"matchExpressions": [{"key": "pool", "operator": "In", "values": [name]}]} for name in "ab"
    ]
    required = {"nodeSelectorTerms": mine}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    made = admitted(pod(container("main", gpu_mem=3), affinity=affinity), DRIVER)
    assert [term["matchExpressions"][1] for term in terms(made)] == [ON_DRIVER] * 2


def test_a_container_that_asks_for_no_isolation_gets_none() -> None:
    asking = {**container("main", gpu_mem=3), "env": [{"name": "CGPU_DISABLE", "value": "true"}]}
    assert LIMIT not in environment(admitted(pod(asking), DRIVER))


def test_a_whole_card_gets_none() -> None:
    assert LIMIT not in environment(admitted(pod(container("main", gpu=1)), DRIVER))


@pytest.mark.parametrize("name", [REQUEST, LIMIT])
def test_users_may_not_set_the_variables_themselves(name: str) -> None:
    own = {**container("main", gpu_mem=3), "env": [{"name": name, "value": "1"}]}
    assert f"wanted a name that gpupool does not set itself, found {name}" in refusal(pod(own))
