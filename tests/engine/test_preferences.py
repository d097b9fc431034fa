"""Preferred spread and affinity, against kube-scheduler's formulas in plain Python."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.pods import PodTerm, Spread
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.preferences import preferences
from kubeclient.selectors import EVERYTHING, parse_label_selector
from tests.engine.building import ROOMY, gpu_node, gpu_pod

KEYS = ("zone", "host")
Nodes = list[tuple[dict[str, str], int]]  # labels, and the number of matching pods


def built(nodes: Nodes) -> ClusterModel:
    cluster = ClusterModel()
    for at, (labels, pods) in enumerate(nodes):
        cluster.set_node(gpu_node(f"n{at}", 0, labels=labels, allocatable=ROOMY))
        for number in range(pods):
            cluster.hold(gpu_pod(f"{at}-{number}"), f"n{at}")
    return cluster


def scores(nodes: Nodes, spreads: tuple[Spread, ...]) -> list[int]:
    found = preferences(gpu_pod(spreads=spreads), built(nodes), np.arange(len(nodes)))
    return [int(each) for each in found]


def expected(nodes: Nodes, spreads: tuple[Spread, ...]) -> list[int]:
    keys = [spread.topology_key for spread in spreads]
    labelled = [labels for labels, _ in nodes if all(key in labels for key in keys)]
    crowds: list[int | None] = []
    for labels, _ in nodes:
        if labels not in labelled:
            crowds.append(None)
            continue
        crowd = 0.0
        for spread in spreads:
            key = spread.topology_key
            domains = {each[key] for each in labelled}
            there = sum(n for each, n in nodes if each in labelled and each[key] == labels[key])
            crowd += there * math.log(len(domains) + 2) + spread.max_skew - 1
        crowds.append(math.floor(crowd + 0.5))
    known = [crowd for crowd in crowds if crowd is not None]
    if not known:
        return [0] * len(nodes)
    most, least = max(known), min(known)
    return [
        0 if crowd is None else 2 * (100 * (most + least - crowd) // most if most else 100)
        for crowd in crowds
    ]


labels = st.fixed_dictionaries({}, optional={key: st.sampled_from("abc") for key in KEYS})
spreads = st.builds(
    Spread,
    st.sampled_from(KEYS),
    st.just(EVERYTHING),
    st.integers(1, 4),
    required=st.just(False),
)


@given(
    st.lists(st.tuples(labels, st.integers(0, 9)), min_size=1, max_size=6),
    st.lists(spreads, min_size=1, max_size=2, unique_by=lambda each: each.topology_key).map(tuple),
)
def test_preferred_spread_scores_as_kube_scheduler_does(
    nodes: Nodes, wanted: tuple[Spread, ...]
) -> None:
    assert scores(nodes, wanted) == expected(nodes, wanted)


def test_few_pods_on_many_hosts_weigh_more_than_as_many_in_few_zones() -> None:
    nodes: Nodes = [
        ({"zone": "a", "host": "1"}, 3),
        ({"zone": "b", "host": "2"}, 2),
        ({"zone": "b", "host": "3"}, 2),
        *(({"zone": "c", "host": str(at)}, 9) for at in range(4, 20)),
    ]
    both = tuple(Spread(key, EVERYTHING, 1, required=False) for key in KEYS)
    # By plain sums the first would have 6 and the second 6 as well.
    first, second, *_ = scores(nodes, both)
    assert second > first


def test_preferred_affinity_is_scaled_from_the_least_liked_node_on() -> None:
    nodes: Nodes = [({"zone": "a"}, 3), ({"zone": "b"}, 4)]
    near = PodTerm(EVERYTHING, "zone", ("default",))
    wanted = gpu_pod(near=((10, near),), labels={"app": "x"})
    found = preferences(wanted, built(nodes), np.arange(2))
    assert found.tolist() == [0, 200]
    away = gpu_pod(near=((-10, near),))
    assert preferences(away, built(nodes), np.arange(2)).tolist() == [200, 0]
    nobody = PodTerm(parse_label_selector("app=none"), "zone", ("default",))
    unmoved = gpu_pod(near=((10, nobody),))
    assert preferences(unmoved, built(nodes), np.arange(2)).tolist() == [0, 0]
