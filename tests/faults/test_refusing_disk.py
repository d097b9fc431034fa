"""Between a write and its commit: nobody is shown it, and when the disk says no it never was."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.store import disk
from localkube.apiserver.store.disk import Change
from tests.faults.in_process import Served

MAPS = "/api/v1/namespaces/one/configmaps"
Outcome = tuple[int, Obj]


class SlowDisk:
    """Commits when it is told to, or refuses to."""

    def __init__(self, commit: Callable[[sqlite3.Connection, Sequence[Change]], None]) -> None:
        self._commit = commit
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self.refuses = False

    def __call__(self, db: sqlite3.Connection, batch: Sequence[Change]) -> None:
        self._may_go_on.wait()
        if self.refuses:
            raise sqlite3.OperationalError("database or disk is full")
        self._commit(db, batch)

    def hold(self) -> None:
        self._may_go_on.clear()

    def let_go(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self._may_go_on.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    made = SlowDisk(disk._commit)
    monkeypatch.setattr(disk, "_commit", made)
    return made


@pytest.fixture
def served(tmp_path: Path, slow: SlowDisk) -> Iterator[Served]:
    made = Served(tmp_path, ("one",))
    yield made
    slow.let_go(refuses=False)
    made.close()


def config_map(name: str, value: str) -> Obj:
    return {"metadata": {"name": name}, "data": {"value": value}}


def race(
    served: Served, slow: SlowDisk, write: Awaitable[Outcome], look: Callable[[], Awaitable[Any]]
) -> Callable[[bool], tuple[Outcome, Any]]:
    """Begins a write and then a look at it; ends both, with a commit that works or does not."""

    async def begin() -> tuple[asyncio.Future[Outcome], asyncio.Future[Any]]:
        slow.hold()
        writing = asyncio.ensure_future(write)
        await asyncio.sleep(0)
        looking = asyncio.ensure_future(look())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not writing.done()
        assert not looking.done(), "it was shown before it was written"
        return writing, looking

    writing, looking = served.loop.run_until_complete(begin())

    def end(refuses: bool) -> tuple[Outcome, Any]:
        slow.let_go(refuses=refuses)
        both = asyncio.gather(writing, looking)
        wrote, seen = served.loop.run_until_complete(both)
        slow.let_go(refuses=False)
        return wrote, seen

    return end


def test_a_new_object_is_seen_when_it_is_on_disk(served: Served, slow: SlowDisk) -> None:
    write = served.acall("POST", MAPS, config_map("a", "1"), {})
    end = race(served, slow, write, lambda: served.acall("GET", f"{MAPS}/a", None, {}))
    (code, made), seen = end(False)
    assert code == 201
    assert seen == (200, made)


def test_a_new_object_that_is_refused_was_never_seen(served: Served, slow: SlowDisk) -> None:
    write = served.acall("POST", MAPS, config_map("a", "1"), {})
    end = race(served, slow, write, lambda: served.acall("GET", f"{MAPS}/a", None, {}))
    (code, said), (seen, _) = end(True)
    assert (code, seen) == (500, 404)
    assert "nothing was changed" in said["message"]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_deleted_object_is_gone_when_that_is_on_disk(
    served: Served, slow: SlowDisk, refuses: bool
) -> None:
    _, made = served.call("POST", MAPS, config_map("a", "1"))
    write = served.acall("DELETE", f"{MAPS}/a", None, {})
    end = race(served, slow, write, lambda: served.acall("GET", f"{MAPS}/a", None, {}))
    (code, _), seen = end(refuses)
    assert (code, seen[0]) == ((500, 200) if refuses else (200, 404))
    assert not refuses or seen[1] == made


@pytest.mark.parametrize("refuses", [False, True])
def test_a_list_shows_what_is_on_disk(served: Served, slow: SlowDisk, refuses: bool) -> None:
    _, old = served.call("POST", MAPS, config_map("a", "1"))
    _, before = served.call("GET", MAPS)
    write = served.acall("PUT", f"{MAPS}/a", config_map("a", "2"), {})
    end = race(served, slow, write, lambda: served.acall("GET", MAPS, None, {}))
    (code, new), (_, listed) = end(refuses)
    assert code == (500 if refuses else 200)
    if refuses:
        assert listed == before
    else:
        assert listed["items"] == [new]
        assert listed["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]
        assert new["metadata"]["uid"] == old["metadata"]["uid"]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_watch_begins_with_what_is_on_disk(served: Served, slow: SlowDisk, refuses: bool) -> None:
    served.call("POST", MAPS, config_map("a", "1"))
    write = served.acall("PUT", f"{MAPS}/a", config_map("a", "2"), {})
    end = race(served, slow, write, lambda: served.awatch(MAPS, {}))
    (code, _), following = end(refuses)
    assert code == (500 if refuses else 200)
    served.call("PUT", f"{MAPS}/a", config_map("a", "3"))
    served.wait_for(following, 2)
    heard = [(e["type"], e["object"]["data"]["value"]) for e in following.events]
    assert heard == [("ADDED", "1" if refuses else "2"), ("MODIFIED", "3")]
    served.stop(following)


@pytest.mark.parametrize("refuses", [False, True])
def test_who_wants_what_is_there_already_waits_for_it_too(
    served: Served, slow: SlowDisk, refuses: bool
) -> None:
    served.call("POST", MAPS, config_map("a", "1"))
    write = served.acall("PUT", f"{MAPS}/a", config_map("a", "2"), {})
    same = config_map("a", "2")
    end = race(served, slow, write, lambda: served.acall("PUT", f"{MAPS}/a", same, {}))
    (code, _), (again, _) = end(refuses)
    assert (code, again) == ((500, 500) if refuses else (200, 200))
    wanted = "1" if refuses else "2"
    assert served.call("GET", f"{MAPS}/a")[1]["data"] == {"value": wanted}


def refused(served: Served, slow: SlowDisk, method: str, path: str, body: Obj | None) -> None:
    slow.refuses = True
    assert served.call(method, path, body)[0] == 500
    slow.refuses = False


def test_a_refused_pod_takes_nothing_of_a_quota(served: Served, slow: SlowDisk) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}
    served.call("POST", "/api/v1/namespaces/one/resourcequotas", quota)
    for _ in range(3):
        refused(served, slow, "POST", MAPS, config_map("a", "1"))
    assert served.call("POST", MAPS, config_map("a", "1"))[0] == 201
    refused(served, slow, "DELETE", f"{MAPS}/a", None)
    assert served.call("POST", MAPS, config_map("b", "1"))[0] == 403


def test_a_refused_service_gives_its_address_back(served: Served, slow: SlowDisk) -> None:
    path = "/api/v1/namespaces/one/services"
    spec = {"clusterIP": "10.96.7.7", "type": "NodePort", "ports": [{"port": 1, "nodePort": 30007}]}
    first, second = ({"metadata": {"name": name}, "spec": spec} for name in ("a", "b"))
    refused(served, slow, "POST", path, first)
    code, answer = served.call("POST", path, second)
    assert code == 201, answer
    refused(served, slow, "DELETE", f"{path}/b", None)
    assert served.call("POST", path, first)[0] == 422


def test_a_refused_definition_is_not_served(served: Served, slow: SlowDisk) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"metadata": {"name": "things.example.com"}, "spec": spec}
    refused(served, slow, "POST", path, crd)
    things = "/apis/example.com/v1/namespaces/one/things"
    assert served.call("GET", things)[0] == 404
    assert served.call("POST", path, crd)[0] == 201
    assert served.call("GET", things)[0] == 200
    refused(served, slow, "DELETE", f"{path}/things.example.com", None)
    assert served.call("GET", things)[0] == 200


def test_a_refused_role_allows_nothing(served: Served, slow: SlowDisk) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    role_path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    served.call("POST", role_path, {"metadata": {"name": "r"}, "rules": [rule]})
    api_group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": api_group, "kind": "User", "name": "eve"}],
    }
    review = {
        "spec": {
            "user": "eve",
            "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "one"},
        }
    }
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    refused(served, slow, "POST", path, binding)
    assert not served.call("POST", reviews, review)[1]["status"]["allowed"]
    assert served.call("POST", path, binding)[0] == 201
    assert served.call("POST", reviews, review)[1]["status"]["allowed"]
    refused(served, slow, "DELETE", f"{path}/b", None)
    assert served.call("POST", reviews, review)[1]["status"]["allowed"]
