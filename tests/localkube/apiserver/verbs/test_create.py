"""What was free when a write was checked is free when it is stored, though webhooks take time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import CRDS, SERVICES
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.admission.chain import Admission
from tests.localkube.controllers.desk import desk_for


def service(name: str, **spec: Any) -> Obj:
    ports = [{"port": 80, "nodePort": spec.pop("node_port")}] if "node_port" in spec else []
    ports = ports or [{"port": 80}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": ports} | spec}


def crd(plural: str) -> Obj:
    names = {"plural": plural, "kind": "Thing", "singular": plural.removesuffix("s")}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


class Slow:
    """While it judges the first write of this sort, somebody else makes another one."""

    def __init__(self, operation: Operation, meanwhile: Callable[[], Any]) -> None:
        self._operation = operation
        self._meanwhile: Callable[[], Any] | None = meanwhile
        self._validate = Admission.validate

    async def validate(self, admission: Admission, attributes: Attributes) -> None:
        await self._validate(admission, attributes)
        meanwhile = self._meanwhile
        if attributes.operation is self._operation and meanwhile is not None:
            self._meanwhile = None
            await meanwhile()


def slowly(patch: pytest.MonkeyPatch, operation: Operation, meanwhile: Callable[[], Any]) -> None:
    slow = Slow(operation, meanwhile)
    patch.setattr(Admission, "validate", lambda *given: slow.validate(*given))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"clusterIP": "10.96.7.7"}, "failed to allocate IP 10.96.7.7: provided IP is already"),
        ({"type": "NodePort", "node_port": 30777}, "provided port is already allocated"),
    ],
)
async def test_two_services_never_get_one_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Obj, words: str
) -> None:
    async with desk_for(tmp_path) as desk:

        async def other() -> None:
            await desk.kube.create(SERVICES, service("other", **spec))

        slowly(monkeypatch, Operation.CREATE, other)
        with pytest.raises(Refused, match=words):
            await desk.kube.create(SERVICES, service("slow", **spec))
        assert "slow" not in await desk.names(SERVICES)


async def test_a_service_is_not_moved_to_an_address_that_was_given_away_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_for(tmp_path) as desk:
        await desk.kube.create(SERVICES, service("slow", type="NodePort"))

        async def other() -> None:
            await desk.kube.create(SERVICES, service("other", type="NodePort", node_port=30777))

        slowly(monkeypatch, Operation.UPDATE, other)
        change = {"spec": {"ports": [{"port": 80, "nodePort": 30777}]}}
        with pytest.raises(Refused, match="provided port is already allocated"):
            await desk.kube.patch(SERVICES.path("default", "slow"), change)


async def test_two_crds_never_get_one_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk_for(tmp_path) as desk:

        async def other() -> None:
            await desk.kube.create(CRDS, crd("others"))

        slowly(monkeypatch, Operation.CREATE, other)
        with pytest.raises(Refused, match="is defined already"):
            await desk.kube.create(CRDS, crd("slows"))


async def test_a_service_without_wishes_is_stored_as_it_was_judged(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        made = await desk.kube.create(SERVICES, service("plain", type="NodePort"))
        assert made["spec"]["ports"][0]["nodePort"] >= 30000
        again = await desk.kube.patch(
            SERVICES.path("default", "plain"), {"metadata": {"labels": {"a": "b"}}}
        )
        assert again["spec"] == made["spec"]
