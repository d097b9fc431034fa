"""A quota for a namespace that is full: it is counted in turns, and exactly."""

import asyncio

import orjson

from bench.heavy.bodies import Heavy
from kubeclient.objects import Obj
from tests.faults.loop_watchdog import Watchdog
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


async def _fill(watched: Watched) -> None:
    await asyncio.gather(*(watched.make(f"{_MANY}/pods", _pod(f"p{n}")) for n in range(_PODS)))


async def test_a_quota_that_goes_leaves_the_others_as_they_are(watched: Watched) -> None:
    await _fill(watched)
    for name in ("a", "b"):
        body = _quota(name, pods="5002", resourcequotas="9")
        await watched.make(f"{_MANY}/resourcequotas", body)
    gone = Heavy("DELETE", f"{_MANY}/resourcequotas/a")
    assert (await watched.watched(gone))[0] == 200
    assert _used(watched) == {"b": {"pods": str(_PODS), "resourcequotas": "1"}}
    for name in ("p0", "p1"):
        await watched.call(Heavy("DELETE", f"{_MANY}/pods/{name}?gracePeriodSeconds=0"))
    assert _used(watched)["b"]["pods"] == str(_PODS - 2)
    assert (await watched.watched(Heavy("DELETE", f"{_MANY}/resourcequotas/b")))[0] == 200
    assert _used(watched) == {}
    await watched.make(f"{_MANY}/pods", _pod("free"))


async def test_quotas_that_come_and_go_at_once_are_counted_in_turns(watched: Watched) -> None:
    """What one of them has counted is of use, whatever becomes of the others meanwhile."""
    await _fill(watched)
    await watched.make(f"{_MANY}/resourcequotas", _quota("old", pods="5002"))
    path = f"{_MANY}/resourcequotas"
    made = [Heavy("POST", path, _quota(f"q{n}", pods=str(_PODS + n), cpu="9k")) for n in range(3)]
    other = Heavy("POST", "/api/v1/namespaces/default/resourcequotas", _quota("q", pods="9"))
    calls = [*made, other, Heavy("DELETE", f"{path}/old")]
    with Watchdog().watching() as watchdog:
        answers = await asyncio.gather(*(watched.call(each) for each in calls))
    assert not watchdog.stalls, "\n".join(watchdog.stalls)
    assert [status for status, _ in answers] == [201, 201, 201, 201, 200]
    assert _used(watched) == {
        "q": {"pods": "0"},
        **{f"q{n}": {"pods": str(_PODS), "cpu": str(_PODS)} for n in range(3)},
    }
