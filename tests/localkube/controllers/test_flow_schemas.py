"""Flow schemas say whether their priority level exists; mandatory objects come back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import FLOW_SCHEMAS, PRIORITY_LEVELS
from localkube.controllers import flow_schemas
from tests.localkube.controllers.desk import Desk, desk_for


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, flow_schemas.CONTROLLER) as found:
        yield found


async def _condition(desk: Desk, name: str) -> Obj:
    await desk.settle()
    (found,) = (await desk.get(FLOW_SCHEMAS, name))["status"]["conditions"]
    return dict(found)


async def test_the_schemas_of_a_new_cluster_lead_somewhere(desk: Desk) -> None:
    await desk.settle()
    schemas = await desk.all(FLOW_SCHEMAS)
    assert len(schemas) == 11
    states = {each["status"]["conditions"][0]["status"] for each in schemas}
    assert states == {"False"}


async def test_a_schema_says_when_its_level_comes_and_goes(desk: Desk) -> None:
    spec = {"priorityLevelConfiguration": {"name": "mine"}}
    await desk.create(FLOW_SCHEMAS, {"metadata": {"name": "s"}, "spec": spec})
    found = await _condition(desk, "s")
    assert (found["type"], found["status"], found["reason"]) == ("Dangling", "True", "NotFound")
    assert found["message"].endswith('"mine" but there is no such object')
    level = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    await desk.create(PRIORITY_LEVELS, {"metadata": {"name": "mine"}, "spec": level})
    assert (await _condition(desk, "s"))["reason"] == "Found"
    await desk.kube.delete(PRIORITY_LEVELS, "mine")
    assert (await _condition(desk, "s"))["reason"] == "NotFound"


async def test_mandatory_objects_come_back_and_suggested_ones_do_not(desk: Desk) -> None:
    await desk.settle()
    for name in ("exempt", "catch-all", "probes"):
        await desk.kube.delete(FLOW_SCHEMAS, name)
    await desk.kube.delete(PRIORITY_LEVELS, "catch-all")
    await desk.settle()
    names = await desk.names(FLOW_SCHEMAS)
    assert {"exempt", "catch-all"} <= {*names}
    assert "probes" not in names
    assert "catch-all" in await desk.names(PRIORITY_LEVELS)


async def test_the_next_start_renews_only_what_was_left_to_it(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        await desk.patch(FLOW_SCHEMAS, "probes", {"spec": {"matchingPrecedence": 7}})
        own = {"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}}
        change = own | {"spec": {"matchingPrecedence": 7}}
        await desk.patch(FLOW_SCHEMAS, "service-accounts", change)
    async with desk_for(tmp_path) as desk:
        found = {
            each["metadata"]["name"]: each["spec"]["matchingPrecedence"]
            for each in await desk.all(FLOW_SCHEMAS)
        }
    assert (found["probes"], found["service-accounts"]) == (2, 7)
