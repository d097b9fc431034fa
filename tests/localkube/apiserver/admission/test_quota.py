"""Quotas; texts as a real kube-apiserver 1.35.8 gave them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from kubeclient.quantity import parse
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.admission.quota import QuotaLedger
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.admission.small_cluster import (
    Record,
    SmallCluster,
    a_cluster,
    container,
    pod,
    refused,
    write,
)

NOW_S = 1_000_000.0


def quota(hard: dict[str, str], name: str = "q", **spec: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"hard": hard} | spec}


def a_ledger(*quotas: Obj) -> tuple[SmallCluster, QuotaLedger]:
    cluster = a_cluster()
    for each in quotas:
        cluster.write("resourcequotas", each)
    ledger = QuotaLedger(cluster, lambda: NOW_S)
    cluster.on_change(ledger.on_change)
    return cluster, ledger


def gpus(count: int, name: str = "p") -> Obj:
    amount = {"nvidia.com/gpu": str(count)}
    return pod(name, container(resources={"limits": amount, "requests": amount}))


def used(ledger: QuotaLedger) -> dict[str, str]:
    return {
        key: text
        for _, _, status in ledger.changed_statuses()
        for key, text in status["used"].items()
    }


def test_what_a_quota_has_no_room_for_is_refused() -> None:
    cluster, ledger = a_ledger(quota({"requests.nvidia.com/gpu": "2", "pods": "10"}))
    cluster.write("pods", gpus(1, "first"))
    with refused() as error:
        ledger.check(write("pods", gpus(2)))
    assert error.value.status["message"] == (
        'pods "p" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, '
        "used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=2"
    )
    ledger.check(write("pods", gpus(1)))


def test_the_aliyun_resources_can_be_limited_too() -> None:
    _, ledger = a_ledger(quota({"requests.aliyun.com/gpu-mem": "4"}))
    amount = {"aliyun.com/gpu-mem": "5"}
    thing = pod("p", container(resources={"limits": amount, "requests": amount}))
    with refused() as error:
        ledger.check(write("pods", thing))
    assert "requested: requests.aliyun.com/gpu-mem=5" in error.value.status["message"]


def test_objects_are_counted_by_their_names() -> None:
    cluster, ledger = a_ledger(quota({"count/configmaps": "1"}))
    config_map = {"metadata": {"name": "c", "namespace": "ns"}}
    cluster.write("configmaps", config_map | {"metadata": {"name": "o", "namespace": "ns"}})
    with refused() as error:
        ledger.check(write("configmaps", config_map))
    assert error.value.status["message"] == (
        'configmaps "c" is forbidden: exceeded quota: q, requested: count/configmaps=1, '
        "used: count/configmaps=1, limited: count/configmaps=1"
    )


def test_everything_that_is_exceeded_is_named() -> None:
    _, ledger = a_ledger(quota({"limits.cpu": "1", "requests.memory": "1Gi"}))
    amount = {"cpu": "2", "memory": "2Gi"}
    thing = pod("p", container(resources={"limits": amount, "requests": amount}))
    with refused() as error:
        ledger.check(write("pods", thing))
    assert error.value.status["message"] == (
        'pods "p" is forbidden: exceeded quota: q, requested: limits.cpu=2,requests.memory=2Gi, '
        "used: limits.cpu=0,requests.memory=0, limited: limits.cpu=1,requests.memory=1Gi"
    )


def test_what_is_limited_must_be_asked_for() -> None:
    _, ledger = a_ledger(quota({"limits.cpu": "1", "requests.memory": "1Gi"}))
    with refused() as error:
        ledger.check(write("pods", pod("p", container(), container("d"))))
    assert error.value.status["message"] == (
        'pods "p" is forbidden: failed quota: q: '
        "must specify limits.cpu for: c,d; requests.memory for: c,d"
    )


def test_a_namespace_without_quotas_has_no_limits() -> None:
    _, ledger = a_ledger()
    ledger.check(write("pods", gpus(1000)))


def test_finished_pods_make_room_at_once() -> None:
    cluster, ledger = a_ledger(quota({"pods": "1", "count/pods": "5"}))
    done = gpus(1, "done")
    cluster.write("pods", done)
    with refused():
        ledger.check(write("pods", gpus(1)))
    cluster.write("pods", done | {"status": {"phase": "Succeeded"}})
    ledger.check(write("pods", gpus(1)))
    assert used(ledger) == {"pods": "0", "count/pods": "1"}


def test_deleted_pods_make_room_at_once() -> None:
    cluster, ledger = a_ledger(quota({"pods": "1"}))
    cluster.write("pods", gpus(1, "gone"))
    cluster.remove("pods", "gone", "ns")
    ledger.check(write("pods", gpus(1)))
    assert used(ledger) == {"pods": "0"}


def test_pods_long_overdue_are_not_charged() -> None:
    cluster, ledger = a_ledger(quota({"pods": "1"}))
    overdue = gpus(1, "stuck")
    overdue["metadata"] |= {
        "deletionTimestamp": "1970-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    cluster.write("pods", overdue)
    ledger.check(write("pods", gpus(1)))


def test_a_new_quota_counts_what_is_there_already() -> None:
    cluster, ledger = a_ledger()
    cluster.write("pods", gpus(2, "before"))
    cluster.write("resourcequotas", quota({"requests.nvidia.com/gpu": "2"}))
    with refused():
        ledger.check(write("pods", gpus(1)))
    cluster.write("resourcequotas", quota({"requests.nvidia.com/gpu": "3"}))
    ledger.check(write("pods", gpus(1)))
    cluster.remove("resourcequotas", "q", "ns")
    ledger.check(write("pods", gpus(100)))


def test_a_server_that_starts_reads_a_namespace_once_for_all_its_quotas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, _ = a_ledger(quota({"pods": "9"}, "a"), quota({"count/pods": "9"}, "b"))
    cluster.write("pods", pod("p"))
    read: list[str] = []

    def seen(record: Record) -> Obj:
        read.append(record.name)
        return record.thing

    monkeypatch.setattr(Record, "obj", seen)
    ledger = QuotaLedger(cluster, lambda: NOW_S)
    assert read.count("p") == 1
    assert used(ledger) == {"pods": "1", "count/pods": "1"}


def test_writing_the_status_of_a_quota_changes_nothing() -> None:
    cluster, ledger = a_ledger(quota({"pods": "1"}))
    cluster.write("pods", gpus(1, "first"))
    statuses = ledger.changed_statuses()
    assert statuses == [("ns", "q", {"hard": {"pods": "1"}, "used": {"pods": "1"}})]
    cluster.write("resourcequotas", quota({"pods": "1"}) | {"status": statuses[0][2]})
    with refused():
        ledger.check(write("pods", gpus(1)))


def test_statuses_are_told_once() -> None:
    _, ledger = a_ledger(quota({"pods": "1"}))
    assert len(ledger.changed_statuses()) == 1
    assert ledger.changed_statuses() == []


SERVICE: Obj = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"ports": [{"port": 80}]}}


@pytest.mark.parametrize(
    ("kind", "more", "counted"),
    [
        ("ClusterIP", {}, {"services": "1", "services.nodeports": "0"}),
        ("NodePort", {}, {"services": "1", "services.nodeports": "1"}),
        ("LoadBalancer", {}, {"services.nodeports": "1", "services.loadbalancers": "1"}),
        (
            "LoadBalancer",
            {"allocateLoadBalancerNodePorts": False},
            {"services.nodeports": "0", "services.loadbalancers": "1"},
        ),
    ],
)
def test_services_count_by_their_type(kind: str, more: Obj, counted: dict[str, str]) -> None:
    cluster, ledger = a_ledger(quota(dict.fromkeys(counted, "9")))
    cluster.write("services", SERVICE | {"spec": SERVICE["spec"] | {"type": kind} | more})
    assert used(ledger) == counted


def test_a_service_that_becomes_a_load_balancer_is_charged_for_the_difference() -> None:
    cluster, ledger = a_ledger(quota({"services": "1", "services.loadbalancers": "0"}))
    old = cluster.write("services", SERVICE | {"spec": {"type": "ClusterIP", "ports": []}})
    new = SERVICE | {"spec": {"type": "LoadBalancer", "ports": []}}
    ledger.check(write("services", old, Operation.UPDATE, old=old))
    with refused() as error:
        ledger.check(write("services", new, Operation.UPDATE, old=old))
    assert "requested: services.loadbalancers=1" in error.value.status["message"]


def test_claims_count_for_their_class_too() -> None:
    names = ["persistentvolumeclaims", "requests.storage"]
    names += [f"gold.storageclass.storage.k8s.io/{name}" for name in names]
    cluster, ledger = a_ledger(quota(dict.fromkeys(names, "9Gi")))
    spec = {"storageClassName": "gold", "resources": {"requests": {"storage": "2Gi"}}}
    metadata = {"name": "c", "namespace": "ns"}
    cluster.write("persistentvolumeclaims", {"metadata": metadata, "spec": spec})
    assert used(ledger) == dict(zip(names, ["1", "2Gi", "1", "2Gi"], strict=True))


CPU = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
ELSEWHERE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "z", "namespaces": ["other"]}
        ]
    }
}


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("Terminating", pod(activeDeadlineSeconds=5), pod()),
        ("NotTerminating", pod(), pod(activeDeadlineSeconds=5)),
        ("BestEffort", pod(), pod("p", container(resources=CPU))),
        ("NotBestEffort", pod("p", container(resources=CPU)), pod()),
        ("PriorityClass", pod(priorityClassName="high"), pod()),
        ("CrossNamespacePodAffinity", pod(affinity=ELSEWHERE), pod()),
    ],
)
def test_scopes_choose_the_pods_that_count(scope: str, inside: Obj, outside: Obj) -> None:
    _, ledger = a_ledger(quota({"pods": "0"}, scopes=[scope]))
    ledger.check(write("pods", outside))
    with refused():
        ledger.check(write("pods", inside))


@pytest.mark.parametrize(
    ("operator", "values", "inside"),
    [
        ("In", ["high"], ["high"]),
        ("NotIn", ["high"], ["low", ""]),
        ("Exists", [], ["high", "low"]),
        ("DoesNotExist", [], [""]),
    ],
)
def test_scope_selectors_choose_priority_classes(
    operator: str, values: list[str], inside: list[str]
) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    _, ledger = a_ledger(quota({"pods": "0"}, scopeSelector={"matchExpressions": [expression]}))
    refusals = [name for name in ("high", "low", "") if _is_refused(ledger, _of_class(name))]
    assert refusals == [name for name in ("high", "low", "") if name in inside]


def _of_class(name: str) -> Attributes:
    return write("pods", pod(**{"priorityClassName": name} if name else {}))  # type: ignore[arg-type]  # spec fields


def _is_refused(ledger: QuotaLedger, attributes: Attributes) -> bool:
    try:
        ledger.check(attributes)
    except ApiError:
        return True
    return False


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, st.integers(0, 3)),
        st.tuples(st.just("finish"), NAMES, st.just(0)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("limit"), st.just("q"), st.integers(0, 4)),
    ),
    max_size=12,
)


@given(STEPS)
def test_the_sums_are_those_of_counting_anew(steps: list[tuple[str, str, int]]) -> None:
    cluster, ledger = a_ledger(quota({"pods": "2", "requests.nvidia.com/gpu": "3"}))
    for step, name, count in steps:
        existing = cluster.get("pods", "ns", name)
        if step == "create" and existing is None:
            attributes = write("pods", gpus(count, name))
            if not _is_refused(ledger, attributes):
                cluster.write("pods", gpus(count, name))
        elif step == "finish" and existing is not None:
            cluster.write("pods", existing | {"status": {"phase": "Failed"}})
        elif step == "delete" and existing is not None:
            cluster.remove("pods", name, "ns")
        elif step == "limit":
            cluster.write(
                "resourcequotas", quota({"pods": "2", "requests.nvidia.com/gpu": str(count)})
            )
        running = [
            thing
            for thing in cluster.list("pods", "ns")
            if (thing.get("status") or {}).get("phase") != "Failed"
        ]
        total = sum(
            int(thing["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
            for thing in running
        )
        fresh = QuotaLedger(cluster, lambda: NOW_S)
        assert len(running) <= 2
        for kept in (ledger, fresh):
            _assert_used(kept, cluster, len(running), total)


def _assert_used(ledger: QuotaLedger, cluster: SmallCluster, pods: int, total: int) -> None:
    ledger._changed.add("ns")
    found = used(ledger)
    assert parse(found["pods"]) == parse(str(pods))
    assert parse(found["requests.nvidia.com/gpu"]) == parse(str(total))
