"""Protobuf bodies with mistakes in their structure: refused in words, or read."""

import asyncio
import base64
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.attack.campaign import Campaign
from tests.attack.protobuf_messages import encode, parse, spoiled
from tests.attack.requests import Sent
from tests.attack.target import Connection, Target
from tests.attack.test_json import document_of, judge

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
_RECORDED = Path(__file__).parent.parent / "localkube/apiserver/decode/protobuf_bodies.json"
BODIES = {
    name: base64.b64decode(pair["protobuf"])
    for name, pair in sorted(json.loads(_RECORDED.read_text()).items())
}
_LOOK_EVERY = 200


async def paths(connection: Connection) -> list[tuple[str, str]]:
    """Everywhere a body may be sent to, by method."""
    document = await document_of(connection)
    found = {
        (each.method, each.path.replace("{namespace}", "attacked").replace("{name}", "a"))
        for each in document.operations
        if each.method in ("POST", "PUT", "DELETE") and each.media
    }
    return sorted(found)


def body(draw: random.Random) -> bytes:
    raw = BODIES[draw.choice(list(BODIES))]
    where = draw.random()
    if where < 0.1:  # the envelope itself
        return MAGIC + spoiled(raw[len(MAGIC) :], draw)
    if where < 0.2:
        return raw[: draw.randrange(len(raw))]
    envelope = parse(raw[len(MAGIC) :])
    assert envelope is not None
    for each in envelope:
        if each.number == 2 and each.inner is not None:
            each.raw, each.inner = spoiled(encode(each.inner), draw), None
    return MAGIC + encode(envelope)


async def attack_all(target: Target, attack: Campaign) -> Counter[int]:
    async with target.connection() as connection:
        places = await paths(connection)
        posts = [each for each in places if each[0] == "POST"]
        for step in attack.steps(short=350):
            draw = step.draw
            method, path = draw.choice(posts if draw.random() < 0.6 else places)
            media = {"Content-Type": PROTOBUF, "Accept": draw.choice((PROTOBUF, "*/*"))}
            sent = Sent(method, f"{path}?dryRun=All", body(draw), media)
            await judge(target, connection, sent, attack)
            if step.number % _LOOK_EVERY == 0:
                await target.assert_alive()
    return target.statuses


@pytest.mark.timeout(900)
def test_no_protobuf_breaks_the_server(target: Target, attack: Campaign) -> None:
    found = asyncio.run(attack_all(target, attack))
    attack.end(lambda: found)
    assert found[400] > attack.made // 10, found


def test_a_message_that_is_not_spoiled_stays_as_it_was() -> None:
    """Or the mistakes would not be where they are meant to be."""
    for name, raw in BODIES.items():
        fields = parse(raw[len(MAGIC) :])
        assert fields is not None, name
        assert encode(fields) == raw[len(MAGIC) :], name
