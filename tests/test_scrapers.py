"""Scrapers show a token, and the API server says whose it is and whether its owner may ask."""

import asyncio
import ssl

import aiohttp
import pytest
from aiohttp import web

from gpupool.health import Address, health_routes, metrics_route, serving
from gpupool.scrapers import KEPT_S, MOST_KEPT, Reviewer, guard, own_tls
from kubeclient.client import Kube
from kubeclient.errors import NoAnswer
from kubeclient.objects import Obj
from kubeclient.resources import Resource

PATIENCE_S = 60.0


class Reviews(Kube):
    """An API server that knows two users, of whom one may get /metrics."""

    def __init__(self) -> None:
        self.asked: list[Obj] = []
        self.is_there = True

    async def create(
        self, resource: Resource, obj: Obj, subresource: str = "", *, query: object = None
    ) -> Obj:
        await asyncio.sleep(0)
        if not self.is_there:
            raise NoAnswer("no API server")
        self.asked.append(obj)
        spec = obj["spec"]
        if obj["kind"] == "TokenReview":
            if spec["token"] not in ("prometheus", "somebody"):
                return {"status": {"authenticated": False}}
            user = {"username": spec["token"], "groups": ["g"], "extra": {"k": ["v"]}}
            return {"status": {"authenticated": True, "user": user}}
        wanted = {"path": "/metrics", "verb": "get"}
        is_allowed = spec["user"] == "prometheus" and spec["nonResourceAttributes"] == wanted
        return {"status": {"allowed": is_allowed}}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_only_who_may_get_the_path_is_let_in() -> None:
    kube = Reviews()
    reviewer = Reviewer(kube)
    assert (await reviewer.verdict(bearer("prometheus"), "/metrics")).status == 200
    assert kube.asked[1]["spec"]["groups"] == ["g"]
    assert kube.asked[1]["spec"]["extra"] == {"k": ["v"]}
    assert (await reviewer.verdict(bearer("prometheus"), "/readings")).status == 403
    assert (await reviewer.verdict(bearer("somebody"), "/metrics")).status == 403
    assert (await reviewer.verdict(bearer("forged"), "/metrics")).status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer  "},
        {"Authorization": "Basic cHJvbWV0aGV1cw=="},
        {"Authorization": "Bearer " + "x" * 20_000},
    ],
)
async def test_without_a_token_the_api_server_is_not_asked(headers: dict[str, str]) -> None:
    kube = Reviews()
    assert (await Reviewer(kube).verdict(headers, "/metrics")).status == 401
    assert kube.asked == []


async def test_answers_are_kept_for_some_seconds() -> None:
    kube, now_s = Reviews(), 0.0
    reviewer = Reviewer(kube, lambda: now_s)
    for token in ("prometheus", "somebody"):
        first = await reviewer.verdict(bearer(token), "/metrics")
        asked = len(kube.asked)
        assert await reviewer.verdict(bearer(token), "/metrics") == first
        assert len(kube.asked) == asked
    now_s = KEPT_S + 1
    await reviewer.verdict(bearer("prometheus"), "/metrics")
    assert len(kube.asked) == 6


async def test_what_is_kept_has_a_limit() -> None:
    reviewer = Reviewer(Reviews())
    for number in range(MOST_KEPT + 50):
        await reviewer.verdict(bearer(f"forged-{number}"), "/metrics")
    assert len(reviewer._kept) == MOST_KEPT


async def test_a_flood_of_tokens_does_not_flood_the_api_server() -> None:
    kube = Reviews()
    reviewer = Reviewer(kube)
    flood = (reviewer.verdict(bearer(f"forged-{number}"), "/metrics") for number in range(500))
    found = await asyncio.gather(*flood)
    assert {verdict.status for verdict in found} == {401, 429}
    assert len(kube.asked) <= 64


async def test_without_an_api_server_nobody_is_let_in_and_nothing_is_kept() -> None:
    kube = Reviews()
    reviewer = Reviewer(kube)
    kube.is_there = False
    assert (await reviewer.verdict(bearer("prometheus"), "/metrics")).status == 503
    kube.is_there = True
    assert (await reviewer.verdict(bearer("prometheus"), "/metrics")).status == 200


async def test_it_is_served_with_tls_and_health_needs_no_token() -> None:
    app = web.Application(middlewares=[guard(Reviewer(Reviews()))])
    app.add_routes([*health_routes(), metrics_route(lambda: "up 1\n")])
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with (
        asyncio.timeout(PATIENCE_S),
        serving(app, Address("127.0.0.1", 0), own_tls("node-1")) as where,
        aiohttp.ClientSession(f"https://127.0.0.1:{where.port}") as session,
    ):
        async with session.get("/metrics", ssl=trusting, headers=bearer("prometheus")) as answer:
            assert (answer.status, await answer.text()) == (200, "up 1\n")
        async with session.get("/metrics", ssl=trusting) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        async with session.get("/metrics", ssl=trusting, headers=bearer("somebody")) as answer:
            assert answer.status == 403
            assert "gpupool:metrics" in await answer.text()
        async with session.get("/healthz", ssl=trusting) as answer:
            assert answer.status == 200
        async with session.get("/else", ssl=trusting) as answer:
            assert answer.status == 401
