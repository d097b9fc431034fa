"""Who may do what: every identity and every operation, beside a table that the server had no part
in."""

import asyncio

import pytest

from tests.attack.access_rules import Asked, asked, expected, node_never
from tests.attack.campaign import Campaign
from tests.attack.identities import NODE, Identity, unwelcome, welcome
from tests.attack.target import JSON, Connection, Target, complaint
from tests.attack.test_json import document_of
from tests.faults.api_child import TOKEN
from tests.localkube.apiserver.http.wire_client import Answered

# The whole table takes half a minute; `make test` looks at every so-manieth cell of it.
_SHORT_STRIDE = 9


async def cells(connection: Connection) -> list[Asked]:
    document = await document_of(connection)
    return [cell for operation in document.operations for cell in asked(operation)]


async def ask(connection: Connection, cell: Asked, who: Identity) -> Answered:
    """Nothing is changed: a dry run, about things that do not exist."""
    media = "application/merge-patch+json" if cell.method == "PATCH" else JSON
    headers = {"Content-Type": media} | dict(who.headers)
    body = None if cell.method == "GET" else b"{}"
    path = f"{cell.path}?dryRun=All" if body else cell.path
    return await connection.ask(cell.method, path, body, headers, who.token)


async def compare(target: Target, attack: Campaign) -> None:
    async with target.connection() as connection:
        table = await cells(connection)
        people = await welcome(connection)
        assert len(table) > 400
        for number, cell in enumerate(table):
            for place, who in enumerate(people):
                if attack.seconds is None and (number + place) % _SHORT_STRIDE:
                    continue
                answer = await ask(connection, cell, who)
                attack.made += 1
                may = expected(who.role, cell, everywhere=who.everywhere)
                # Other reasons for a 403 come after this one: quotas, what may not be deleted.
                is_denied = f"cannot {cell.verb} resource".encode() in answer.body
                wrong = complaint(answer)
                if is_denied is may or answer.status == 401 or wrong:
                    found = wrong or f"{answer.status} {answer.body!r}"
                    attack.note(f"{who.name}: {cell}: expected {may}, found {found}")


@pytest.mark.timeout(600)
def test_everybody_may_do_what_his_role_says_and_no_more(target: Target, attack: Campaign) -> None:
    asyncio.run(compare(target, attack))
    attack.end()


async def knock(target: Target, attack: Campaign) -> None:
    async with target.connection() as connection:
        table = await cells(connection)
        for place, who in enumerate(await unwelcome(target, connection)):
            stride = 40 if attack.seconds is None else 1
            for cell in table[place % stride :: stride]:
                answer = await ask(connection, cell, who)
                attack.made += 1
                if answer.status != 401 or complaint(answer):
                    attack.note(f"{who.name}: {cell}: {answer.status} {answer.body!r}")
            for path in ("/metrics", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/logs", "/x"):
                answer = await connection.ask("GET", path, token=who.token)
                if answer.status != 401:
                    attack.note(f"{who.name}: {path}: {answer.status}")


@pytest.mark.timeout(600)
def test_whoever_has_no_good_token_may_do_nothing(target: Target, attack: Campaign) -> None:
    asyncio.run(knock(target, attack))
    attack.end()


async def as_a_node(target: Target, attack: Campaign) -> None:
    async with target.connection() as connection:
        for cell in await cells(connection):
            answer = await ask(connection, cell, Identity("node", TOKEN, headers=(*NODE.items(),)))
            attack.made += 1
            if node_never(cell) and answer.status != 403:
                attack.note(f"a node: {cell}: {answer.status} {answer.body!r}")


def test_a_node_gets_nothing_that_is_not_its_own(target: Target, attack: Campaign) -> None:
    asyncio.run(as_a_node(target, attack))
    attack.end()
