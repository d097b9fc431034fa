"""Terminating namespaces."""

from collections import Counter
from pathlib import Path

import pytest

from kubeclient.errors import NotFound
from kubeclient.resources import CONFIG_MAPS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from localkube.controllers import namespace
from localkube.controllers.namespace import Left, conditions
from tests.localkube.controllers.desk import Desk, desk_for

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


async def _filled(desk: Desk, *finalizers: str) -> None:
    await desk.kube.create(NAMESPACES, {"metadata": {"name": "full"}})
    metadata = {"name": "c", "namespace": "full", "finalizers": list(finalizers)}
    await desk.kube.create(CONFIG_MAPS, {"metadata": metadata})
    await desk.kube.delete(NAMESPACES, "full")


async def test_everything_goes_and_then_the_namespace(tmp_path: Path) -> None:
    async with desk_for(tmp_path, namespace.CONTROLLER) as desk:
        await _filled(desk)
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(NAMESPACES, "full")
        assert (await desk.kube.list(CONFIG_MAPS, "full")).items == []


async def test_the_conditions_name_what_is_left_in_a_namespace(tmp_path: Path) -> None:
    async with desk_for(tmp_path, namespace.CONTROLLER) as desk:
        await _filled(desk, "example.com/hold")
        await desk.settle()
        found = await desk.kube.get(NAMESPACES, "full")
        said = {c["type"]: c["message"] for c in found["status"]["conditions"]}
        assert said["NamespaceContentRemaining"] == (
            "Some resources are remaining: configmaps. has 1 resource instances"
        )
        assert said["NamespaceFinalizersRemaining"] == (
            "Some content in the namespace has finalizers remaining: "
            "example.com/hold in 1 resource instances"
        )
        assert desk._again_s[0, ("", "full")]
        free = {"metadata": {"finalizers": None}}
        await desk.kube.patch(CONFIG_MAPS.path("full", "c"), free)
        desk.forward(1)
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(NAMESPACES, "full")


async def test_everything_else_stays_until_the_pods_are_gone(tmp_path: Path) -> None:
    async with desk_for(tmp_path, namespace.CONTROLLER) as desk:
        await desk.kube.create(NAMESPACES, {"metadata": {"name": "full"}})
        account = {"metadata": {"name": "default", "namespace": "full"}}
        await desk.kube.create(SERVICE_ACCOUNTS, account)
        await desk.kube.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "full"}})
        held = {"name": "p", "namespace": "full", "finalizers": ["example.com/hold"]}
        spec = {"containers": [{"name": "c", "image": "x"}]}
        await desk.kube.create(PODS, {"metadata": held, "spec": spec})
        await desk.kube.delete(NAMESPACES, "full")
        await desk.settle()
        pod = await desk.kube.get(PODS, "p", "full")
        assert "deletionTimestamp" in pod["metadata"]
        await desk.kube.get(CONFIG_MAPS, "c", "full")  # the pod may still read it
        found = await desk.kube.get(NAMESPACES, "full")
        said = {c["type"]: c["message"] for c in found["status"]["conditions"]}
        assert said["NamespaceContentRemaining"] == (
            "Some resources are remaining: pods. has 1 resource instances"
        )
        assert "example.com/hold in 1" in said["NamespaceFinalizersRemaining"]
        await desk.kube.patch(PODS.path("full", "p"), {"metadata": {"finalizers": None}})
        desk.forward(1)
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(NAMESPACES, "full")
        assert (await desk.kube.list(CONFIG_MAPS, "full")).items == []


async def test_a_namespace_that_stays_is_left_alone(tmp_path: Path) -> None:
    async with desk_for(tmp_path, namespace.CONTROLLER) as desk:
        await desk.kube.create(NAMESPACES, {"metadata": {"name": "stays"}})
        await desk.settle()
        assert (await desk.kube.get(NAMESPACES, "stays"))["status"]["phase"] == "Active"


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    left = Left(Counter({"pods.": 2}), Counter())
    first = {c["type"]: c for c in conditions(left, {}, NOW)}
    fewer = Left(Counter({"pods.": 1}), Counter())
    second = {c["type"]: c for c in conditions(fewer, first, LATER)}
    assert second["NamespaceContentRemaining"]["lastTransitionTime"] == NOW
    assert "1 resource" in second["NamespaceContentRemaining"]["message"]
    none = Left(Counter(), Counter())
    third = {c["type"]: c for c in conditions(none, second, LATER)}
    assert third["NamespaceContentRemaining"]["status"] == "False"
    assert third["NamespaceContentRemaining"]["lastTransitionTime"] == LATER
