"""The runtime class that admission gives to a GPU pod that names none."""

from hypothesis import given
from hypothesis import strategies as st

from gpupool.admission.cards import cluster_cards
from gpupool.admission.review import Rules, review_pod
from gpupool.admission.runtime_class import class_choice
from gpupool.core.gpu import Card, GpuMode, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.ways import Way, Ways
from kubeclient.objects import Obj
from tests.admission.pods import admitted, answered, applied, container, pod, review

BY_CLASS = Ways(Way.RUNTIME_CLASS, known=(Way.RUNTIME_CLASS,), runtime_class="nvidia")
BOTH = Ways(Way.RUNTIME, known=(Way.RUNTIME, Way.RUNTIME_CLASS), runtime_class="nvidia")
PLAIN, PLUGIN = Ways(Way.RUNTIME, known=(Way.RUNTIME,)), Ways(Way.NRI, known=(Way.NRI,))


def node(name: str, ways: Ways | None, count: int = 1, mode: GpuMode = GpuMode.WHOLE) -> NodeInfo:
    cards = tuple(Card(i, f"{name}-{i}", "T4", 16130) for i in range(count))
    labels = {"pool": name}
    return NodeInfo(name, labels, inventory=Inventory(cards, ways=ways), gpu_mode=mode)


def class_of(made: Obj) -> str | None:
    found: str | None = made["spec"].get("runtimeClassName")
    return found


def test_a_pod_gets_the_class_that_its_nodes_need() -> None:
    cards = cluster_cards([node("a", BY_CLASS), node("b", BOTH)])
    assert class_of(admitted(pod(container("main", gpu=1)), cards)) == "nvidia"


def test_no_class_is_set_where_none_is_needed() -> None:
    for ways in (PLAIN, BOTH, PLUGIN, None):
        cards = cluster_cards([node("a", ways)])
        assert class_of(admitted(pod(container("main", gpu=1)), cards)) is None


def test_a_class_of_the_users_own_stays() -> None:
    cards = cluster_cards([node("a", BY_CLASS)])
    made = admitted(pod(container("main", gpu=1), runtimeClassName="kata"), cards)
    assert class_of(made) == "kata"


def test_only_nodes_count_that_the_pod_may_come_to() -> None:
    cards = cluster_cards(
        [node("a", BY_CLASS, 8), node("b", PLUGIN), node("c", BY_CLASS, 8, GpuMode.SHARED)]
    )
    chosen = pod(container("main", gpu=1), nodeSelector={"pool": "b"})
    assert class_of(admitted(chosen, cards)) is None
    assert class_of(admitted(pod(container("main", gpu_mem=1)), cards)) == "nvidia"


def test_in_a_mixed_cluster_the_pod_suits_more_cards_and_a_warning_names_the_others() -> None:
    cards = cluster_cards([node("a", BY_CLASS, 8), node("b", PLUGIN, 2)])
    answer = review_pod(review(pod(container("main", gpu=1))), Rules(frozenset()), cards)
    assert class_of(admitted(pod(container("main", gpu=1)), cards)) == "nvidia"
    assert any("1 node(s) with GPUs (b" in words for words in answer["response"]["warnings"])


def test_while_no_node_has_cards_the_installation_decides() -> None:
    rules = Rules(frozenset(), runtime_class="nvidia")
    asked = pod(container("main", gpu=1))
    answer = review_pod(review(asked), rules, cluster_cards([]))["response"]
    assert class_of(applied(asked, answer)) == "nvidia"


@given(
    st.lists(st.tuples(st.sampled_from([BY_CLASS, BOTH, PLAIN, PLUGIN, None]), st.integers(1, 8)))
)
def test_the_choice_never_leaves_out_more_cards_than_the_other_would(
    made: list[tuple[Ways | None, int]],
) -> None:
    nodes = [node(f"n{i}", ways, count) for i, (ways, count) in enumerate(made)]
    choice = class_choice(nodes)
    left_out = sum(
        len(n.inventory.cards) for n in nodes if n.inventory and n.name in choice.left_out
    )
    needing = sum(count for ways, count in made if ways is BY_CLASS)
    without = sum(count for ways, count in made if ways not in (BY_CLASS, BOTH))
    assert left_out == (min(needing, without) if needing else 0)


def test_containers_of_a_gpu_pod_without_a_request_see_no_card_whatever_their_image_says() -> None:
    cards = cluster_cards([node("a", BY_CLASS)])
    asked = pod(container("main", gpu=1), container("other"), initContainers=[container("first")])
    made = admitted(asked, cards)
    void = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert made["spec"]["containers"][1]["env"] == void
    assert made["spec"]["initContainers"][0]["env"] == void
    # A pod may pass admission twice.
    assert "patch" not in answered(made, cards)
