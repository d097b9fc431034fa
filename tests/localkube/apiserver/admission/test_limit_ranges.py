"""Limit ranges; texts as a real kube-apiserver 1.35.8 gave them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.admission.limit_ranges import check_limits, default_limits
from tests.localkube.apiserver.admission.small_cluster import (
    SmallCluster,
    a_cluster,
    container,
    pod,
    refused,
    write,
)

LIMITS = [
    {
        "type": "Container",
        "default": {"cpu": "500m", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "1Gi"},
        "max": {"cpu": "2", "memory": "4Gi"},
        "min": {"cpu": "50m"},
        "maxLimitRequestRatio": {"memory": "2"},
    },
    {"type": "Pod", "max": {"cpu": "3"}},
    {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}, "min": {"storage": "1Mi"}},
]


@pytest.fixture
def cluster() -> SmallCluster:
    found = a_cluster()
    found.put("limitranges", "l", "ns", spec={"limits": LIMITS})
    return found


def test_containers_get_what_they_do_not_ask_for(cluster: SmallCluster) -> None:
    thing = pod(
        "p",
        container(),
        container("d", resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
    )
    default_limits(write("pods", thing), cluster)
    c, d = thing["spec"]["containers"]
    assert c["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi"},
    }
    assert d["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }
    assert thing["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: cpu, memory request for container c; "
            "cpu, memory limit for container c; memory request for container d; "
            "memory limit for container d"
        )
    }


def test_nothing_changes_where_nothing_is_limited() -> None:
    thing = pod()
    before = str(thing)
    default_limits(write("pods", thing), a_cluster())
    assert str(thing) == before


def _asking(limits: Obj, requests: Obj | None = None) -> Obj:
    resources = {"limits": limits, "requests": limits if requests is None else requests}
    return pod("p", container(resources=resources))


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (
            _asking({"cpu": "3", "memory": "1Gi"}),
            "maximum cpu usage per Container is 2, but limit is 3",
        ),
        (
            _asking({"cpu": "1", "memory": "1Gi"}, {"cpu": "10m", "memory": "1Gi"}),
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        (
            _asking({"cpu": "1", "memory": "4Gi"}, {"cpu": "1", "memory": "1Gi"}),
            "memory max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        ),
        (
            _asking({"memory": "1Gi"}, {"memory": "1Gi"}),
            "[minimum cpu usage per Container is 50m.  No request is specified, "
            "maximum cpu usage per Container is 2.  No limit is specified, "
            "maximum cpu usage per Pod is 3.  No limit is specified]",
        ),
    ],
)
def test_containers_stay_within_bounds(thing: Obj, why: str, cluster: SmallCluster) -> None:
    with refused() as error:
        check_limits(write("pods", thing), cluster)
    assert error.value.status["message"] == f'pods "p" is forbidden: {why}'


def test_pods_stay_within_bounds_as_a_whole(cluster: SmallCluster) -> None:
    two = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    thing = pod("p", container(resources=two), container("d", resources=two))
    with refused() as error:
        check_limits(write("pods", thing), cluster)
    assert error.value.status["message"] == (
        'pods "p" is forbidden: maximum cpu usage per Pod is 3, but limit is 4'
    )


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ("2Gi", "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"),
        ("1Ki", "minimum storage usage per PersistentVolumeClaim is 1Mi, but request is 1Ki"),
    ],
)
def test_claims_stay_within_bounds(storage: str, why: str, cluster: SmallCluster) -> None:
    claim = {
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"resources": {"requests": {"storage": storage}}},
    }
    with refused() as error:
        check_limits(write("persistentvolumeclaims", claim), cluster)
    assert error.value.status["message"] == f'persistentvolumeclaims "c" is forbidden: {why}'


def test_updates_of_pods_are_not_limited_again(cluster: SmallCluster) -> None:
    thing = _asking({"cpu": "9"})
    check_limits(write("pods", thing, Operation.UPDATE, old=thing), cluster)
    with refused():
        check_limits(
            write("pods", thing, Operation.UPDATE, old=thing, subresource="resize"), cluster
        )


AMOUNTS = st.sampled_from(["1", "2", "1500m", "3"])


@given(st.lists(AMOUNTS, min_size=1, max_size=3), AMOUNTS)
def test_a_pod_within_its_defaults_and_bounds_is_never_refused(
    given_limits: list[str], default: str
) -> None:
    """What the defaults fill in must pass the bounds that they come with."""
    cluster = a_cluster()
    limit = {"type": "Container", "default": {"cpu": default}, "defaultRequest": {"cpu": default}}
    cluster.put("limitranges", "l", "ns", spec={"limits": [limit | {"max": {"cpu": "3"}}]})
    containers = [
        container(str(i), resources={"limits": {"cpu": amount}, "requests": {"cpu": amount}})
        for i, amount in enumerate(given_limits)
    ]
    attributes = write("pods", pod("p", *containers, container("without")))
    default_limits(attributes, cluster)
    check_limits(attributes, cluster)


@pytest.mark.parametrize("spec", [{}, {"limits": []}])
def test_a_limit_range_without_limits_limits_nothing(cluster: SmallCluster, spec: Obj) -> None:
    cluster.put("limitranges", "l", "ns", spec=spec)
    thing = pod("p", container())
    default_limits(write("pods", thing), cluster)
    check_limits(write("pods", thing), cluster)
    assert thing == pod("p", container())
