"""Whatever comes over the wire: a clear refusal, no traceback, no growth, and no harm to others."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import orjson
import pytest

from tests.faults.api_child import TOKEN, ApiChild, Nursery
from tests.faults.bombs import (
    HARMLESS_QUERIES,
    JSON_BODIES,
    MIB,
    ODD_YAML_BODIES,
    PATHS,
    QUERIES,
    YAML_BODIES,
)
from tests.faults.client import CONFIGMAPS, connected
from tests.localkube.apiserver.http.wire_client import Answered

GROWTH_MB = 48  # that a whole module of attacks may leave behind
QUICK_S = 5.0  # for any answer
AUTHORIZATION = f"Authorization: Bearer {TOKEN}"


@pytest.fixture(scope="module")
def child(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiChild]:
    made = ApiChild(nursery, tmp_path_factory.mktemp("server") / "data")
    made.start()
    asyncio.run(ordinary_work(made))
    before_mb = made.memory_mb()
    yield made
    asyncio.run(ordinary_work(made))
    after_mb = made.memory_mb()
    made.kill()
    made.check_log()
    assert after_mb - before_mb < GROWTH_MB


async def ordinary_work(child: ApiChild) -> None:
    async with connected(child) as client:
        body = {"metadata": {"name": "ordinary"}, "data": {"a": "x" * MIB}}
        assert (await client.call("POST", CONFIGMAPS, body)).status == 201
        assert (await client.get(CONFIGMAPS))["items"]
        assert (await client.call("DELETE", f"{CONFIGMAPS}/ordinary")).status == 200


async def sent(child: ApiChild, *lines: str, body: bytes = b"") -> Answered | None:
    """The answer to exactly these lines; None when the connection was closed without one."""
    async with connected(child) as client, asyncio.timeout(QUICK_S):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            client.wire.send("\r\n".join(lines).encode("utf-8", "surrogateescape"))
            client.wire.send(b"\r\n\r\n", body)
            return await client.wire.answer(to_head=lines[0].startswith("HEAD"))
    return None


async def post(child: ApiChild, path: str, body: bytes, media: str) -> Answered:
    answer = await sent(
        child,
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        AUTHORIZATION,
        f"Content-Type: {media}",
        f"Content-Length: {len(body)}",
        body=body,
    )
    assert answer is not None
    return answer


def refused(answer: Answered) -> str:
    """The words of a refusal."""
    assert 400 <= answer.status < 500, answer
    said = orjson.loads(answer.body)
    assert (said["kind"], said["status"], said["code"]) == ("Status", "Failure", answer.status)
    message: str = said["message"]
    assert message
    assert len(message) < 100_000, "the refusal must not be as large as what it refuses"
    return message


@pytest.mark.parametrize("what", JSON_BODIES)
async def test_a_strange_json_body_is_refused(child: ApiChild, what: str) -> None:
    refused(await post(child, CONFIGMAPS, JSON_BODIES[what], "application/json"))


@pytest.mark.parametrize("what", YAML_BODIES)
async def test_a_strange_yaml_body_is_refused(child: ApiChild, what: str) -> None:
    refused(await post(child, CONFIGMAPS, YAML_BODIES[what], "application/yaml"))


async def apply(child: ApiChild, body: bytes) -> Answered:
    answer = await sent(
        child,
        f"PATCH {CONFIGMAPS}/bomb?fieldManager=me HTTP/1.1",
        "Host: localhost",
        AUTHORIZATION,
        "Content-Type: application/apply-patch+yaml",
        f"Content-Length: {len(body)}",
        body=body,
    )
    assert answer is not None
    return answer


@pytest.mark.parametrize("what", YAML_BODIES)
async def test_a_strange_yaml_body_is_not_applied_either(child: ApiChild, what: str) -> None:
    answer = await apply(child, YAML_BODIES[what])
    assert answer.status in (400, 413, 422, 500)  # Kubernetes answers a wrong type by 500
    assert len(answer.body) < 20_000


@pytest.mark.parametrize("what", ODD_YAML_BODIES)
async def test_an_odd_yaml_body_is_read_or_refused(child: ApiChild, what: str) -> None:
    body = ODD_YAML_BODIES[what]
    for answer in (
        await post(child, CONFIGMAPS, body, "application/yaml"),
        await apply(child, body),
    ):
        assert answer.status in (200, 201, 400, 409, 422)
        assert len(answer.body) < len(body) + 20_000
    async with connected(child) as client:
        assert (await client.call("DELETE", f"{CONFIGMAPS}/bomb")).status in (200, 404)


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_a_path_leads_nowhere_that_is_not_served(
    child: ApiChild, method: str, path: str
) -> None:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", AUTHORIZATION]
    answer = await sent(child, *lines, "Content-Length: 2", body=b"{}")
    assert answer is not None
    assert 400 <= answer.status < 500 or answer.status in (301, 307)
    assert answer.header("set-cookie") is None
    assert b"root:" not in answer.body


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
async def test_a_strange_query_is_refused(child: ApiChild, query: str) -> None:
    lines = (f"GET {CONFIGMAPS}?{query} HTTP/1.1", "Host: localhost", AUTHORIZATION)
    answer = await sent(child, *lines)
    assert answer is not None
    assert 400 <= answer.status < 500 or answer.status in (500, 504)
    assert orjson.loads(answer.body)["message"]


@pytest.mark.parametrize("query", HARMLESS_QUERIES, ids=range(len(HARMLESS_QUERIES)))
async def test_a_harmless_query_is_answered(child: ApiChild, query: str) -> None:
    lines = (f"GET {CONFIGMAPS}?{query} HTTP/1.1", "Host: localhost", AUTHORIZATION)
    answer = await sent(child, *lines)
    assert answer is not None
    assert answer.status == 200, answer.body
