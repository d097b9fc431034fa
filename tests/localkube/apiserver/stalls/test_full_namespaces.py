"""A quota for a namespace that is full: it is counted in turns, and exactly."""

import asyncio

import orjson

from bench.heavy.bodies import Heavy
from kubeclient.objects import Obj
from tests.localkube.apiserver.stalls.watched import Watched

_MANY = "/api/v1/namespaces/many"
_PODS = 5_001


def _pod(name: str) -> bytes:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "c", "image": "i", "resources": resources}
    return orjson.dumps({"metadata": {"name": name}, "spec": {"containers": [container]}})


def _quota(name: str, **hard: str) -> bytes:
    return orjson.dumps({"metadata": {"name": name}, "spec": {"hard": hard}})


def _used(watched: Watched) -> dict[str, Obj]:
    return {
        name: status["used"]
        for _, name, status in watched.server.api.admission.quota.changed_statuses()
    }


async def test_a_quota_of_a_full_namespace_leaves_the_loop_to_others(watched: Watched) -> None:
    await asyncio.gather(*(watched.make(f"{_MANY}/pods", _pod(f"p{n}")) for n in range(_PODS)))
    made = Heavy("POST", f"{_MANY}/resourcequotas", _quota("q", pods="5002", cpu="9000"))
    assert (await watched.watched(made))[0] == 201
    assert _used(watched)["q"] == {"pods": str(_PODS), "cpu": str(_PODS)}
    changed = Heavy("PUT", f"{_MANY}/resourcequotas/q", _quota("q", pods="5002", memory="9Ti"))
    assert (await watched.watched(changed))[0] == 200
    assert _used(watched)["q"] == {"pods": str(_PODS), "memory": f"{_PODS}Gi"}
    await watched.make(f"{_MANY}/pods", _pod("last"))
    status, answer = await watched.call(Heavy("POST", f"{_MANY}/pods", _pod("more")))
    assert status == 403
    assert b"used: pods=5002" in answer


async def test_what_changes_while_a_namespace_is_counted_counts(watched: Watched) -> None:
    """Each step of the count lets others go first."""
    for name in ("a", "b", "c"):
        await watched.make(f"{_MANY}/pods", _pod(name))
    ledger = watched.server.api.admission.quota
    quota = orjson.loads(_quota("q", pods="9", cpu="9"))
    quota["metadata"]["namespace"] = "many"
    await ledger.prepare(quota)
    assert (await watched.call(Heavy("DELETE", f"{_MANY}/pods/a?gracePeriodSeconds=0")))[0] == 200
    await watched.make(f"{_MANY}/pods", _pod("d"))
    await watched.make(f"{_MANY}/pods", _pod("e"))
    resized = b'{"metadata":{"labels":{"a":"b"}}}'
    media = "application/merge-patch+json"
    assert (await watched.call(Heavy("PATCH", f"{_MANY}/pods/b", resized, media)))[0] == 200
    watched.server.api.store.create(
        "resourcequotas", quota | {"metadata": quota["metadata"] | {"uid": "u"}}
    )
    assert _used(watched)["q"] == {"pods": "4", "cpu": "4"}
