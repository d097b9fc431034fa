"""Many clients at once: each version has one winner, and no limit is passed.

Between reading and writing the server waits only for admission webhooks. Here every admission
waits, for a random time, so that all orders occur.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes
from localkube.apiserver.admission.chain import Admission
from localkube.apiserver.verbs import metadata
from tests.faults.api_child import Nursery, running
from tests.faults.client import connected
from tests.faults.in_process import Served

CORE = "/api/v1/namespaces/one"
MAPS = f"{CORE}/configmaps"
PODS = f"{CORE}/pods"
MERGE = "application/merge-patch+json"

Outcome = tuple[int, Obj]


@pytest.fixture(params=range(3))
def served(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    draw = random.Random(request.param)
    mutate, validate = Admission.mutate, Admission.validate

    async def wait() -> None:
        for _ in range(draw.randrange(6)):
            await asyncio.sleep(0)

    async def slow_mutate(self: Admission, attributes: Attributes) -> Attributes:
        await wait()
        return await mutate(self, attributes)

    async def slow_validate(self: Admission, attributes: Attributes) -> None:
        await wait()
        await validate(self, attributes)

    monkeypatch.setattr(Admission, "mutate", slow_mutate)
    monkeypatch.setattr(Admission, "validate", slow_validate)
    made = Served(tmp_path, ("one",))
    yield made
    made.close()


def all_at_once(served: Served, requests: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    async def gathered() -> list[Any]:
        return await asyncio.gather(*requests)

    return served.loop.run_until_complete(gathered())


def config_map(name: str, **data: str) -> Obj:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str) -> Obj:
    container = {"name": "main", "image": "image"}
    return {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": [container]}}


def codes(outcomes: list[Outcome]) -> Counter[int]:
    return Counter(code for code, _ in outcomes)


def test_one_update_of_each_version_wins(served: Served) -> None:
    path = f"{MAPS}/counter"
    served.call("POST", MAPS, config_map("counter", count="0"))
    won: Counter[str] = Counter()

    async def count() -> None:
        for _ in range(10):
            _, obj = await served.acall("GET", path, None, {})
            version = obj["metadata"]["resourceVersion"]
            obj["data"]["count"] = str(int(obj["data"]["count"]) + 1)
            code, _ = await served.acall("PUT", path, obj, {})
            assert code in (200, 409)
            won[version] += code == 200

    all_at_once(served, [count() for _ in range(50)])
    assert set(won.values()) <= {0, 1}
    total = sum(won.values())
    assert served.call("GET", path)[1]["data"] == {"count": str(total)}
    assert total > 10


@pytest.mark.parametrize("media", ["merge-patch+json", "strategic-merge-patch+json"])
def test_no_patch_is_lost(served: Served, media: str) -> None:
    """Patches without a version are tried again on what others have made of it."""
    served.call("POST", MAPS, config_map("shared"))
    media = f"application/{media}"
    requests = [
        served.acall("PATCH", f"{MAPS}/shared", {"data": {f"k{n}": "1"}}, {}, media)
        for n in range(4)
    ]
    outcomes = all_at_once(served, requests)
    assert codes(outcomes) == {200: 4}
    assert len(served.call("GET", f"{MAPS}/shared")[1]["data"]) == 4


def test_no_applied_field_is_lost(served: Served) -> None:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    requests = [
        served.acall(
            "PATCH",
            f"{MAPS}/shared",
            head | config_map("shared", **{f"k{n}": "1"}),
            {"fieldManager": f"m{n}"},
            "application/apply-patch+yaml",
        )
        for n in range(4)
    ]
    outcomes = all_at_once(served, requests)
    made = served.call("GET", f"{MAPS}/shared")[1]
    kept = {f"k{n}" for n, (code, _) in enumerate(outcomes) if code in (200, 201)}
    assert set(made["data"]) == kept
    assert codes(outcomes)[201] == 1
    assert set(codes(outcomes)) <= {200, 201, 409}
    assert len(made["metadata"]["managedFields"]) == len(kept)


def test_one_of_many_creations_wins(served: Served) -> None:
    requests = [served.acall("POST", MAPS, config_map("a", n=str(n)), {}) for n in range(50)]
    outcomes = all_at_once(served, requests)
    assert codes(outcomes) == {201: 1, 409: 49}
    (winner,) = (obj for code, obj in outcomes if code == 201)
    assert served.call("GET", f"{MAPS}/a")[1] == winner


def test_one_of_many_binders_wins(served: Served) -> None:
    served.call("POST", PODS, pod("p"))
    requests = []
    for number in range(20):
        node = f"n{number}"
        body = {
            "metadata": {"name": "p", "annotations": {"card": node}},
            "target": {"kind": "Node", "name": node},
        }
        requests.append(served.acall("POST", f"{PODS}/p/binding", body, {}))
    outcomes = all_at_once(served, requests)
    assert codes(outcomes) == {201: 1, 409: 19}
    winner = next(n for n, (code, _) in enumerate(outcomes) if code == 201)
    bound = served.call("GET", f"{PODS}/p")[1]
    assert bound["spec"]["nodeName"] == bound["metadata"]["annotations"]["card"] == f"n{winner}"


def test_a_quota_is_never_passed(served: Served) -> None:
    hard = {"configmaps": "10", "requests.cpu": "5"}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    served.call("POST", f"{CORE}/resourcequotas", quota)
    maps = [served.acall("POST", MAPS, config_map(f"c{n}"), {}) for n in range(50)]
    assert codes(all_at_once(served, maps)) == {201: 10, 403: 40}
    wanted = {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}
    pods = []
    for number in range(30):
        body = pod(f"p{number}")
        body["spec"]["containers"][0] |= wanted
        pods.append(served.acall("POST", PODS, body, {}))
    assert codes(all_at_once(served, pods)) == {201: 5, 403: 25}
    swaps = [served.acall("DELETE", f"{MAPS}/c{n}", None, {}) for n in range(50)]
    swaps += [served.acall("POST", MAPS, config_map(f"d{n}"), {}) for n in range(50)]
    random.Random(1).shuffle(swaps)
    all_at_once(served, swaps)
    assert len(served.call("GET", MAPS)[1]["items"]) <= 10


def guarded_pods(served: Served, count: int, allowed: int) -> None:
    budgets = "/apis/policy/v1/namespaces/one/poddisruptionbudgets"
    spec = {"minAvailable": count - allowed, "selector": {"matchLabels": {"app": "x"}}}
    served.call("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
    counts = {"disruptionsAllowed": allowed, "currentHealthy": count, "expectedPods": count}
    status = {"status": {**counts, "desiredHealthy": count - allowed, "observedGeneration": 1}}
    assert served.call("PATCH", f"{budgets}/b/status", status, media=MERGE)[0] == 200
    ready = {"type": "Ready", "status": "True"}
    for number in range(count):
        assert served.call("POST", PODS, pod(f"p{number}"))[0] == 201
        running_status = {"status": {"phase": "Running", "conditions": [ready]}}
        path = f"{PODS}/p{number}/status"
        assert served.call("PATCH", path, running_status, media=MERGE)[0] == 200


def eviction(name: str, **preconditions: str) -> Obj:
    options = {"preconditions": preconditions}
    return {"metadata": {"name": name}, "deleteOptions": options if preconditions else {}}


def test_a_disruption_budget_is_never_overspent(served: Served) -> None:
    guarded_pods(served, count=20, allowed=3)
    requests = [
        served.acall("POST", f"{PODS}/p{n}/eviction", eviction(f"p{n}"), {}) for n in range(20)
    ]
    assert codes(all_at_once(served, requests)) == {201: 3, 429: 17}
    assert len(served.call("GET", PODS)[1]["items"]) == 17


def test_an_eviction_may_name_the_version_of_its_pod(served: Served) -> None:
    guarded_pods(served, count=2, allowed=1)
    path = f"{PODS}/p0"
    version = served.call("GET", path)[1]["metadata"]["resourceVersion"]
    stale = eviction("p0", resourceVersion="1")
    assert served.call("POST", f"{path}/eviction", stale)[0] == 409
    right = eviction("p0", resourceVersion=version)
    assert served.call("POST", f"{path}/eviction", right)[0] == 201, "the stale one cost nothing"
    assert served.call("GET", path)[0] == 404


def test_generated_names_do_not_collide(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "_SUFFIX_ALPHABET", "bc")  # 32 names
    body = {"metadata": {"generateName": "a-"}}
    outcomes = all_at_once(served, [served.acall("POST", MAPS, body, {}) for _ in range(24)])
    made = [obj["metadata"]["name"] for code, obj in outcomes if code == 201]
    assert len(made) == len(set(made)) == len(served.call("GET", MAPS)[1]["items"])
    assert len(made) > 16
    assert set(codes(outcomes)) <= {201, 409}


def test_services_never_share_an_address_or_a_port(served: Served) -> None:
    path = f"{CORE}/services"
    requests = []
    for number in range(50):
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        body = {"metadata": {"name": f"s{number}"}, "spec": spec}
        requests.append(served.acall("POST", path, body, {}))
    outcomes = all_at_once(served, requests)
    assert codes(outcomes) == {201: 50}
    assert len({obj["spec"]["clusterIP"] for _, obj in outcomes}) == 50
    assert len({obj["spec"]["ports"][0]["nodePort"] for _, obj in outcomes}) == 50


async def test_over_real_connections_one_update_of_each_version_wins(
    nursery: Nursery, tmp_path: Path
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    won: Counter[str] = Counter()
    rounds = 8

    with running(nursery, tmp_path / "data") as child:
        async with connected(child) as client:
            await client.call("POST", path, config_map("counter", count="0"))

        async def count() -> None:
            async with connected(child) as client:
                for _ in range(rounds):
                    obj = await client.get(f"{path}/counter")
                    version = obj["metadata"]["resourceVersion"]
                    obj["data"]["count"] = str(int(obj["data"]["count"]) + 1)
                    answer = await client.call("PUT", f"{path}/counter", obj)
                    won[version] += answer.status == 200

        async with asyncio.TaskGroup() as tasks:
            for _ in range(50):
                tasks.create_task(count())
        async with connected(child) as client:
            counted = (await client.get(f"{path}/counter"))["data"]["count"]
    assert set(won.values()) <= {0, 1}
    # Who loses a round lost it to somebody: in lockstep one of the fifty wins each, never fewer.
    assert int(counted) == sum(won.values()) >= rounds
