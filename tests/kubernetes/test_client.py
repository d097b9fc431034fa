"""Our HTTP client and a real kube-apiserver: many requests at once, compressed lists, watches,
conflicts, and requests that are too large. No kubelets, no schedulers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import AlreadyExists, Conflict, Refused
from kubeclient.http1 import Connection
from kubeclient.https import connected
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import LEASES, NODES, PODS, SERVICE_ACCOUNTS
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.kubernetes

MANY = 200
AT_ONCE: Obj = {"gracePeriodSeconds": 0}


@pytest.fixture
async def kube(able: None) -> AsyncIterator[Kube]:
    with ControlPlane() as plane:
        access = await find_access({}, kubeconfig=str(plane.kubeconfig))
        async with connected(access, "test") as made:
            account = {"metadata": {"name": "default", "namespace": "default"}}
            with contextlib.suppress(AlreadyExists):
                await made.create(SERVICE_ACCOUNTS, account)
            yield made


def pod(number: int, filling: int = 2000) -> Obj:
    annotations = {"filling": "x" * filling}
    return {
        "metadata": {"name": f"p{number}", "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": "none", "containers": [{"name": "a", "image": "none"}]},
    }


async def test_many_requests_at_once_and_a_watch_beside_them(
    kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    codings: set[bytes] = set()
    on_header = Connection.on_header

    def noted(self: Connection, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-encoding":
            codings.add(value)
        on_header(self, name, value)

    monkeypatch.setattr(Connection, "on_header", noted)
    await kube.create(NODES, {"metadata": {"name": "n"}})
    mirror = Mirror(kube, PODS)
    is_empty = asyncio.Event()
    mirror.on_change(lambda old, new: None if len(mirror) else is_empty.set())
    following = asyncio.create_task(mirror.run())
    pods = await asyncio.gather(*(kube.create(PODS, pod(number)) for number in range(MANY)))
    assert len((await kube.list(PODS)).items) == MANY
    assert codings == {b"gzip"}
    await asyncio.gather(*(kube.bind(each, "n", {"a": "b"}) for each in pods))
    with pytest.raises(Conflict):
        await kube.bind(pods[0], "n", {})
    gone = (kube.delete(PODS, f"p{number}", "default", options=AT_ONCE) for number in range(MANY))
    await asyncio.gather(*gone)
    async with asyncio.timeout(60):
        await is_empty.wait()
    following.cancel()


async def test_refusals_are_told_and_the_next_request_is_served(kube: Kube) -> None:
    lease = {"metadata": {"name": "l", "namespace": "default"}, "spec": {"holderIdentity": "a"}}
    made = await kube.create(LEASES, lease)
    made["spec"]["holderIdentity"] = "b"
    await kube.update(LEASES, made)
    with pytest.raises(Conflict):
        await kube.update(LEASES, made)
    # The server answers before it has read all of it, and ends the connection.
    with pytest.raises(Refused, match="Request entity too large"):
        await kube.create(PODS, pod(0, filling=4 * 10**6))
    assert (await kube.get(LEASES, "l", "default"))["spec"]["holderIdentity"] == "b"
