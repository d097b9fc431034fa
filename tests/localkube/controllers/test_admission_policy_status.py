"""An admission policy says in its status which form of it has been seen."""

from pathlib import Path

from kubeclient.objects import Obj
from kubeclient.resources import VALIDATING_POLICIES
from localkube.controllers import admission_policy_status
from tests.localkube.controllers.desk import desk_for


def policy(expression: str) -> Obj:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    return {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}],
        },
    }


async def test_each_form_of_a_policy_is_noted(tmp_path: Path) -> None:
    async with desk_for(tmp_path, admission_policy_status.CONTROLLER) as desk:
        await desk.create(VALIDATING_POLICIES, policy("true"))
        await desk.settle()
        found = await desk.get(VALIDATING_POLICIES, "p")
        assert found["status"] == {"observedGeneration": 1, "typeChecking": {}}
        change = {"spec": {"validations": [{"expression": "1 == 1"}]}}
        await desk.patch(VALIDATING_POLICIES, "p", change)
        await desk.settle()
        found = await desk.get(VALIDATING_POLICIES, "p")
        assert found["status"]["observedGeneration"] == 2
