"""Events and autoscalers are stored in one version and served in two."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.convert import from_storage, to_storage
from localkube.apiserver.kinds import builtin_kinds

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
EVENT = KINDS["events.k8s.io/v1", "Event"]
V1 = KINDS["autoscaling/v1", "HorizontalPodAutoscaler"]
V2 = KINDS["autoscaling/v2", "HorizontalPodAutoscaler"]
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def resource(name: str, **target: Any) -> Obj:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


CPU = resource("cpu", type="Utilization", averageUtilization=50)
MEMORY = resource("memory", type="AverageValue", averageValue="1Gi")
PODS = {
    "type": "Pods",
    "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}
OBJECT = {
    "type": "Object",
    "object": {
        "describedObject": TARGET,
        "metric": {"name": "m"},
        "target": {"type": "Value", "value": "10"},
    },
}
EXTERNAL = {
    "type": "External",
    "external": {
        "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "AverageValue", "averageValue": "3"},
    },
}
CONTAINER = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "c",
        "target": {"type": "Utilization", "averageUtilization": 5},
    },
}
METRICS = (CPU, MEMORY, PODS, OBJECT, EXTERNAL, CONTAINER)


def autoscaler(metrics: list[Obj], **spec: Any) -> Obj:
    obj: Obj = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"mine": "stays"}},
        "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "metrics": metrics, **spec},
    }
    apply_defaults(obj, V2)
    return obj


def by_content(metrics: list[Obj]) -> list[str]:
    return sorted(map(repr, metrics))


@given(st.lists(st.sampled_from(METRICS), min_size=1, max_size=4, unique_by=repr))
def test_an_autoscaler_read_and_written_by_an_old_client_loses_nothing(metrics: list[Obj]) -> None:
    stored = autoscaler(metrics, behavior={"scaleDown": {"stabilizationWindowSeconds": 9}})
    seen = from_storage(stored, V1)
    apply_defaults(seen, V1)
    back = to_storage(seen, V1)
    apply_defaults(back, V2)
    metrics_back = back["spec"].pop("metrics")
    assert by_content(metrics_back) == by_content(stored["spec"].pop("metrics"))
    assert back == stored


def test_the_old_version_shows_cpu_as_a_percentage_and_the_rest_as_notes() -> None:
    seen = from_storage(autoscaler([CPU, MEMORY]), V1)
    assert seen["apiVersion"] == "autoscaling/v1"
    assert seen["spec"]["targetCPUUtilizationPercentage"] == 50
    assert "metrics" not in seen["spec"]
    notes = seen["metadata"]["annotations"]
    assert notes["mine"] == "stays"
    assert notes["autoscaling.alpha.kubernetes.io/metrics"] == (
        '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
    )


def test_notes_that_are_no_json_are_ignored() -> None:
    seen = from_storage(autoscaler([CPU]), V1)
    seen["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] = "{"
    assert to_storage(seen, V1)["spec"]["metrics"] == [CPU]


NEW_EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "n"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "regarding": {"kind": "Pod", "name": "p"},
    "related": {"kind": "Node", "name": "n"},
    "note": "text",
    "reason": "R",
    "type": "Normal",
    "action": "A",
    "reportingController": "x.io/c",
    "reportingInstance": "i",
    "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
    "deprecatedCount": 3,
    "deprecatedSource": {"component": "c"},
}


@given(st.sets(st.sampled_from(sorted(set(NEW_EVENT) - {"apiVersion", "kind", "metadata"}))))
def test_an_event_comes_back_as_it_was_sent(left_out: set[str]) -> None:
    event = {key: value for key, value in NEW_EVENT.items() if key not in left_out}
    apply_defaults(event, EVENT)
    assert from_storage(to_storage(event, EVENT), EVENT) == event


@pytest.mark.parametrize(
    ("new", "core"),
    [
        ("regarding", "involvedObject"),
        ("note", "message"),
        ("reportingController", "reportingComponent"),
        ("deprecatedSource", "source"),
        ("deprecatedCount", "count"),
    ],
)
def test_an_events_fields_have_older_names_in_the_core_group(new: str, core: str) -> None:
    stored = to_storage(dict(NEW_EVENT), EVENT)
    assert stored["apiVersion"] == "v1"
    assert new not in stored
    assert stored[core] == NEW_EVENT[new]


def test_other_kinds_pass_through() -> None:
    pod: Obj = {"apiVersion": "v1", "kind": "Pod"}
    assert to_storage(pod, KINDS["v1", "Pod"]) is pod
