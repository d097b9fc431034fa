"""The pods of DaemonSets: on which nodes they run, and how they are made."""

from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.placement import Taint
from localkube.controllers import daemon_set_pods as pods
from localkube.controllers.daemon_set_plan import Fit
from localkube.placement import NodeOffer
from tests.localkube.controllers.samples import template


def daemon_set(**pod: Any) -> Obj:
    generation = {"deprecated.daemonset.template.generation": "3"}
    metadata = {"name": "d", "namespace": "default", "uid": "u", "annotations": generation}
    return {"metadata": metadata, "spec": {"template": template("d", **pod)}}


def node(*taints: tuple[str, str], **labels: str) -> NodeOffer:
    tainted = tuple(Taint(key, "", effect) for key, effect in taints)
    return NodeOffer("n", labels, tainted, unschedulable=False, allocatable={})


@pytest.mark.parametrize(
    ("taint", "effect", "expected"),
    [
        ("node.kubernetes.io/unschedulable", "NoSchedule", Fit.RUN),
        ("node.kubernetes.io/not-ready", "NoExecute", Fit.RUN),
        ("node.kubernetes.io/unreachable", "NoExecute", Fit.RUN),
        ("node.kubernetes.io/disk-pressure", "NoSchedule", Fit.RUN),
        ("mine", "PreferNoSchedule", Fit.RUN),
        ("mine", "NoSchedule", Fit.STAY),
        ("mine", "NoExecute", Fit.GO),
        ("node.kubernetes.io/network-unavailable", "NoSchedule", Fit.STAY),
    ],
)
def test_daemons_tolerate_node_problems_but_not_every_taint(
    taint: str, effect: str, expected: Fit
) -> None:
    assert pods.fit(pods.requirements(daemon_set()), node((taint, effect))) is expected


def test_daemons_in_the_host_network_tolerate_an_unavailable_network() -> None:
    request = pods.requirements(daemon_set(hostNetwork=True))
    tainted = node(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    assert pods.fit(request, tainted) is Fit.RUN


def test_a_selector_or_a_name_chooses_nodes() -> None:
    request = pods.requirements(daemon_set(nodeSelector={"ssd": "yes"}))
    assert pods.fit(request, node(ssd="yes")) is Fit.RUN
    assert pods.fit(request, node()) is Fit.GO
    assert pods.fit(pods.requirements(daemon_set(nodeName="n")), node()) is Fit.RUN
    assert pods.fit(pods.requirements(daemon_set(nodeName="m")), node()) is Fit.GO


def test_affinity_chooses_nodes() -> None:
    term = {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["arm64"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    request = pods.requirements(daemon_set(affinity={"nodeAffinity": required}))
    assert pods.fit(request, node(arch="arm64")) is Fit.RUN
    assert pods.fit(request, node(arch="amd64")) is Fit.GO


def test_a_pod_names_the_one_node_that_it_is_for() -> None:
    preferred: Obj = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    affinity = {"nodeAffinity": preferred, "podAffinity": {}}
    made = pods.new_pod(daemon_set(affinity=affinity), "n1", "abc")
    assert made["spec"]["affinity"]["nodeAffinity"] == {
        **preferred,
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        },
    }
    assert made["spec"]["affinity"]["podAffinity"] == {}
    assert pods.node_of(made) == "n1"
    assert made["metadata"]["labels"] == {
        "app": "d",
        "controller-revision-hash": "abc",
        "pod-template-generation": "3",
    }


def test_a_toleration_of_ones_own_is_replaced_only_by_its_like() -> None:
    own = [
        {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 5,
        },
        {"key": "mine", "operator": "Exists"},
    ]
    found = pods.tolerations({"tolerations": own})
    assert found[0] == {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
    }
    assert found[1] == own[1]
    assert len(found) == 7


def test_a_pod_is_new_by_its_revision_or_by_its_generation() -> None:
    made = pods.new_pod(daemon_set(), "n1", "abc")
    made["metadata"] |= {"name": "p", "uid": "u", "creationTimestamp": ""}
    found = pods.daemon_pod_of(made)
    assert found.is_updated("abc", "")
    assert found.is_updated("def", "3")  # of the same generation
    assert not found.is_updated("def", "4")
    assert not found.is_updated("def", "")


def test_the_node_of_a_daemon_is_its_own_or_that_of_its_affinity() -> None:
    made = pods.new_pod(daemon_set(), "n1", "abc")
    made["spec"]["nodeName"] = "n2"
    assert pods.node_of(made) == "n2"
    assert pods.node_of({"spec": {}}) == ""
