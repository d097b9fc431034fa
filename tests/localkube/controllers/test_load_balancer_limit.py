"""Load balancers within a limit: who waits, who counts, and who counts no more."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kubeclient.errors import Conflict
from kubeclient.resources import SERVICES
from localkube.controllers import load_balancer
from localkube.names import DEFAULT as NAMES
from testbed.processes import free_port
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.test_load_balancer import (
    Pods,
    ask,
    front,
    running,
    service,
)


class Limit:
    """At most so many load balancers."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = 0

    async def more(self, number: int) -> str:
        if number > max(self.most, self.now):
            return f"{number} wanted, {self.most} allowed"
        self.now = max(number, self.now)
        return ""

    async def fewer(self, number: int) -> None:
        self.now = number


async def test_a_service_beyond_the_limit_waits_and_an_event_says_why(tmp_path: Path) -> None:
    pods, limit = Pods(), Limit(1)
    controller = load_balancer.controller(pods.dial, NAMES, limit)
    async with desk_for(tmp_path, controller) as desk:
        await desk.create(SERVICES, service(free_port()))
        other = service(free_port())
        await desk.create(SERVICES, {**other, "metadata": {"name": "other"}})
        assert (await front(desk))[0]
        assert (await front(desk, "other"))[0] == ""
        assert desk.again_s("other") > 0
        desk.forward(5)
        await desk.settle()
        assert desk.events("SyncLoadBalancerFailed") == ["2 wanted, 1 allowed"], "once"
        await desk.kube.delete(SERVICES, "web", "default")
        await desk.settle()
        assert limit.now == 0
        desk.forward(5)
        assert (await front(desk, "other"))[0]
        assert limit.now == 1
        # Another type needs none any more.
        await desk.patch(SERVICES, "other", {"spec": {"type": "NodePort"}})
        await desk.settle()
        assert limit.now == 0
        controller.end()


async def test_after_a_restart_services_have_what_they_had(tmp_path: Path) -> None:
    pods, limit = Pods(), Limit(2)
    first = load_balancer.controller(pods.dial, NAMES, limit)
    async with desk_for(tmp_path, first) as desk:
        await desk.create(SERVICES, service(free_port()))
        other = service(free_port())
        await desk.create(SERVICES, {**other, "metadata": {"name": "other"}})
        await desk.settle()
        assert limit.now == 2
        first.end()
    limit.most = 0  # lowered meanwhile: that takes nothing away
    again = load_balancer.controller(pods.dial, NAMES, limit)
    async with desk_for(tmp_path, again) as desk:
        desk.forward(0)
        assert (await front(desk))[0]
        assert (await front(desk, "other"))[0]
        assert limit.now == 2
        again.end()


async def test_after_a_restart_services_that_went_meanwhile_count_no_more(tmp_path: Path) -> None:
    pods, limit = Pods(), Limit(3)
    limit.now = 3  # the server was killed before it could say that two of them are gone
    controller = load_balancer.controller(pods.dial, NAMES, limit)
    async with desk_for(tmp_path, controller) as desk:
        await desk.create(SERVICES, service(free_port()))
        await desk.settle()
        assert limit.now == 1
        controller.end()


async def _becomes_another_type(desk: Desk) -> None:
    await desk.patch(SERVICES, "web", {"spec": {"type": "ClusterIP"}})


async def _is_deleted_with_a_finalizer(desk: Desk) -> None:
    await desk.patch(SERVICES, "web", {"metadata": {"finalizers": ["example.com/stays"]}})
    await desk.kube.delete(SERVICES, "web", "default")


@pytest.mark.parametrize("goes", [_becomes_another_type, _is_deleted_with_a_finalizer])
async def test_a_service_that_goes_counts_no_more_if_a_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes: Callable[[Desk], Awaitable[None]]
) -> None:
    pods, limit = Pods(), Limit(1)
    controller = load_balancer.controller(pods.dial, NAMES, limit)
    async with desk_for(tmp_path, controller) as desk:
        await desk.create(SERVICES, service(free_port()))
        await desk.settle()
        assert limit.now == 1
        write, failures = load_balancer._write, [Conflict({"message": "changed", "code": 409})]

        async def fails_once(*given: Any) -> None:
            if failures:
                raise failures.pop()
            await write(*given)

        monkeypatch.setattr(load_balancer, "_write", fails_once)
        await goes(desk)
        await desk.settle()
        assert not failures
        assert limit.now == 0
        controller.end()


async def test_a_service_without_a_free_address_counts_not_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods, limit = Pods(), Limit(1)
    controller = load_balancer.controller(pods.dial, NAMES, limit)
    monkeypatch.setattr(load_balancer, "_can_bind", lambda *_: False)
    async with desk_for(tmp_path, controller) as desk:
        await desk.create(SERVICES, service(free_port()))
        await desk.settle()
        assert desk.events("SyncLoadBalancerFailed") == ["no loopback address is free"]
        assert limit.now == 0
        assert desk.again_s("web") > 0
        monkeypatch.undo()
        desk.forward(desk.again_s("web"))
        assert (await front(desk))[0]
        assert limit.now == 1
        controller.end()


async def test_a_service_that_waits_is_reached_by_its_node_port(tmp_path: Path) -> None:
    """As in every cluster: a balancer would only stand before it."""
    pods, limit = Pods(), Limit(0)
    controller = load_balancer.controller(pods.dial, NAMES, limit)
    async with desk_for(tmp_path, controller) as desk:
        await desk.add_node("n")
        await running(desk, pods, "a")
        made = await desk.create(SERVICES, service(443, type="NodePort"))
        number = made["spec"]["ports"][0]["nodePort"]
        await desk.patch(SERVICES, "web", {"spec": {"type": "LoadBalancer"}})
        assert await front(desk) == ("", "")
        assert await ask("127.0.0.1", number) == b"a/443:hi"
        other = await desk.create(SERVICES, {**service(80), "metadata": {"name": "new"}})
        assert await front(desk, "new") == ("", "")
        assert await ask("127.0.0.1", other["spec"]["ports"][0]["nodePort"]) == b"a/80:hi"
        await desk.patch(SERVICES, "new", {"spec": {"type": "ClusterIP"}})
        await desk.settle()
        with pytest.raises(ConnectionRefusedError):
            await ask("127.0.0.1", other["spec"]["ports"][0]["nodePort"])
        controller.end()
