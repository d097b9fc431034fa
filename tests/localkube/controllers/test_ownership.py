"""Ownership: adoption, release, and the lookup of orphans and owners."""

from typing import Any

import pytest

from kubeclient.client import Kube
from kubeclient.mirror import Mirror, key_of
from kubeclient.objects import Obj
from kubeclient.resources import PODS, REPLICA_SETS
from kubeclient.selectors import NOTHING
from localkube.controllers.ownership import (
    Adopters,
    add_indexes,
    candidates,
    judge,
    selector_of,
)
from localkube.controllers.run import Context

CONTEXT: Context = None  # type: ignore[assignment]  # the keys do not need one


def owner(name: str = "web", uid: str = "u", namespace: str = "default", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace, "uid": uid}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


def pod(
    name: str, app: str = "web", owned_by: str = "", kind: str = "ReplicaSet", **more: Any
) -> Obj:
    metadata: Obj = {"name": name, "namespace": "default", "labels": {"app": app, "x": "y"}, **more}
    if owned_by:
        reference = {"kind": kind, "name": "web", "uid": owned_by, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"metadata": metadata}


def fits(obj: Obj) -> bool:
    return bool(obj["metadata"]["labels"]["app"] == "web")


def names(objects: list[Obj]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


FOUND = [
    pod("own", owned_by="u"),
    pod("own-but-changed", "else", owned_by="u"),
    pod("of-another", owned_by="v"),
    pod("orphan"),
    pod("orphan-of-others", "else"),
    pod("orphan-on-its-way-out", deletionTimestamp="2026-01-01T00:00:00Z"),
]


def test_matching_objects_are_kept_or_adopted_and_others_released() -> None:
    found = judge(owner(), FOUND, fits)
    assert names(found.keep) == ["own"]
    assert names(found.adopt) == ["orphan"]
    assert names(found.release) == ["own-but-changed"]


def test_an_owner_on_its_way_out_neither_adopts_nor_releases() -> None:
    leaving = owner()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = judge(leaving, FOUND, fits)
    assert (names(found.keep), found.adopt, found.release) == (["own"], [], [])


@pytest.mark.parametrize(
    ("selector", "is_one"),
    [
        ({"matchLabels": {"a": "b"}}, True),
        ({"a": "b"}, True),  # a ReplicationController's
        ({}, False),
        (None, False),
        ({"matchExpressions": [{"key": "a", "operator": "Unheard"}]}, False),
    ],
)
def test_a_selector_that_selects_all_or_nothing_owns_nothing(
    selector: Obj | None, is_one: bool
) -> None:
    assert (selector_of(owner(selector=selector)) != NOTHING) == is_one


def mirrored(*objects: Obj) -> Mirror:
    mirror = Mirror(Kube(None), PODS)  # type: ignore[arg-type]  # never used
    add_indexes(mirror)
    for obj in objects:
        mirror._put(key_of(obj), obj)
    return mirror


def test_orphans_are_found_by_one_label() -> None:
    found = mirrored(*FOUND)
    assert sorted(names(candidates(found, owner()))) == [
        "orphan",
        "orphan-on-its-way-out",
        "own",
        "own-but-changed",
    ]
    by_expression = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert len(candidates(found, owner(selector=by_expression))) == 5
    assert names(candidates(found, owner(namespace="other", uid="w"))) == []


def adopters(*owners: Obj) -> Adopters:
    made = Adopters("ReplicaSet")
    mirror = Mirror(Kube(None), REPLICA_SETS)  # type: ignore[arg-type]
    made.follow(mirror)
    for each in owners:
        mirror._put(key_of(each), each)
    return made


def test_an_object_concerns_its_owner_and_an_orphan_all_that_would_take_it() -> None:
    keys = adopters(owner(), owner("other", selector={"matchLabels": {"x": "y"}})).keys()
    assert list(keys(pod("a", owned_by="u"), CONTEXT)) == [("default", "web")]
    assert list(keys(pod("a", owned_by="u", kind="Job"), CONTEXT)) == []
    assert sorted(keys(pod("a"), CONTEXT)) == [("default", "other"), ("default", "web")]
    assert list(keys(pod("a", "else"), CONTEXT)) == [("default", "other")]
    assert list(keys(pod("a", deletionTimestamp="2026-01-01T00:00:00Z"), CONTEXT)) == []


def test_an_owner_that_has_gone_or_changed_takes_nothing() -> None:
    made = adopters(owner())
    changed = owner(selector={"matchLabels": {"app": "else"}})
    made._changed(owner(), changed)
    assert list(made.keys()(pod("a"), CONTEXT)) == []
    assert list(made.keys()(pod("a", "else"), CONTEXT)) == [("default", "web")]
    made._changed(changed, None)
    assert list(made.keys()(pod("a", "else"), CONTEXT)) == []
    assert made._by_label == {}
