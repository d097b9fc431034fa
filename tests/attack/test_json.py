"""Bodies that almost fit the server's own OpenAPI document, for every operation in it."""

import asyncio
from collections import Counter

import pytest

from tests.attack.campaign import Campaign
from tests.attack.openapi import Document, read_document
from tests.attack.requests import Requests, Sent
from tests.attack.target import Connection, Target, complaint

_LOOK_EVERY = 200  # steps


async def document_of(connection: Connection) -> Document:
    async def get(path: str) -> bytes:
        answer = await connection.ask("GET", path)
        assert answer.status == 200, path
        return answer.body

    return await read_document(get)


async def judge(target: Target, connection: Connection, sent: Sent, attack: Campaign) -> int:
    """Sends it, and notes what is wrong with the answer: its status."""
    try:
        answer = await connection.ask(sent.method, sent.path, sent.body, sent.headers)
    except Exception as error:  # noqa: BLE001 - whatever it is, a client should not see it
        await connection.leave()
        attack.note(f"{sent}\n-> no answer: {error!r}")
        return 0
    wrong = complaint(answer)
    if wrong:
        attack.note(f"{sent}\n-> {wrong}")
    return answer.status


async def attack_all(target: Target, attack: Campaign) -> Counter[str]:
    taken: Counter[str] = Counter()
    async with target.connection() as connection:
        requests = Requests(await document_of(connection))
        for step in attack.steps(short=784):
            sent = requests.one(step.draw, step.number)
            status = await judge(target, connection, sent, attack)
            taken[f"{sent.method} {status // 100}xx"] += 1
            if step.number % _LOOK_EVERY == 0:
                await target.assert_alive()
    return taken


@pytest.mark.timeout(900)
def test_no_body_breaks_the_server(target: Target, attack: Campaign) -> None:
    taken = asyncio.run(attack_all(target, attack))
    attack.end(lambda: taken)
    assert taken["POST 2xx"] > attack.made // 100, f"hardly anything was taken: {taken}"
