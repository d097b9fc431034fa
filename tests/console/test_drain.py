"""What a drain does with pods."""

import asyncio
from typing import Any

from gpupool.console.drain import Drain, Drains, Fate, Phase, fate_of
from kubeclient.errors import NotFound, Refused, TooMany
from kubeclient.objects import Obj

NODE: Obj = {"metadata": {"name": "n", "uid": "n-1"}, "spec": {"unschedulable": True}}


def pod(name: str, owner: str = "ReplicaSet", phase: str = "Running", **spec: object) -> Obj:
    owners = [{"kind": owner, "name": "o", "controller": True}] if owner else []
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"{name}-1",
            "ownerReferences": owners,
        },
        "spec": spec,
        "status": {"phase": phase},
    }


def test_pods_of_daemon_sets_and_of_the_node_stay() -> None:
    assert fate_of(pod("d", "DaemonSet")) is Fate.STAYS
    static = pod("s", "Node")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert fate_of(static) is Fate.STAYS


def test_what_would_be_lost_is_told_apart() -> None:
    scratch = [{"name": "s", "emptyDir": {}}]
    assert fate_of(pod("a")) is Fate.GOES
    assert fate_of(pod("a", "")) is Fate.LOST
    assert fate_of(pod("a", volumes=scratch)) is Fate.LOSES_DATA
    limiter = [{"name": "gpupool-region-0", "emptyDir": {"medium": "Memory"}}]
    assert fate_of(pod("a", volumes=limiter)) is Fate.GOES, "admission has put it there"
    assert fate_of(pod("a", "", "Succeeded")) is Fate.GOES, "it has ended: nothing is lost"


class Server:
    """An API server with one node, on which pods end as soon as they are evicted."""

    def __init__(self, *pods: Obj) -> None:
        self.pods = {each["metadata"]["name"]: each for each in pods}
        self.refusals: dict[str, Refused] = {}
        self.node: Obj | None = NODE

    async def get(self, _: object, name: str) -> Obj:
        if self.node is None:
            raise NotFound({"message": f"no {name}"})
        return self.node

    async def list(self, _: object, *, query: dict[str, str]) -> Any:
        assert query == {"fieldSelector": "spec.nodeName=n"}
        return type("Listing", (), {"items": list(self.pods.values())})

    async def evict(self, pod: Obj) -> None:
        name = pod["metadata"]["name"]
        if name in self.refusals:
            raise self.refusals[name]
        del self.pods[name]


async def drained(server: Server, until: Phase | None = None) -> Drain:
    """As it is when it has ended; or, while it goes on, when something holds it back."""
    changes: asyncio.Queue[None] = asyncio.Queue()
    drain = Drain("n", "n-1", lambda: changes.put_nowait(None))
    drains = Drains()
    drains.begin(server, drain)  # type: ignore[arg-type]
    while drain.phase is Phase.RUNNING and not (until and drain.held):
        await asyncio.wait_for(changes.get(), 60)
    await drains.stop("n", "enough")
    return drain


async def test_a_node_is_drained_and_daemon_sets_stay() -> None:
    server = Server(pod("a"), pod("b"), pod("d", "DaemonSet"))
    drain = await drained(server)
    assert (drain.phase, drain.left, drain.total) == (Phase.DONE, (), 2)
    assert list(server.pods) == ["d"]


async def test_what_holds_it_back_is_told_and_the_rest_goes() -> None:
    server = Server(pod("a"), pod("b"))
    causes = [{"message": "budget b needs 1"}]
    details = {"causes": causes}
    server.refusals["b"] = TooMany({"code": 429, "message": "Not now.", "details": details})
    drain = await drained(server, until=Phase.RUNNING)
    assert drain.held == {("default", "b"): "Not now. budget b needs 1"}
    assert (drain.phase, drain.why) == (Phase.STOPPED, "enough")
    assert list(server.pods) == ["b"]


async def test_it_stops_when_somebody_wants_the_node_again() -> None:
    server = Server(pod("a"))
    server.node = {**NODE, "spec": {}}
    drain = await drained(server)
    assert drain.phase is Phase.STOPPED
    assert "schedulable again" in drain.why
    assert list(server.pods) == ["a"]


async def test_another_node_of_the_same_name_is_left_alone() -> None:
    server = Server(pod("a"))
    server.node = {**NODE, "metadata": {"name": "n", "uid": "n-2"}}
    assert (await drained(server)).phase is Phase.STOPPED
    assert list(server.pods) == ["a"]


async def test_a_node_that_is_gone_is_drained() -> None:
    server = Server(pod("a"))
    server.node = None
    assert (await drained(server)).phase is Phase.DONE


async def test_an_expired_token_ends_it_with_the_servers_words() -> None:
    server = Server(pod("a"))
    server.refusals["a"] = Refused({"code": 401, "message": "Unauthorized"})
    drain = await drained(server)
    assert (drain.phase, drain.why) == (Phase.FAILED, "Unauthorized")
