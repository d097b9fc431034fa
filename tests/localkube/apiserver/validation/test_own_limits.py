"""Objects that a former version took, beyond limits of today: they can be changed, and not grow."""

import copy

import orjson
import pytest

from bench.heavy.bodies import crd_body, wide_schema
from tests.localkube.apiserver.validation.rules_subject import status_updated, updated
from tests.localkube.apiserver.validation.single_changes import Obj

_META = {"uid": "00000000-0000-4000-8000-000000000000", "resourceVersion": "1"}
_STAMP = {"creationTimestamp": "2026-01-01T00:00:00Z"}


def _labels(count: int) -> dict[str, str]:
    return {f"k{number}": "v" for number in range(count)}


def _metadata(**more: object) -> Obj:
    return {"name": "a", "namespace": "default", **_META, **_STAMP, **more}


def _map(count: int) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(labels=_labels(count))}


def _deployment(selector: Obj, affinity: Obj) -> Obj:
    containers = [{"name": "c", "image": "i"}]
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": containers, "affinity": affinity},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(),
        "spec": {"replicas": 1, "selector": selector, "template": template},
    }


def _with_wide_selector(values: int) -> Obj:
    requirement = {"key": "app", "operator": "In", "values": ["a", *_labels(values)]}
    return _deployment({"matchExpressions": [requirement]}, {})


def _with_many_terms(terms: int) -> Obj:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    listed = {"requiredDuringSchedulingIgnoredDuringExecution": [term] * terms}
    return _deployment({"matchLabels": {"app": "a"}}, {"podAntiAffinity": listed})


def _crd(versions: int) -> Obj:
    crd: Obj = orjson.loads(crd_body("wide", wide_schema(1)))
    (first,) = crd["spec"]["versions"]
    more = [first | {"name": f"v{number}", "storage": False} for number in range(2, versions + 1)]
    crd["spec"]["versions"] = [first, *more]
    crd["metadata"] |= {**_META, **_STAMP}
    return crd


_OLD = {
    "labels": _map(1_500),
    "selector": _with_wide_selector(1_500),
    "affinity": _with_many_terms(300),
    "versions": _crd(150),
}


@pytest.mark.parametrize("name", _OLD)
def test_what_was_taken_before_the_limit_can_be_changed(name: str) -> None:
    old = _OLD[name]
    new = copy.deepcopy(old)
    new["metadata"] |= {"finalizers": ["a.test/b"], "annotations": {"a": "b"}}
    if "replicas" in new.get("spec", {}):
        new["spec"]["replicas"] = 3
    assert updated(new, old) == []


def test_a_label_of_too_many_can_be_changed_and_taken_away() -> None:
    old, new = _map(1_500), _map(1_500)
    new["metadata"]["labels"]["k0"] = "w"
    assert updated(new, old) == []
    assert updated(_map(1_200), old) == []


def test_a_status_is_written_whatever_the_labels_are() -> None:
    old = _with_wide_selector(1_500)
    old["metadata"]["labels"] = _labels(1_500)
    new = copy.deepcopy(old)
    new["metadata"]["annotations"] = {"a": "b"}
    new["status"] = {"replicas": 1}
    assert status_updated(new, old) == []


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (_map(1_500), _map(1_501), "metadata.labels"),
        (_map(1_000), _map(1_001), "metadata.labels"),
        (
            _with_many_terms(300),
            _with_many_terms(301),
            "spec.template.spec.affinity.podAntiAffinity",
        ),
        (_crd(150), _crd(151), "spec.versions"),
    ],
)
def test_what_is_beyond_a_limit_does_not_grow(old: Obj, new: Obj, field: str) -> None:
    assert {(reason, where) for reason, where, _ in updated(new, old)} == {
        ("FieldValueTooMany", field)
    }


def test_what_is_beyond_a_limit_is_still_checked() -> None:
    old, new = _map(1_500), _map(1_500)
    new["metadata"]["labels"]["k0"] = "not a value"
    assert {reason for reason, _, _ in updated(new, old)} == {"FieldValueInvalid"}
