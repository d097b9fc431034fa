"""What a pod gets that its author left out."""

from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.containers import pull_policy
from localkube.apiserver.defaults.server_fields import set_fields_on_create
from localkube.apiserver.kinds import builtin_kinds

POD = next(kind for kind in builtin_kinds() if kind.resource == "pods")
DIGEST = f"sha256:{'0' * 64}"


def stored(**spec: Any) -> Obj:
    metadata = {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "x"}}
    obj: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    apply_defaults(obj, POD)
    set_fields_on_create(obj, POD)
    return obj


def container(**fields: Any) -> Obj:
    return {"name": "c", "image": "i", **fields}


def stored_container(**fields: Any) -> Obj:
    made: Obj = stored(containers=[container(**fields)])["spec"]["containers"][0]
    return made


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("host:5000/team/nginx", "Always"),
        ("host:5000/team/nginx:1", "IfNotPresent"),
        (f"nginx@{DIGEST}", "IfNotPresent"),
        (f"nginx:latest@{DIGEST}", "Always"),
        ("0" * 64, "IfNotPresent"),
        ("Not An Image", "IfNotPresent"),
        ("", "IfNotPresent"),
        ("a" * 100_000, "IfNotPresent"),
    ],
)
def test_an_image_without_a_fixed_tag_is_pulled_always(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_limits_stand_in_for_requests_that_are_absent() -> None:
    limits = {"cpu": 2, "memory": "2048Mi", "nvidia.com/gpu": "1"}
    made = stored_container(resources={"limits": limits, "requests": {"cpu": "0.5"}})
    assert made["resources"] == {
        "limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1"},
    }


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({}, {"cpu": "1"}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
    ],
)
def test_requests_and_limits_make_the_quality_of_service(
    requests: Obj, limits: Obj, expected: str
) -> None:
    made = stored(containers=[container(resources={"requests": requests, "limits": limits})])
    assert made["status"]["qosClass"] == expected


def test_probes_and_ports_are_completed() -> None:
    made = stored_container(
        ports=[{"containerPort": 80}], livenessProbe={"httpGet": {"port": 80}, "periodSeconds": 0}
    )
    assert made["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert made["livenessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_pods_on_the_hosts_network_take_the_hosts_ports() -> None:
    made = stored(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])
    port = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    assert made["spec"]["containers"][0]["ports"] == [port]


def test_volumes_get_their_file_modes() -> None:
    volumes = [
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "n"},
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    made = stored(containers=[container()], volumes=volumes)["spec"]["volumes"]
    token = {"path": "t", "expirationSeconds": 3600}
    assert made == [
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 420}},
        {"name": "c", "configMap": {"name": "c", "defaultMode": 420}},
        {"name": "n", "emptyDir": {}},
        {
            "name": "t",
            "projected": {"sources": [{"serviceAccountToken": token}], "defaultMode": 420},
        },
    ]


def test_no_time_to_end_becomes_a_second() -> None:
    made = stored(containers=[container()], terminationGracePeriodSeconds=-5)
    assert made["spec"]["terminationGracePeriodSeconds"] == 1


def test_a_gated_pod_says_so() -> None:
    made = stored(containers=[container()], schedulingGates=[{"name": "x.io/g"}])
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")


def test_keys_to_match_become_requirements_with_the_pods_own_values() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["app", "absent"],
    }
    made = stored(containers=[container()], topologySpreadConstraints=[constraint])
    (spread,) = made["spec"]["topologySpreadConstraints"]
    required = {"key": "app", "operator": "In", "values": ["x"]}
    assert spread["labelSelector"] == {"matchExpressions": [required]}


@pytest.mark.parametrize(
    ("status", "address", "addresses"),
    [
        ({"podIP": "10.0.0.1"}, "10.0.0.1", [{"ip": "10.0.0.1"}]),
        ({"podIPs": [{"ip": "10.0.0.1"}]}, "10.0.0.1", [{"ip": "10.0.0.1"}]),
        ({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.9.9.9"}]}, "10.0.0.1", [{"ip": "10.0.0.1"}]),
    ],
)
def test_both_fields_for_an_address_agree(status: Obj, address: str, addresses: list[Obj]) -> None:
    obj: Obj = {"metadata": {"name": "p"}, "spec": {"containers": [container()]}, "status": status}
    apply_defaults(obj, POD)
    assert (obj["status"]["podIP"], obj["status"]["podIPs"]) == (address, addresses)
