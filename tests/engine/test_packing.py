"""Packing: which models of cards a pod's wishes are counted for."""

from dataclasses import replace

import numpy as np
import pytest

from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.engine import packing as packing_module
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.kinds import kind_of
from gpupool.engine.packing import Packing, card_sizes
from tests.engine.building import ROOMY, cluster_of, gpu_pod, shared


def node(name: str, model: str, mib: int) -> NodeInfo:
    inventory = Inventory((Card(0, f"{name}-0", model, mib),))
    return NodeInfo(name, allocatable=ROOMY, inventory=inventory, labels={"model": model})


def two_models() -> ClusterModel:
    return cluster_of(node("a", "M40", 12_209), node("v", "V100", 16_130))


def test_a_pod_without_a_selector_is_counted_for_all_models() -> None:
    assert Packing("residue")._models_for(two_models(), kind_of(shared("u", 3))) == ()


def test_a_pod_without_gpus_is_counted_for_no_model() -> None:
    pod = gpu_pod("u", node_selector=(("model", "V100"),))
    assert Packing("residue")._models_for(two_models(), kind_of(pod)) == ()


def test_a_pod_that_selects_one_model_is_counted_for_that_model_alone() -> None:
    cluster = two_models()
    found = Packing("residue")._models_for(
        cluster, kind_of(shared("u", 3, node_selector=(("model", "V100"),)))
    )
    state = cluster.state("v")
    assert state is not None
    assert found == (int(cluster.columns.model[state.index]),)


def test_a_selector_that_takes_in_all_models_is_no_selection() -> None:
    cluster = cluster_of(node("v", "V100", 16_130))
    pod = shared("u", 3, node_selector=(("model", "V100"),))
    assert Packing("residue")._models_for(cluster, kind_of(pod)) == ()


def test_what_a_selector_means_is_worked_out_again_when_nodes_change() -> None:
    cluster, packing = two_models(), Packing("residue")
    pod = shared("u", 3, node_selector=(("model", "V100"),))
    packing.count(cluster, pod)
    assert list(packing._models.values()) != [()]
    cluster.remove_node("a")
    packing.count(cluster, pod)
    assert list(packing._models.values()) == [()]


def test_only_so_many_selectors_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing_module, "_MOST_SELECTIONS", 2)
    cluster, packing = two_models(), Packing("residue")
    for number in range(3):
        pod = shared(f"u{number}", 3, node_selector=(("model", f"m{number}"),))
        packing.count(cluster, pod)
    assert len(packing._models) == 1


def test_the_sizes_of_cards_are_listed_once_each() -> None:
    cluster = two_models()
    cluster.set_node(node("w", "V100", 16_130))
    assert len(card_sizes(cluster)) == 2


def test_a_machine_of_a_new_class_is_priced_with_the_others() -> None:
    cluster, packing = cluster_of(node("a", "M40", 12_209)), Packing("residue")
    for number in range(40):
        packing.count(cluster, shared(f"u{number}", 3))
    larger = {**ROOMY, "cpu": 2 * ROOMY["cpu"] + 4_000}
    cluster.set_node(replace(node("b", "M40", 12_209), allocatable=larger))
    late = shared("late", 3)
    assert isinstance(decide(cluster, late, packing.policy), Placement)  # not counted before
    packing.count(cluster, late)
    assert packing._market is not None
    assert len(packing._market.machines.cards) == 2


def test_a_pool_that_was_empty_for_a_while_is_priced_as_before() -> None:
    # Of one size: a new size of cards has the prices made anew by itself.
    cluster = cluster_of(node("a", "P100", 16_130), node("v", "V100", 16_130))
    packing = Packing("residue")

    def count(pods: int) -> None:
        for number in range(pods):
            packing.count(cluster, shared(f"u{number}", 3, node_selector=(("model", "V100"),)))

    count(40)
    assert packing._market is not None
    priced = packing._market.machines
    cluster.remove_node("v")
    count(100)
    assert packing._market.machines != priced
    cluster.set_node(node("v", "V100", 16_130))
    count(1)
    assert packing._market.machines == priced


def test_kinds_that_are_gone_do_not_lead_beyond_a_smaller_market() -> None:
    cluster, packing = two_models(), Packing("residue")
    for number in range(40):
        packing.count(cluster, shared(f"u{number}", 3))
    assert packing._market is not None
    packing._seen, packing._at = [], np.full(4, 9)  # of a larger market before this one
    packing._amounts = np.zeros((len(packing._market.sizes), 4))
    cluster.hold(shared("held", 3), "v")
    cluster.release("held")
    assert packing._running(cluster, packing._market).shape == packing._market.wanted.shape
