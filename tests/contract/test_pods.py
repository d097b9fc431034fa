"""Pod object -> PodRequest: Kubernetes' formula for resources, and constraints."""

from typing import Any

from gpupool.contract.pods import pod_request
from kubeclient.placement import NodeOperator, pod_resources
from kubeclient.selectors import EVERYTHING


def container(name: str = "c", restart: str = "", **requests: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return found | ({"restartPolicy": restart} if restart else {})


def pod(**spec: Any) -> dict[str, Any]:
    metadata = {"uid": "u", "name": "p", "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": [container()], **spec}}


def test_containers_add_up() -> None:
    both = [container("a", cpu="100m", memory="1Mi"), container("b", cpu="1")]
    assert pod_resources(pod(containers=both)) == {"cpu": 1100, "memory": 2**20, "pods": 1}


def test_the_largest_init_container_counts_when_it_is_larger() -> None:
    init = [container("i", cpu="3"), container("j", cpu="2", memory="1Gi")]
    total = pod_resources(pod(containers=[container(cpu="1")], initContainers=init))
    assert total == {"cpu": 3000, "memory": 2**30, "pods": 1}


def test_sidecars_run_beside_the_containers_and_the_init_containers_after_them() -> None:
    init = [container("side", "Always", cpu="1"), container("init", cpu="3")]
    total = pod_resources(pod(containers=[container(cpu="2")], initContainers=init))
    assert total["cpu"] == 4000  # init beside the sidecar; the containers with it need 3
    later = [container("init", cpu="3"), container("side", "Always", cpu="1")]
    total = pod_resources(pod(containers=[container(cpu="2")], initContainers=later))
    assert total["cpu"] == 3000


def test_overhead_comes_on_top() -> None:
    assert pod_resources(pod(containers=[container(cpu="1")], overhead={"cpu": "250m"}))["cpu"] == (
        1250
    )


def resized(spec: str, actual: str, allotted: str, **status: Any) -> int:
    """CPU of a pod whose container asks for one amount, has another and was allotted a third."""
    state = {
        "name": "c",
        "resources": {"requests": {"cpu": actual}},
        "allocatedResources": {"cpu": allotted},
    }
    found = pod(containers=[container(cpu=spec)])
    found["status"] = {"containerStatuses": [state], **status}
    return pod_resources(found)["cpu"]


def test_a_pod_that_shrinks_in_place_counts_as_before_until_it_has_shrunk() -> None:
    assert resized("1", "4", "4") == 4000
    assert resized("1", "4", "1") == 4000  # allotted, but its processes still have more
    assert resized("1", "1", "1") == 1000


def test_a_pod_that_grows_in_place_counts_as_what_it_asks_for() -> None:
    assert resized("4", "1", "1") == 4000
    assert resized("4", "1", "4") == 4000


def test_a_growth_that_the_kubelet_will_never_do_does_not_count() -> None:
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    assert resized("400", "1", "2", conditions=[condition]) == 2000
    assert resized("400", "1", "2", resize="Infeasible") == 2000
    deferred = {**condition, "reason": "Deferred"}
    assert resized("400", "1", "2", conditions=[deferred]) == 400_000


def test_sidecars_and_whole_pods_are_resized_in_place_too() -> None:
    found = pod(
        containers=[container(cpu="1")], initContainers=[container("side", "Always", cpu="1")]
    )
    state = {"name": "side", "resources": {"requests": {"cpu": "3"}}}
    found["status"] = {"initContainerStatuses": [state]}
    assert pod_resources(found)["cpu"] == 4000
    found["spec"]["resources"] = {"requests": {"cpu": "2"}}
    assert pod_resources(found)["cpu"] == 2000
    found["status"]["resources"] = {"requests": {"cpu": "6"}}
    assert pod_resources(found)["cpu"] == 6000


def test_constraints_are_read() -> None:
    term = {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    request = pod_request(
        pod(
            nodeSelector={"b": "2", "a": "1"},
            affinity={"nodeAffinity": required},
            tolerations=[{"key": "k", "operator": "Exists"}],
            containers=[{"name": "c", "ports": [{"containerPort": 1, "hostPort": 8888}]}],
        )
    )
    assert request.node_selector == (("a", "1"), ("b", "2"))
    assert request.node_terms is not None
    assert request.node_terms[0].labels[0].operator is NodeOperator.DOES_NOT_EXIST
    assert request.tolerations[0].exists
    assert request.host_ports[0].port == 8888


def test_unsupported_constraints_are_named() -> None:
    assert pod_request(pod(resourceClaims=[{"name": "x"}])).unsupported == ("spec.resourceClaims",)
    term = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (complaint,) = pod_request(pod(affinity=anti)).unsupported
    assert "cannot be read" in complaint


def test_pod_affinity_defaults_to_the_namespace_of_the_pod() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    elsewhere = {**term, "namespaceSelector": {}}
    rule = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term, elsewhere],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}],
    }
    request = pod_request(pod(affinity={"podAntiAffinity": rule}))
    own, others = request.anti_affinity
    assert (own.namespaces, own.namespace_selector) == (("default",), None)
    assert (others.namespaces, others.namespace_selector) == ((), EVERYTHING)
    assert request.near == ((-5, own),)


def test_spread_constraints_take_the_pods_own_labels_along() -> None:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["revision", "absent"],
        "nodeTaintsPolicy": "Honor",
    }
    made = pod(topologySpreadConstraints=[spread])
    made["metadata"]["labels"] = {"app": "a", "revision": "7"}
    (found,) = pod_request(made).spreads
    assert found.selector.text == "app=a,revision in (7)"
    assert (found.max_skew, found.required, found.min_domains) == (2, True, 1)
    assert (found.honors_affinity, found.honors_taints) == (True, True)


def test_sidecars_take_host_ports_as_well() -> None:
    side = {**container("side", "Always"), "ports": [{"containerPort": 1, "hostPort": 1}]}
    init = {**container("init"), "ports": [{"containerPort": 2, "hostPort": 2}]}
    assert [p.port for p in pod_request(pod(initContainers=[side, init])).host_ports] == [1]


def test_a_part_that_cannot_be_read_keeps_the_pod_pending_and_the_rest_readable() -> None:
    term = {"matchExpressions": [{"key": "gpu", "operator": "FromTheFuture"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    request = pod_request(pod(affinity={"nodeAffinity": required}, containers=[container(cpu="2")]))
    [complaint] = request.unsupported
    assert (
        complaint
        == "node affinity that cannot be read: 'FromTheFuture' is not a valid NodeOperator"
    )
    assert request.resources["cpu"] == 2000


def test_absurd_quantities_are_bounded() -> None:
    both = [container("a", cpu="1e400", memory="-5"), container("b", cpu="1e400")]
    request = pod_request(pod(containers=both, overhead={"cpu": "9E"}))
    assert request.resources == {"cpu": 2**63 - 1, "memory": 0, "pods": 1}


def test_resources_that_are_no_quantities_keep_the_pod_pending() -> None:
    request = pod_request(pod(containers=[container(cpu="1E1000000")]))
    assert request.unsupported == (
        "resources that cannot be read: unable to parse quantity's suffix",
    )


def test_a_toleration_with_an_operator_that_is_not_known_tolerates_nothing() -> None:
    known = [{"key": "a", "operator": "Equal", "value": "5"}, {"key": "b", "operator": "Exists"}]
    newer = {"key": "a", "operator": "Gt", "value": "5"}
    found = pod_request(pod(tolerations=[*known, newer, {"key": "c"}]))
    assert [each.key for each in found.tolerations] == ["a", "b", "c"]
