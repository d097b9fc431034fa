"""The rules that people meet most: pods."""

from typing import Any

import pytest

from tests.localkube.apiserver.validation import rules_subject
from tests.localkube.apiserver.validation.single_changes import Obj

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
GPU = "nvidia.com/gpu"
FIELD = {"fieldPath": "metadata.name"}


def pod(*containers: Obj, **spec: Any) -> Obj:
    made = containers or (container(),)
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    return {**head, "spec": {"containers": list(made), **spec}}


def container(**fields: Any) -> Obj:
    return {"name": "c", "image": "i", **fields}


def asking(requests: Obj, limits: Obj) -> Obj:
    return pod(container(resources={"requests": requests, "limits": limits}))


def said(obj: Obj) -> list[str]:
    return [f"{field}: {message}" for _, field, message in rules_subject.created(obj)]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod() | {"spec": {}}, "spec.containers: Required value"),
        (pod(container(name="")), "spec.containers[0].name: Required value"),
        (
            pod(container(name="A_B")),
            f'spec.containers[0].name: Invalid value: "A_B": {LABEL}',
        ),
        (
            pod(container(), container()),
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        (pod(container(image="")), "spec.containers[0].image: Required value"),
        (
            pod(container(image=" i")),
            'spec.containers[0].image: Invalid value: " i": must not have leading or trailing'
            " whitespace",
        ),
        (
            pod(container(imagePullPolicy="Sometimes")),
            'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values:'
            ' "Always", "IfNotPresent", "Never"',
        ),
        (
            pod(container(ports=[{"containerPort": 0}])),
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            pod(container(ports=[{"containerPort": 70000}])),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and"
            " 65535, inclusive",
        ),
        (
            pod(container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            pod(container(env=[{"name": "A=B", "value": "x"}])),
            'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable'
            " name must consist only of printable ASCII characters other than '='",
        ),
        (
            pod(container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": FIELD}}])),
            'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when'
            " `value` is not empty",
        ),
    ],
)
def test_a_faulty_container_is_told(obj: Obj, expected: str) -> None:
    assert said(obj) == [expected]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            asking({"cpu": "2"}, {"cpu": "1"}),
            'requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            asking({GPU: "1"}, {GPU: "2"}),
            f'requests: Invalid value: "1": must be equal to {GPU} limit of 2',
        ),
        (
            asking({"cpu": "-1"}, {}),
            'requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
    ],
)
def test_amounts_must_fit_together(obj: Obj, expected: str) -> None:
    assert said(obj) == [f"spec.containers[0].resources.{expected}"]


def test_a_gpu_without_a_limit_is_refused() -> None:
    assert said(asking({GPU: "1"}, {})) == [
        "spec.containers[0].resources.limits: Required value: Limit must be set for non"
        " overcommitable resources"
    ]


def test_half_a_gpu_is_refused() -> None:
    path = f"spec.containers[0].resources.{{}}[{GPU}]"
    wrong = '{}: Invalid value: "500m": must be an integer'
    assert said(asking({}, {GPU: "0.5"})) == [
        wrong.format(path.format("limits")),
        wrong.format(path.format("requests")),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"restartPolicy": "Maybe"},
            'restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure",'
            ' "Never"',
        ),
        (
            {"dnsPolicy": "Mine"},
            'dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet",'
            ' "ClusterFirst", "Default", "None"',
        ),
        (
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            {"tolerations": [{"operator": "Equal", "value": "v"}]},
            'tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is'
            ' empty, which means "match all values and all keys"',
        ),
        (
            {"schedulingGates": [{"name": "x.io/g"}], "nodeName": "n"},
            "nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
            'volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"nodeSelector": {"bad key": "v"}},
            'nodeSelector: Invalid value: "bad key": name part must consist of alphanumeric'
            " characters, '-', '_' or '.', and must start and end with an alphanumeric character"
            " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
            " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ],
)
def test_a_faulty_spec_is_told(spec: Obj, expected: str) -> None:
    assert said(pod(**spec)) == [f"spec.{expected}"]


MAY_CHANGE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions"
    " to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it"
    " was previously negative)\n"
)


def updated(**changes: Any) -> list[str]:
    old = pod(nodeName="n", tolerations=[{"key": "a", "operator": "Exists"}])
    old["metadata"] |= {"namespace": "d", "uid": rules_subject.UID, "resourceVersion": "1"}
    new = {**old, "spec": {**old["spec"], **changes}}
    return [f"{field}: {message}" for _, field, message in rules_subject.updated(new, old)]


@pytest.mark.parametrize(
    "changes",
    [
        {"containers": [container(image="other")]},
        {"activeDeadlineSeconds": 5},
        {"tolerations": [{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]},
    ],
)
def test_a_running_pod_may_change_a_little(changes: Obj) -> None:
    assert updated(**changes) == []


def test_what_changed_is_shown_as_a_difference() -> None:
    (text,) = updated(nodeName="m")
    assert text.startswith(f"spec: {MAY_CHANGE}@@ ")
    assert '\n- "nodeName": "n",\n+ "nodeName": "m",\n' in text


def test_tolerations_may_only_be_added() -> None:
    assert updated(tolerations=[]) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its"
        " tolerationSeconds",
    ]
