"""CRDs that change or go while requests for their objects are under way."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CRDS
from tests.localkube.apiserver.conversion.converting import (
    NEW,
    OLD,
    Registry,
    a_registry,
    person,
    sensible,
)

NAME = "people.example.com"
NOT_SERVED = "the server could not find the requested resource"


class Gate:
    """A webhook that waits."""

    def __init__(self) -> None:
        self.asked, self.opened = asyncio.Event(), asyncio.Event()

    async def convert(self, request: Obj) -> Any:
        self.asked.set()
        await self.opened.wait()
        return sensible(request)

    async def admit(self, request: Obj) -> Obj:
        self.asked.set()
        await self.opened.wait()
        return {"allowed": True}


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    async with a_registry(tmp_path) as made:
        await made.define()
        yield made


async def _without(registry: Registry, version: str) -> None:
    found = await registry.kube.get(CRDS, NAME)
    kept = [each for each in found["spec"]["versions"] if each["name"] != version]
    await registry.kube.update(CRDS, found | {"spec": found["spec"] | {"versions": kept}})


async def _terminate(registry: Registry) -> None:
    """As the controller that empties it says."""
    await registry.kube.delete(CRDS, NAME)
    found = await registry.kube.get(CRDS, NAME)
    condition = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
        "lastTransitionTime": found["metadata"]["deletionTimestamp"],
    }
    conditions = [*found["status"]["conditions"], condition]
    path = CRDS.path(name=NAME, subresource="status")
    await registry.kube.patch(path, {"status": {"conditions": conditions}})


async def test_a_watch_of_a_version_that_goes_ends_with_an_error(registry: Registry) -> None:
    await registry.kube.create(OLD, person("v1beta1", "ada", "Ada L"))
    events: list[Obj] = []
    async with asyncio.timeout(30):
        async for chunk in registry.kube.watch(OLD):
            events += map(orjson.loads, chunk.splitlines())
            if len(events) == 1:
                await _without(registry, "v1beta1")
                await registry.kube.create(NEW, person("v1", "bob", first="B", last="C"))
    assert [event["type"] for event in events] == ["ADDED", "ERROR"]
    assert events[-1]["object"]["message"] == NOT_SERVED


@pytest.mark.parametrize("webhook", ["convert", "admit"])
async def test_what_is_created_while_its_crd_is_emptied_is_refused(
    tmp_path: Path, webhook: str
) -> None:
    gate = Gate()
    async with a_registry(tmp_path, **{webhook: getattr(gate, webhook)}) as registry:
        await registry.define()
        if webhook == "admit":
            await registry.admit("admit", "v1beta1")
        creating = registry.kube.create(OLD, person("v1beta1", "ada", "Ada L"))
        refused = asyncio.create_task(registry.refusal(creating))
        await asyncio.wait_for(gate.asked.wait(), 30)
        await _terminate(registry)
        gate.opened.set()
        code, text = await refused
        assert code == 405
        assert "create not allowed while custom resource definition is terminating" in text
        assert registry.server.api.store.get(NAME, "ns", "ada") is None


@pytest.mark.parametrize("gone", [False, True])
async def test_a_write_that_waits_meets_the_crd_as_it_is_then(tmp_path: Path, gone: bool) -> None:
    gate = Gate()
    async with a_registry(tmp_path, admit=gate.admit) as registry:
        await registry.define()
        await registry.admit("admit", "v1")
        creating = registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        created = asyncio.create_task(creating)
        await asyncio.wait_for(gate.asked.wait(), 30)
        found = await registry.kube.get(CRDS, NAME)
        if gone:
            await registry.kube.delete(CRDS, NAME)
            finalizers: Obj = {"metadata": {"finalizers": []}}
            await registry.kube.patch(CRDS.path(name=NAME), finalizers)
        else:
            names = found["spec"]["names"] | {"shortNames": ["who"]}
            await registry.kube.update(CRDS, found | {"spec": found["spec"] | {"names": names}})
        gate.opened.set()
        if gone:
            assert await registry.refusal(created) == (404, NOT_SERVED)
        else:
            assert (await created)["spec"] == {"first": "Ada", "last": "L"}
