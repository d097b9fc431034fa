"""Lists are read in pages, and shown as one state."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from kubeclient.client import Kube
from kubeclient.errors import Expired
from kubeclient.resources import CLUSTER_ROLES, PODS

Query = dict[str, str]
Answer = Callable[[Query], tuple[int, Any]]


class Pages:
    """A server with five objects; each answer as the test says."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Query] = []

    async def call(
        self, method: str, path: str, *, query: Any, headers: Any, body: bytes
    ) -> tuple[int, bytes]:
        self.asked.append(dict(query))
        code, found = self.answer(dict(query))
        return code, orjson.dumps(found)

    def stream(self, path: str, *, query: Any, headers: Any) -> Any:
        raise AssertionError("nothing is watched")


def page(numbers: range, version: int, more: str = "") -> tuple[int, Any]:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return 200, {"metadata": metadata, "items": [{"n": n} for n in numbers] or None}


def two_pages(query: Query) -> tuple[int, Any]:
    return page(range(3, 5), 7) if "continue" in query else page(range(3), 7, "more")


async def test_all_pages_of_a_list_are_read() -> None:
    server = Pages(two_pages)
    query = {"labelSelector": "a", "resourceVersion": "0"}
    found = await Kube(server).list(PODS, query=query)
    assert [item["n"] for item in found.items] == [0, 1, 2, 3, 4]
    assert found.resource_version == "7"
    first, second = server.asked
    assert first == {**query, "limit": first["limit"]}
    assert second == {"labelSelector": "a", "limit": first["limit"], "continue": "more"}


async def test_an_empty_list_is_one_page() -> None:
    assert (await Kube(Pages(lambda _: page(range(0), 7))).list(PODS)).items == []


async def test_a_limit_of_the_caller_is_kept() -> None:
    server = Pages(two_pages)
    assert len((await Kube(server).list(PODS, query={"limit": "3"})).items) == 3
    assert server.asked == [{"limit": "3"}]


GONE = 410, {"kind": "Status", "code": 410, "reason": "Expired"}


async def test_a_list_whose_version_expires_between_two_pages_is_read_again_as_one_state() -> None:
    def answer(query: Query) -> tuple[int, Any]:
        if "continue" in query:
            return GONE
        return page(range(3), 7, "more") if "limit" in query else page(range(1, 6), 9)

    found = await Kube(Pages(answer)).list(PODS)
    assert [item["n"] for item in found.items] == [1, 2, 3, 4, 5]
    assert found.resource_version == "9"


async def test_a_list_at_a_version_that_is_too_old_is_an_error() -> None:
    with pytest.raises(Expired):
        await Kube(Pages(lambda _: GONE)).list(PODS, query={"resourceVersion": "1"})


def test_a_name_is_one_part_of_a_path_whatever_it_says() -> None:
    assert PODS.path("default/pods?x=", "a b\r\n") == (
        "/api/v1/namespaces/default%2Fpods%3Fx%3D/pods/a%20b%0D%0A"
    )
    roles = CLUSTER_ROLES.path(name="system:node")
    assert roles == "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
