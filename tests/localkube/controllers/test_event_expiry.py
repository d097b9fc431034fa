"""Events are deleted an hour after they last occurred."""

from pathlib import Path
from typing import Any

from kubeclient.objects import Obj
from kubeclient.resources import EVENTS
from localkube.controllers import event_expiry
from tests.localkube.controllers.desk import desk_for


def event(name: str, **more: Any) -> Obj:
    about = {"kind": "Pod", "namespace": "default", "name": "web"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "Tested", **more}


async def test_an_event_goes_after_an_hour(tmp_path: Path) -> None:
    async with desk_for(tmp_path, event_expiry.CONTROLLER) as desk:
        await desk.create(EVENTS, event("e"))
        await desk.settle()
        assert 3500 < desk.again_s("e") <= 3600
        desk.forward(3590)
        await desk.settle()
        assert await desk.names(EVENTS) == ["e"]
        desk.forward(20)
        await desk.settle()
        assert await desk.names(EVENTS) == []


async def test_an_event_that_happens_again_stays(tmp_path: Path) -> None:
    async with desk_for(tmp_path, event_expiry.CONTROLLER) as desk:
        await desk.create(EVENTS, event("e"))
        desk.forward(3000)
        again = desk.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await desk.patch(EVENTS, "e", {"lastTimestamp": again, "count": 2})
        desk.forward(1000)
        await desk.settle()
        assert await desk.names(EVENTS) == ["e"]


async def test_a_new_event_about_an_old_time_stays(tmp_path: Path) -> None:
    async with desk_for(tmp_path, event_expiry.CONTROLLER) as desk:
        await desk.create(EVENTS, event("e", lastTimestamp="2020-01-01T00:00:00Z"))
        await desk.settle()
        assert await desk.names(EVENTS) == ["e"]


async def test_an_event_of_the_last_year_can_be_kept(tmp_path: Path) -> None:
    async with desk_for(tmp_path, event_expiry.CONTROLLER) as desk:
        await desk.create(EVENTS, event("e", lastTimestamp="9999-12-31T23:59:59Z"))
        await desk.settle()
        assert desk.again_s("e") > 0
