"""Pods that accept only some cards, by model or by uuid."""

from dataclasses import replace

import pytest

from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import Allocation, Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.engine.card_words import card_summary
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide_on
from gpupool.engine.explain import explain
from gpupool.engine.preempt import Preemption, preempt
from tests.engine.building import POLICY, cluster_of, gpu_node, place, shared, whole

V100, T4 = "Tesla V100-SXM2-16GB", "Tesla T4"


def mixed(name: str, *models: str) -> NodeInfo:
    cards = (Card(at, f"{name}-{at}", model, 16130) for at, model in enumerate(models))
    return gpu_node(name, inventory=Inventory(tuple(cards)))


def uuids(given: Allocation | str) -> list[str]:
    assert isinstance(given, Allocation), given
    return [share.uuid for gpus in given.containers for share in gpus.shares]


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("V100", True),
        ("tesla v100", True),
        ("Tesla-V100-SXM2-16GB", True),
        ("Tesla_V100", True),
        ("*V10*", True),
        ("V10", False),
        ("V100-16GB", False),
        ("V100*16GB", True),
        ("T4", False),
    ],
)
def test_a_model_is_named_by_words_of_its_name(name: str, is_meant: bool) -> None:
    assert CardChoice(models=(name,)).takes_model(V100) == is_meant
    assert CardChoice(avoided_models=(name,)).takes_model(V100) != is_meant


def test_a_share_goes_to_a_card_of_the_wanted_model_only() -> None:
    cluster = cluster_of(mixed("m", T4, V100), mixed("n", T4, T4))
    wants = CardChoice(models=("V100",))
    assert uuids(place(cluster, shared("a", 10, card_choice=wants))) == ["m-1"]
    assert place(cluster, shared("b", 10, card_choice=wants)) == (
        "0/2 nodes are available: 1 Insufficient GPU Memory in one device, "
        "1 node(s) had too few GPUs of the models or uuids that the pod accepts."
    )
    assert uuids(place(cluster, shared("c", 10, card_choice=CardChoice(avoided_models=("V100",)))))


def test_whole_cards_are_counted_among_the_accepted_ones() -> None:
    cluster = cluster_of(mixed("m", T4, V100, V100), mixed("n", T4, T4, T4))
    wants = CardChoice(models=("V100",))
    assert place(cluster, whole("a", 3, card_choice=wants)) == (
        "0/2 nodes are available: "
        "2 node(s) had too few GPUs of the models or uuids that the pod accepts."
    )
    assert uuids(place(cluster, whole("b", 2, card_choice=wants))) == ["m-1", "m-2"]


def test_cards_are_chosen_by_uuid_and_the_rest_follows_changes_of_the_node() -> None:
    cluster = cluster_of(mixed("m", T4, T4), mixed("n", T4, T4))
    wants = CardChoice(uuids=("n-1", "gone"))
    assert uuids(place(cluster, shared("a", 3, card_choice=wants))) == ["n-1"]
    assert uuids(place(cluster, shared("b", 3, card_choice=CardChoice(avoided_uuids=("m-0",)))))
    pod = shared("c", 3, card_choice=CardChoice(uuids=("new",)))
    assert isinstance(place(cluster, pod), str)
    card = Card(0, "new", T4, 16130)
    cluster.set_node(replace(mixed("m"), inventory=Inventory((card,))))
    assert uuids(place(cluster, pod)) == ["new"]


def test_an_explanation_says_which_cards_were_left_out() -> None:
    cluster = cluster_of(mixed("m", T4, V100))
    place(cluster, shared("a", 10, card_choice=CardChoice(models=("V100",))))
    pod = shared("b", 10, card_choice=CardChoice(models=("V100", "A100")))
    (node,) = explain(cluster, pod).nodes
    assert node.cards == (
        "card 0: left out: Tesla T4, model V100 or A100 wanted",
        "card 1: 5 of 15 units free, 10 wanted; default/p-a holds some of it",
    )
    assert card_summary(cluster, pod) == "GPUs: none of 1 has 10 units free, the best has 5."
    other = shared("c", 1, card_choice=CardChoice(uuids=("x",), avoided_models=("A100",)))
    (node,) = explain(cluster, other).nodes
    assert node.cards[0] == "card 0: left out: m-0, uuid x wanted"
    words = "GPUs: the pod accepts none of the cards there (no model A100; uuid x)."
    assert card_summary(cluster, other) == words


def test_preemption_frees_an_accepted_card() -> None:
    cluster = cluster_of(mixed("m", T4, V100))
    for uid, model in (("on-t4", "T4"), ("on-v100", "V100")):
        place(cluster, shared(uid, 15, card_choice=CardChoice(models=(model,))))
    pod = shared("a", 5, priority=1, card_choice=CardChoice(models=("V100",)))
    found = preempt(cluster, pod, POLICY)
    assert isinstance(found, Preemption)
    assert found.victims == ("on-v100",)


def test_a_node_is_ranked_by_the_cards_that_the_pod_accepts() -> None:
    # The open card of `a` is empty; that of `b` is half used, so a share should go there.
    cluster = cluster_of(mixed("a", T4, V100), mixed("b", T4, V100))
    v100, t4 = CardChoice(models=("V100",)), CardChoice(models=("T4",))
    assert uuids(place(cluster, shared("a1", 15, card_choice=t4))) == ["a-0"]
    cluster.hold(shared("b1", 5), "b", _on(cluster, "b", v100))
    assert uuids(place(cluster, shared("new", 5, card_choice=v100))) == ["b-1"]


def _on(cluster: ClusterModel, node: str, choice: CardChoice) -> Allocation:
    decision = decide_on(cluster, shared("b1", 5, card_choice=choice), POLICY, (node,))
    assert isinstance(decision, Placement)
    return decision.allocation


@pytest.mark.parametrize(
    "name", ["*" * 128, "a" + "*" * 126 + "z", "*".join("a" * 64), "a*" * 60 + "z"]
)
def test_stars_do_not_take_for_ever(name: str) -> None:
    """Pods choose the names; the scheduler compares them with every card."""
    CardChoice(models=(name,)).takes_model("NVIDIA-" + "A" * 100)
