"""No request keeps the event loop, whatever it asks for. All of bench/heavy.py."""

import asyncio

import pytest

from bench.heavy import Heavy, requests, with_many_objects
from tests.localkube.apiserver.stalls.watched import Watched

_QUICK = (
    "pod of 100,000 containers",
    "pod of empty containers",
    "pod in protobuf, empty containers",
    "pod with 30,000 tolerations",
    "2.9 MB of [",
    '3 MB of {"a":',
    "3 MB of one repeated key",
    "repeated objects, 33,000 times",
    "repeated keys below a long one",
    "99,000 unknown fields, strict",
    "3 MB of '- '",
    "3 MB of quoted YAML escapes",
    "YAML aliases",
    "update of a map",
    "apply in conflict over 10,000",
    "review of 90,000 groups",
    "selector of 4 KB",
)
_MANY = 2_000


async def _answer(watched: Watched, name: str) -> None:
    heavy = requests()[name]()
    for first in heavy.before:
        await watched.call(first)
    status, answer = await watched.watched(heavy)
    assert status < 500 or name == "apply of equal variables", answer[:500]


@pytest.mark.parametrize("name", _QUICK)
async def test_a_heavy_request_leaves_the_loop_to_others(watched: Watched, name: str) -> None:
    await _answer(watched, name)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_no_heavy_request_keeps_the_loop(watched: Watched) -> None:
    for name in requests():
        await _answer(watched, name)


async def test_lists_of_many_objects_leave_the_loop_to_others(watched: Watched) -> None:
    path = "/api/v1/namespaces/many/configmaps"
    bodies = (
        b'{"metadata":{"name":"m%d","labels":{"a":"b"}},"data":{"a":"b"}}' % number
        for number in range(_MANY)
    )
    await asyncio.gather(*(watched.make(path, body) for body in bodies))
    for heavy in with_many_objects().values():
        status, answer = await watched.watched(heavy)
        assert status == 200, answer[:500]


async def test_a_large_kind_costs_its_small_objects_nothing(watched: Watched) -> None:
    """What follows from a CRD is computed before it is stored, not for its first object."""
    made = requests()["CRD of 30,000 properties, kept"]()
    assert (await watched.watched(made))[0] == 201
    small = b'{"apiVersion":"heavy.test/v1","kind":"Wide","metadata":{"name":"small"}}'
    path = "/apis/heavy.test/v1/namespaces/default/wides"
    assert (await watched.watched(Heavy("POST", path, small)))[0] == 201


async def test_a_body_of_too_many_values_is_refused_in_words(watched: Watched) -> None:
    status, answer = await watched.watched(requests()["pod of empty containers"]())
    assert status == 413
    assert b"limit is 100000 values" in answer
    assert b"RequestEntityTooLarge" in answer


async def test_much_text_is_not_many_values(watched: Watched) -> None:
    """A ConfigMap that holds a large JSON document is one value, however many commas it has."""
    text = b'{"metadata":{"name":"a"},"data":{"a":"%s"}}' % (b"[1,2]," * 150_000)
    await watched.make("/api/v1/namespaces/default/configmaps", text)
