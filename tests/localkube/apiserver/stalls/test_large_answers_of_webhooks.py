"""A webhook that answers with much keeps nobody else waiting."""

import base64

import orjson
import pytest

from bench.heavy.bodies import CONFIGMAPS, CORE, DRY, Heavy, containers, map_body, pod_body
from tests.localkube.apiserver.admission.hostile_webhook import Call, hostile
from tests.localkube.apiserver.admission.webhook_subject import hook
from tests.localkube.apiserver.stalls.watched import Watched

_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_BIG_MAP = {f"k{n}": "" for n in range(40_000)}
_STEPS = [{"op": "add", "path": f"/data/k{n}", "value": ""} for n in range(9_000)]
_PATCHES = {
    "30,000 containers": [{"op": "add", "path": "/spec/containers", "value": containers(30_000)}],
    "a map of 40,000 keys": [{"op": "add", "path": "/data", "value": _BIG_MAP}],
    "9,000 operations": _STEPS,
}


@pytest.mark.parametrize("name", _PATCHES)
async def test_a_large_patch_of_a_webhook_leaves_the_loop_to_others(
    watched: Watched, name: str
) -> None:
    patch = base64.b64encode(orjson.dumps(_PATCHES[name])).decode()

    async def answers(call: Call) -> None:
        await call.answer(call.review(patchType="JSONPatch", patch=patch))

    is_pod = "containers" in name
    async with hostile(answers) as server:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
        rules = [rule | {"resources": ["pods", "configmaps"]}]
        configuration = {"metadata": {"name": "h"}, "webhooks": [hook(server, "h", rules=rules)]}
        await watched.make(_CONFIGURATIONS, orjson.dumps(configuration))
        await watched.call(Heavy("POST", f"{CONFIGMAPS}{DRY}", map_body(data={})))  # loads aiohttp
        path = f"{CORE}/pods{DRY}" if is_pod else f"{CONFIGMAPS}{DRY}"
        body = pod_body() if is_pod else map_body(data={"a": "b"})
        status, answer = await watched.watched(Heavy("POST", path, body))
    assert status == 201, answer[:500]
    assert len(answer) > 90_000
