"""No way round: other spellings of a path, headers that claim things, and other people's names."""

import asyncio
import base64
from urllib.parse import unquote

import pytest

from tests.attack.access_rules import OWN
from tests.attack.campaign import Campaign
from tests.attack.detours import CLAIMS, detour
from tests.attack.identities import Identity, account, bound, made, token
from tests.attack.target import JSON, Connection, Target, complaint
from tests.faults.api_child import TOKEN
from tests.localkube.apiserver.http.wire_client import Answered

MARKER = b"what-nobody-may-see"
_SECRET = f"/api/v1/namespaces/{OWN}/secrets/marker"
_GOALS = (_SECRET, f"/api/v1/namespaces/{OWN}/secrets", "/api/v1/secrets", _SECRET + "/status")
_METHODS = (
    "GET",
    "GET",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "get",
)


async def prepare(connection: Connection) -> list[Identity]:
    """A secret, one who may do everything, and those who may not read secrets."""
    data = {"marker": base64.b64encode(MARKER).decode()}
    path = f"/api/v1/namespaces/{OWN}/secrets"
    await made(connection, path, {"metadata": {"name": "marker"}, "data": data})
    await account(connection, "mighty")
    await bound(connection, "mighty", "cluster-admin", everywhere=True)
    found = [Identity("nobody", None), Identity("garbage", "x" * 50)]
    for name, role in (("nothing", ""), ("viewer", "view")):
        await account(connection, name)
        if role:
            await bound(connection, name, role)
        found.append(Identity(name, await token(connection, name), role))
    return found


def gives_it_away(answer: Answered) -> bool:
    return MARKER in answer.body or base64.b64encode(MARKER) in answer.body


async def survives(connection: Connection) -> bool:
    answer = await connection.ask("GET", _SECRET)
    return answer.status == 200 and gives_it_away(answer)


async def wander(target: Target, attack: Campaign) -> None:
    async with target.connection() as connection:
        people = await prepare(connection)
        for step in attack.steps(short=400):
            draw = step.draw
            who, method = draw.choice(people), draw.choice(_METHODS)
            path = draw.choice(_GOALS)
            if draw.random() < 0.8:
                path = detour(path, draw)
            headers = dict(draw.choice(CLAIMS)) if draw.random() < 0.4 else {}
            body = b"{}" if method in ("POST", "PUT", "PATCH", "DELETE") else None
            if body:
                headers["Content-Type"] = JSON
            what = f"{who.name}: {method} {path!r} {headers}"
            try:
                answer = await connection.ask(method, path, body, headers, who.token)
            except (TimeoutError, OSError, EOFError) as error:
                await connection.leave()
                attack.note(f"{what}: {error!r}")
                continue
            if gives_it_away(answer):
                attack.note(f"{what}: {answer.status} gives the secret away")
            elif answer.status == 101:
                attack.note(f"{what}: the protocol was changed")
            elif wrong := complaint(answer, is_head=method == "HEAD"):
                attack.note(f"{what}: {wrong}")
            if step.number % 100 == 0:
                assert await survives(connection)
        assert await survives(connection), "somebody has deleted it"


@pytest.mark.timeout(600)
def test_no_detour_leads_to_a_secret(target: Target, attack: Campaign) -> None:
    asyncio.run(wander(target, attack))
    attack.end()


async def administrator_wanders(target: Target, attack: Campaign) -> None:
    """He may see it; but only by a path that names it, and he breaks nothing either."""
    async with target.connection() as connection:
        await prepare(connection)
        for step in attack.steps(short=300):
            path = detour(_SECRET, step.draw)
            if "watch" in unquote(path).lower():  # the old way to watch, which has no end
                continue
            answer = await connection.ask("GET", path, token=TOKEN)
            if wrong := complaint(answer):
                attack.note(f"{path!r}: {wrong}")
            elif (
                answer.status == 200 and "/../" in path.partition("?")[0] and gives_it_away(answer)
            ):
                attack.note(f"{path!r}: dots were followed")


@pytest.mark.timeout(600)
def test_no_detour_is_followed_for_an_administrator_either(
    target: Target, attack: Campaign
) -> None:
    asyncio.run(administrator_wanders(target, attack))
    attack.end()


async def acts_as(target: Target, attack: Campaign) -> None:
    async with target.connection() as connection:
        people = await prepare(connection)
        for who in people[2:]:
            for claim in CLAIMS:
                if not any(name.lower().startswith("impersonate-") for name in claim):
                    continue
                attack.made += 1
                answer = await connection.ask("GET", _SECRET, None, claim, who.token)
                if answer.status not in (400, 403) or complaint(answer):
                    attack.note(f"{who.name} {claim}: {answer.status} {answer.body!r}")


def test_nobody_acts_as_somebody_else_without_the_right_to(
    target: Target, attack: Campaign
) -> None:
    asyncio.run(acts_as(target, attack))
    attack.end()
