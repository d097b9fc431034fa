"""Workloads, services and other kinds: the faults that people make most."""

import copy
from pathlib import Path as File
from typing import Any

import orjson
import pytest

from tests.localkube.apiserver.validation import rules_subject
from tests.localkube.apiserver.validation.single_changes import Change, Obj, changed

FULL = File(__file__).parent / "full_objects.json"
OBJECTS: dict[str, Obj] = orjson.loads(FULL.read_bytes())


def spoilt(name: str, path: str, value: Any) -> Obj:
    steps = tuple(int(step) if step.isdigit() else step for step in path.split("."))
    return changed(OBJECTS[name], Change(steps, value))


def said(obj: Obj) -> list[str]:
    return [f"{field}: {message}" for _, field, message in rules_subject.created(obj)]


CREATED = [
    (
        "Deployment-recreate",
        "spec.selector",
        {"matchLabels": {"other": "x"}},
        'spec.template.metadata.labels: Invalid value: {"a":"b","k":"v","l":"x"}: `selector` does'
        " not match template `labels`",
    ),
    (
        "Deployment",
        "spec.replicas",
        -1,
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ),
    (
        "Deployment",
        "spec.strategy.rollingUpdate",
        {"maxSurge": 0, "maxUnavailable": 0},
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge`"
        " is 0",
    ),
    (
        "Deployment",
        "spec.template.spec.restartPolicy",
        "Never",
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    (
        "Job-plain",
        "spec.template.spec.restartPolicy",
        "Always",
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ),
    (
        "CronJob",
        "spec.schedule",
        "* * * *",
        'spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]',
    ),
    (
        "CronJob",
        "spec.timeZone",
        "Mars/Olympus",
        'spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus',
    ),
    ("Service", "spec.ports.1.name", "", "spec.ports[1].name: Required value"),
    ("Service", "spec.ports.1.name", "a", 'spec.ports[1].name: Duplicate value: "a"'),
    (
        "Secret-tls",
        "data",
        {"tls.crt": "AAAA"},
        "data[tls.key]: Required value",
    ),
    (
        "ConfigMap",
        "data",
        {"b": "in both"},
        'data[b]: Invalid value: "b": duplicate of key present in binaryData',
    ),
    (
        "PodDisruptionBudget",
        "spec.maxUnavailable",
        1,
        'spec: Invalid value: {"maxUnavailable":1,"minAvailable":"50%","selector":'
        '{"matchExpressions":[{"key":"k","operator":"In","values":["v"]},{"key":"k2","operator":'
        '"Exists"}],"matchLabels":{"a":"b"}},"unhealthyPodEvictionPolicy":"AlwaysAllow"}:'
        " minAvailable and maxUnavailable cannot be both set",
    ),
    (
        "PriorityClass",
        "value",
        1_000_000_001,
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
    ),
    (
        "NetworkPolicy",
        "spec.podSelector",
        {"matchExpressions": [{"key": "k", "operator": "NotIn"}]},
        "spec.podSelector.matchExpressions[0].values: Required value: must be specified when"
        " `operator` is 'In' or 'NotIn'",
    ),
    (
        "NetworkPolicy",
        "spec.podSelector",
        {"matchExpressions": [{"key": "k", "operator": "DoesNotExist", "values": ["v"]}]},
        "spec.podSelector.matchExpressions[0].values: Forbidden: may not be specified when"
        " `operator` is 'Exists' or 'DoesNotExist'",
    ),
    (
        "NetworkPolicy",
        "spec.podSelector",
        {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}]},
        'spec.podSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector'
        " operator",
    ),
    (
        "Node",
        "spec.taints.1.effect",
        "NoSchedule",
        'metadata.taints[1]: Duplicate value: {"effect":"NoSchedule","key":"k"}:'
        " taints must be unique by key and effect pair",
    ),
    (
        "ValidatingWebhookConfiguration",
        "webhooks.1.clientConfig.service",
        {"name": "s", "namespace": "n"},
        "webhooks[1].clientConfig: Required value: exactly one of url or service is required",
    ),
    (
        "ValidatingWebhookConfiguration",
        "webhooks.1.clientConfig.url",
        "https://h/\r\nx",
        'webhooks[1].clientConfig.url: Required value: url must be a valid URL: parse "https://h/\\r'
        '\\nx": net/url: invalid control character in URL; desired format: https://host[/path]',
    ),
    (
        "CustomResourceDefinition-one",
        "metadata.name",
        "other.y.io",
        'metadata.name: Invalid value: "other.y.io": must be spec.names.plural+"."+spec.group',
    ),
]


@pytest.mark.parametrize(("name", "path", "value", "expected"), CREATED)
def test_a_fault_is_told_in_kubernetes_words(
    name: str, path: str, value: Any, expected: str
) -> None:
    assert said(spoilt(name, path, value)) == [expected]


@pytest.mark.parametrize(
    ("name", "path", "value", "expected"),
    [
        (
            "Deployment",
            "spec.selector",
            {"matchLabels": {"a": "b"}},
            "spec.selector: Invalid value",
        ),
        (
            "StatefulSet",
            "spec.serviceName",
            "other",
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas',"
            " 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit',"
            " 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ),
        ("Job", "spec.completionMode", "NonIndexed", "spec.completionMode: Invalid value"),
        ("RoleBinding", "roleRef.name", "other", "roleRef: Invalid value"),
        ("PriorityClass", "value", 5, "value: Forbidden: may not be changed in an update."),
        ("Secret", "type", "x", 'type: Invalid value: "x": field is immutable'),
        ("StorageClass", "provisioner", "y.io/p", "provisioner: Forbidden: updates to provisioner"),
    ],
)
def test_what_must_stay_is_told(name: str, path: str, value: Any, expected: str) -> None:
    old = copy.deepcopy(OBJECTS[name])
    old["metadata"] |= {"uid": rules_subject.UID, "resourceVersion": "1"}
    if rules_subject.kind_of(old).namespaced:
        old["metadata"]["namespace"] = "default"
    new = changed(old, Change(tuple(int(s) if s.isdigit() else s for s in path.split(".")), value))
    told = [f"{field}: {message}" for _, field, message in rules_subject.updated(new, old)]
    assert any(text.startswith(expected) for text in told), told


def test_immutable_data_stays() -> None:
    old = {**OBJECTS["ConfigMap"], "immutable": True}
    old["metadata"] = {"name": "c", "namespace": "d", "uid": "u", "resourceVersion": "1"}
    new = {**old, "data": {"k": "other"}}
    causes = rules_subject.updated(new, old)
    assert [cause[1:] for cause in causes] == [
        ("data", "Forbidden: field is immutable when `immutable` is set")
    ]


def test_fewer_active_pods_than_none_are_refused_and_nothing_breaks() -> None:
    old = OBJECTS["Job-plain"]
    causes = rules_subject.status_updated(old | {"status": {"active": -1}}, old)
    fields = [field for _, field, _ in causes]
    assert "status.active" in fields
    assert "status.ready" not in fields, "it was not given"
