"""An eviction looks at all disruption budgets of its namespace, which users write."""

import orjson

from bench.heavy.bodies import Heavy
from kubeclient.objects import Obj
from localkube.apiserver.validation.metadata import LABELS_MAX
from tests.localkube.apiserver.stalls.watched import Watched

_PODS = "/api/v1/namespaces/default/pods"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_MERGE = "application/merge-patch+json"


async def _running_pod(watched: Watched) -> None:
    pod: Obj = {
        "metadata": {"name": "p", "labels": {"a": "v1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await watched.make(_PODS, orjson.dumps(pod))
    running = b'{"status":{"phase":"Running"}}'
    assert (await watched.call(Heavy("PATCH", f"{_PODS}/p/status", running, _MERGE)))[0] == 200


async def _budget(watched: Watched, name: str, values: list[str]) -> None:
    wanted = {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}
    budget: Obj = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": wanted}}
    await watched.make(_BUDGETS, orjson.dumps(budget))


async def _evicted(watched: Watched) -> tuple[int, bytes]:
    body = orjson.dumps(
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}},
    )
    return await watched.watched(Heavy("POST", f"{_PODS}/p/eviction", body))


async def test_large_budgets_keep_nobody_waiting(watched: Watched) -> None:
    await _running_pod(watched)
    for number in range(100):
        await _budget(watched, f"large{number}", [f"x{n}" for n in range(LABELS_MAX - 1)])
    assert (await _evicted(watched))[0] == 201


async def test_the_one_of_many_that_counts_is_found(watched: Watched) -> None:
    await _running_pod(watched)
    for number in range(50):
        await _budget(watched, f"small{number}", ["other"])
    await _budget(watched, "right", ["v1"])
    status, answer = await _evicted(watched)
    assert (status, b"disruption budget right" in answer) == (429, True)
