"""Requests that two programs could read in two ways are read in none."""

import asyncio
import random
import re
from contextlib import suppress

import pytest

from tests.attack.campaign import Campaign
from tests.attack.http_tricks import AMBIGUOUS, HARMLESS, HIDDEN, almost_http
from tests.attack.target import ANSWER_S, Target, complaint
from tests.faults.client import Cut, connected

_SAID = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)
_VERSION = b'"gitVersion"'
_FAILED = set(range(500, 600)) - {501, 505}
_AT_ONCE = 80
_LONGEST_BODY = 200  # that `almost_http` announces
_PATIENCE_S = 2 * ANSWER_S  # with so many at once


async def everything_said(target: Target, raw: bytes, pieces: int = 1) -> bytes:
    """All that the server says to these bytes until it closes, or has nothing more to say."""
    async with connected(target.child) as client, asyncio.timeout(_PATIENCE_S):
        size = max(1, len(raw) // pieces)
        with suppress(*Cut):
            for start in range(0, len(raw), size):
                client.wire.send(raw[start : start + size])
                await client.wire.writer.drain()
            # Half of a conversation is enough: a server that waits for more is told to stop. Behind
            # it is the rest of a body that was announced, or nothing that anybody reads.
            client.wire.send(
                b"\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                + b"x" * _LONGEST_BODY
                + b"\r\n\r\n"
            )
            return await client.wire.reader.read()
    return b""


async def all_said(target: Target, texts: dict[str, str], pieces: int = 1) -> dict[str, bytes]:
    """At once: the server hears each client out for two seconds before it closes."""
    raws = [text.encode("latin-1") for text in texts.values()]
    said = await asyncio.gather(*(everything_said(target, raw, pieces) for raw in raws))
    return dict(zip(texts, said, strict=True))


@pytest.mark.parametrize("pieces", [1, 7])
def test_what_can_be_read_in_two_ways_is_refused_and_hides_nothing(
    target_of_all: Target, pieces: int
) -> None:
    wrong = {}
    for name, said in asyncio.run(all_said(target_of_all, AMBIGUOUS, pieces)).items():
        codes = [int(code) for code in _SAID.findall(said)]
        # An anonymous request before the trick is answered by 401 or 404, and its mate by nothing.
        if _VERSION in said or len(codes) != 1 or not 400 <= codes[0] <= 505:
            wrong[name] = (codes, said[:200])
    assert not wrong
    asyncio.run(target_of_all.assert_alive())


def test_what_means_nothing_changes_nothing(target_of_all: Target) -> None:
    """One answer for the request itself, by somebody without a token; and one for the next."""
    wrong = {}
    for name, said in asyncio.run(all_said(target_of_all, HARMLESS)).items():
        codes = [int(code) for code in _SAID.findall(said) if code != b"100"]
        if codes != [401, 200]:
            wrong[name] = (codes, said[:300])
    assert not wrong


async def answers_in_order(target: Target, draw: random.Random) -> str:
    """Pipelined requests, cut anywhere: as many answers, in their order."""
    asked = [draw.choice(("/version", "/readyz", "/livez", "/nowhere")) for _ in range(30)]
    raw = "".join(HIDDEN.replace("/version", path) for path in asked).encode()
    async with connected(target.child) as client, asyncio.timeout(_PATIENCE_S):
        while raw:
            size = draw.randrange(1, 400)
            client.wire.send(raw[:size])
            raw = raw[size:]
        for number, path in enumerate(asked):
            answer = await client.wire.answer()
            right = _VERSION in answer.body if path == "/version" else _VERSION not in answer.body
            if not right or (answer.status == 404) is not (path == "/nowhere"):
                return f"{number}: {path} was answered by {answer}"
    return ""


async def leave_early(target: Target, draw: random.Random) -> None:
    """In the middle of a head, of a body, or of an answer."""
    body = b'{"metadata": {"name": "early"}}' * draw.choice((1, 1000))
    head = HIDDEN.replace("GET /version", "POST /api/v1/namespaces?dryRun=All")[:-2]
    raw = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    async with connected(target.child) as client:
        client.wire.send(raw[: draw.randrange(len(raw) + 1)])
        await asyncio.sleep(0)


async def one_attempt(target: Target, draw: random.Random) -> str:
    """What went wrong."""
    kind = draw.random()
    try:
        if kind < 0.1:
            return await answers_in_order(target, draw)
        if kind < 0.4:
            await leave_early(target, draw)
            return ""
        raw = almost_http(draw)
        said = await everything_said(target, raw, draw.choice((1, 1, 3, 50)))
        codes = {int(code) for code in _SAID.findall(said)}
        return f"{raw!r} -> {said[:500]!r}" if codes & _FAILED else ""
    except (TimeoutError, *Cut) as error:
        return repr(error)


async def fuzz(target: Target, attack: Campaign) -> None:
    """Many at once: whoever is refused is heard out, which takes time and no work."""
    for step in attack.steps(short=2):
        dice = [random.Random(f"{step.draw.random()}") for _ in range(_AT_ONCE)]
        for wrong in await asyncio.gather(*(one_attempt(target, draw) for draw in dice)):
            if wrong:
                attack.note(wrong)
        await target.assert_alive()


@pytest.mark.timeout(600)
def test_no_bytes_break_the_server(target: Target, attack: Campaign) -> None:
    asyncio.run(fuzz(target, attack))
    attack.end()


async def too_much(target: Target) -> list[tuple[int, str]]:
    found = []
    async with target.connection() as connection:
        for headers in ({"X": "y" * 40_000}, {f"X-{n}": "y" for n in range(200)}):
            answer = await connection.ask("GET", "/version", headers=headers)
            found.append((answer.status, complaint(answer)))
        answer = await connection.ask("GET", "/" + "x" * 9000)
        found.append((answer.status, complaint(answer)))
        answer = await connection.ask("POST", "/api/v1/namespaces", b"x" * (4 << 20))
        found.append((answer.status, complaint(answer)))
    return found


def test_too_much_is_refused_in_words(target_of_all: Target) -> None:
    found = asyncio.run(too_much(target_of_all))
    assert found == [(431, ""), (431, ""), (414, ""), (413, "")]
