"""Pods that are alike are tried once for all of them; pods that are not alike never stand for each
other."""

from typing import Any

import pytest

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from kubeclient.objects import Obj
from tests.scheduler.model_api import UNITS
from tests.scheduler.stepped import Stepped

INDEX = "batch.kubernetes.io/job-completion-index"
HOST = "kubernetes.io/hostname"


def one_node() -> Stepped:
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    return stepped


async def fill(stepped: Stepped, **spec: Any) -> None:
    """Both cards of the node are taken."""
    for name in ("first", "second"):
        stepped.api.add_pod(name, UNITS, spec=spec)
    assert {"first", "second"} <= await stepped.settle()


def add_job(stepped: Stepped, count: int, **spec: Any) -> None:
    for number in range(count):
        labels = {"job-name": "j", INDEX: str(number)}
        stepped.api.add_pod(f"j-{number}", UNITS, labels=labels, spec=spec)


async def tries_after(stepped: Stepped, ended: str) -> int:
    before = stepped.tries
    stepped.api.delete_pod(ended)
    await stepped.settle()
    return stepped.tries - before


def anti_affinity(**labels: str) -> Obj:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(**labels: str) -> Obj:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "maxSkew": 100,
    "topologyKey": HOST,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"job-name": "j"}},
}


@pytest.mark.parametrize("count", [20, 200])
@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"topologySpreadConstraints": [SPREAD]},
        {"affinity": near(**{"job-name": "j"})},
        {"affinity": anti_affinity(app="other")},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
    ],
    ids=["plain", "spread", "affinity", "anti-affinity", "volume"],
)
async def test_however_many_pods_of_a_job_wait_the_end_of_another_pod_costs_two_tries(
    count: int, spec: Obj
) -> None:
    """One finds the room, and the next one finds none."""
    stepped = one_node()
    named = {"name": "data", "namespace": "default", "uid": "c"}
    bound = {"metadata": named, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    stepped.state.volume_claim_changed(None, bound)
    csi = {"driver": "files.example", "volumeHandle": "v"}
    volume = {"metadata": {"name": "v"}, "spec": {"claimRef": named, "csi": csi}}
    stepped.state.volume_changed(None, volume)
    await fill(stepped)
    add_job(stepped, count, **spec)
    await stepped.settle()
    assert await tries_after(stepped, "first") == 2
    assert await tries_after(stepped, "second") == 2
    assert stepped.api.pods["j-1"]["spec"].get("nodeName")


async def test_a_change_that_helps_nobody_costs_one_try_for_a_whole_job() -> None:
    stepped = one_node()
    await fill(stepped)
    add_job(stepped, 100)
    await stepped.settle()
    before = stepped.tries
    stepped.state.wake()
    await stepped.settle()
    assert stepped.tries - before == 1


async def test_a_late_member_that_fits_nowhere_does_not_keep_a_smaller_one_waiting() -> None:
    stepped = one_node()
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "1"}
    for name, units in (("member", UNITS), ("other", UNITS), ("big", 100), ("small", 1)):
        stepped.api.add_pod(name, units, labels=labels if name != "other" else {})
        await stepped.settle()
    stepped.api.delete_pod("other")
    assert await stepped.settle() == {"member", "small"}


async def test_a_pod_that_is_not_supported_does_not_keep_others_waiting() -> None:
    stepped = one_node()
    await fill(stepped)
    stepped.api.add_pod("claims", UNITS, spec={"resourceClaims": [{"name": "gpu"}]})
    stepped.api.add_pod("plain", UNITS)
    await stepped.settle()
    stepped.api.delete_pod("first")
    assert await stepped.settle() == {"second", "plain"}


async def test_a_pod_that_held_pods_keep_off_does_not_keep_others_waiting() -> None:
    stepped = one_node()
    await fill(stepped, affinity=anti_affinity(app="a"))
    stepped.api.add_pod("disliked", UNITS, labels={"app": "a"})
    stepped.api.add_pod("other", UNITS, labels={"app": "b"})
    await stepped.settle()
    stepped.api.delete_pod("first")
    assert await stepped.settle() == {"second", "other"}


async def test_pods_that_were_alike_are_told_apart_when_a_pod_with_anti_affinity_comes() -> None:
    stepped = one_node()
    await fill(stepped)
    for name in ("a", "b"):
        stepped.api.add_pod(name, UNITS, labels={"app": name})
    await stepped.settle()
    stepped.api.add_pod("jealous", 0, priority=1, spec={"affinity": anti_affinity(app="a")})
    assert "jealous" in await stepped.settle()
    stepped.api.delete_pod("first")
    assert await stepped.settle() == {"second", "jealous", "b"}
    stepped.api.delete_pod("jealous")
    stepped.api.delete_pod("second")
    assert await stepped.settle() == {"a", "b"}


async def test_pods_are_told_apart_also_while_one_of_them_is_about_to_be_tried() -> None:
    """The room and the pod with anti-affinity come at the same time."""
    stepped = one_node()
    await fill(stepped)
    for name in ("a", "b"):
        stepped.api.add_pod(name, UNITS, labels={"app": name})
    await stepped.settle()
    stepped.api.delete_pod("first")
    stepped.api.add_pod("jealous", 0, priority=1, spec={"affinity": anti_affinity(app="a")})
    assert await stepped.settle() == {"second", "jealous", "b"}


async def test_new_labels_of_a_namespace_wake_pods_that_held_pods_kept_off() -> None:
    stepped = one_node()
    team: Obj = {"metadata": {"name": "default", "labels": {"team": "red"}}}
    stepped.state.namespace_changed(None, team)
    affinity = anti_affinity(app="a")
    (term,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    term["namespaceSelector"] = {"matchLabels": {"team": "red"}}
    stepped.api.add_pod("jealous", 1, namespace="other", spec={"affinity": affinity})
    assert await stepped.settle() == {"jealous"}
    stepped.api.add_pod("a", 1, labels={"app": "a"})
    assert await stepped.settle() == {"jealous"}
    changed: Obj = {"metadata": {"name": "default", "labels": {"team": "blue"}}}
    stepped.state.namespace_changed(team, changed)
    assert await stepped.settle() == {"jealous", "a"}
    tries = stepped.tries
    stepped.state.namespace_changed(changed, changed)
    await stepped.settle()
    assert stepped.tries == tries
