"""Logs of a pod: parameters, refusals, streams. Texts as recorded from a kube-apiserver 1.35.8."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.apiserver.request import Answer, Request, Stream
from localkube.apiserver.status import ApiError
from localkube.apiserver.subresources.log_options import log_options
from localkube.apiserver.subresources.logs import logs
from localkube.node_streams import LogOptions, NodeRefusal
from tests.localkube.apiserver.http.wire_client import PATIENCE_S, connected
from tests.localkube.apiserver.streams.process_node import ProcessNode
from tests.localkube.apiserver.streams.stream_app import POD_PATH, pod, streaming


async def refusal_of(query: str, described: Obj | None = None) -> Obj:
    request = Request("GET", POD_PATH + "/log", query)
    with pytest.raises(ApiError) as raised:
        await logs(request, described or pod(), ProcessNode())
    return raised.value.status


async def text_of(reply: object) -> bytes:
    assert isinstance(reply, Stream)
    assert reply.content_type == "text/plain"
    return b"".join([chunk async for chunk in reply.chunks])


async def test_all_parameters_reach_the_node() -> None:
    node = ProcessNode()
    query = (
        "container=c&previous=1&timestamps=true&tailLines=%2B5&limitBytes=7"
        "&sinceTime=2024-01-02T03:04:05.25%2B02:00&insecureSkipTLSVerifyBackend=true&pretty=1"
    )
    described = pod()
    described["status"]["containerStatuses"][0]["lastState"] = {"terminated": {}}
    reply = await logs(Request("GET", "/", query), described, node)
    assert await text_of(reply) == b""
    zone = timezone(timedelta(hours=2))
    assert node.log_options == LogOptions(
        container="c",
        previous=True,
        timestamps=True,
        tail_lines=5,
        limit_bytes=7,
        since_time=datetime(2024, 1, 2, 3, 4, 5, 250_000, zone),
    )


async def test_the_only_container_is_meant_when_none_is_named() -> None:
    node = ProcessNode()
    node.log_lines = [b"one\n", b"two\n"]
    reply = await logs(Request("GET", "/", "sinceSeconds=3&sinceTime=&follow=0"), pod(), node)
    assert await text_of(reply) == b"one\ntwo\n"
    assert node.log_options == LogOptions(container="c", since_seconds=3)


async def test_a_pod_without_a_node_has_no_content() -> None:
    reply = await logs(Request("GET", "/"), pod(), None)
    assert isinstance(reply, Answer)
    assert (reply.status, reply.body) == (204, b"")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "a container name must be specified for pod p, choose one of: [i a b]"),
        ("container=z", "container z is not valid for pod p"),
        ("container=a&tailLines=abc", 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("container=a&tailLines=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("container=a&tailLines=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("container=a&tailLines=1_0", 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        (
            "container=a&tailLines=99999999999999999999",
            'strconv.ParseInt: parsing "99999999999999999999": value out of range',
        ),
        (
            "container=a&sinceTime=bad",
            'parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006"',
        ),
        (
            "container=a&sinceTime=2024-01-01",
            'parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
        ),
        (
            "container=a&sinceTime=2024-13-01T00:00:00Z",
            'parsing time "2024-13-01T00:00:00Z": month out of range',
        ),
        (
            "container=a&sinceTime=2023-02-29T00:00:00Z",
            'parsing time "2023-02-29T00:00:00Z": day out of range',
        ),
        (
            "container=a&sinceTime=2024-01-01T00:00:00Zmore",
            'parsing time "2024-01-01T00:00:00Zmore": extra text: "more"',
        ),
    ],
)
async def test_bad_requests_are_refused_in_kubernetes_words(query: str, message: str) -> None:
    described = pod("a", "b")
    described["spec"]["initContainers"] = [{"name": "i", "image": "x"}]
    status = await refusal_of(query, described)
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    assert status["message"] == message


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        (
            "tailLines=-1&limitBytes=-5&sinceSeconds=-2",
            [
                ("tailLines", "Invalid value: -1: must be greater than or equal to 0"),
                ("limitBytes", "Invalid value: -5: must be greater than 0"),
                ("sinceSeconds", "Invalid value: -2: must be greater than 0"),
            ],
        ),
        ("limitBytes=0", [("limitBytes", "Invalid value: 0: must be greater than 0")]),
        ("sinceSeconds=0", [("sinceSeconds", "Invalid value: 0: must be greater than 0")]),
        (
            "sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z",
            [
                (
                    "[]",
                    "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
                )
            ],
        ),
        ("stream=Stdout", [("stream", "Forbidden: may not be specified")]),
    ],
)
async def test_invalid_options_are_listed(query: str, causes: list[tuple[str, str]]) -> None:
    status = await refusal_of(query)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('PodLogOptions "p" is invalid: ')
    assert status["details"]["name"] == "p"
    assert status["details"]["kind"] == "PodLogOptions"
    assert [(c["field"], c["message"]) for c in status["details"]["causes"]] == causes


async def test_one_invalid_option_is_the_whole_message() -> None:
    status = await refusal_of("tailLines=-1")
    assert status["message"] == (
        'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: '
        "must be greater than or equal to 0"
    )


@pytest.mark.parametrize(
    ("container_status", "query", "message"),
    [
        (
            {"state": {"waiting": {"reason": "ContainerCreating"}}},
            "",
            'container "c" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            {"state": {"waiting": {"reason": "ErrImagePull"}}},
            "",
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
            "",
            'container "c" in pod "p" is waiting to start: trying and failing to pull image',
        ),
        (
            {"state": {}},
            "",
            'container "c" in pod "p" is waiting to start - no logs yet',
        ),
        (
            {"state": {"running": {}}},
            "previous=true",
            'previous terminated container "c" in pod "p" not found',
        ),
        (None, "", 'container "c" in pod "p" is not available'),
    ],
)
async def test_a_container_without_logs_says_why(
    container_status: Obj | None, query: str, message: str
) -> None:
    described = pod()
    described["status"]["containerStatuses"] = (
        [] if container_status is None else [{"name": "c", **container_status}]
    )
    status = await refusal_of(query, described)
    assert (status["code"], status["message"]) == (400, message)


@pytest.mark.parametrize(
    "container_status",
    [
        {"state": {"terminated": {"exitCode": 1}}},
        {
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1}},
        },
    ],
)
async def test_a_container_that_has_ended_still_has_logs(container_status: Obj) -> None:
    described = pod()
    described["status"]["containerStatuses"] = [{"name": "c", **container_status}]
    node = ProcessNode()
    node.log_lines = [b"last words\n"]
    assert await text_of(await logs(Request("GET", "/"), described, node)) == b"last words\n"


@pytest.mark.parametrize(
    ("refusal", "code", "reason", "message"),
    [
        (NodeRefusal("rotated away", code=400), 400, "BadRequest", "rotated away"),
        (NodeRefusal("disk"), 500, "InternalError", "Internal error occurred: disk"),
    ],
)
async def test_a_refusal_of_the_node_comes_before_the_answer(
    refusal: NodeRefusal, code: int, reason: str, message: str
) -> None:
    node = ProcessNode()
    node.refusal = refusal
    async with streaming(node) as server, connected(server) as wire:
        wire.request("GET", POD_PATH + "/log")
        answer = await wire.answer()
    status = orjson.loads(answer.body)
    assert answer.status == code
    assert (status["code"], status["reason"], status["message"]) == (code, reason, message)


async def test_following_ends_when_the_client_leaves() -> None:
    node = ProcessNode()
    node.log_lines = [b"one\n"]
    async with streaming(node) as server:
        async with connected(server) as wire:
            wire.request("GET", POD_PATH + "/log?follow=true")
            assert (await wire.head()).header("content-type") == "text/plain"
            assert await wire.chunk() == b"one\n"
        async with asyncio.timeout(PATIENCE_S):
            await node.log_ended.wait()


async def test_a_client_may_leave_before_the_first_line() -> None:
    node = ProcessNode()
    async with streaming(node) as server:
        async with connected(server) as wire:
            wire.request("GET", POD_PATH + "/log?follow=true")
            await wire.writer.drain()
            async with asyncio.timeout(PATIENCE_S):
                while node.log_options is None:  # noqa: ASYNC110 - the fake has no event for it
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(PATIENCE_S):
            await node.log_ended.wait()


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_every_time_is_understood(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    text = moment.isoformat().replace("+00:00", "Z")
    options = log_options(Request("GET", "/", f"sinceTime={text}"), "p")
    assert options.since_time == moment


@given(st.text(max_size=30), st.sampled_from(["sinceTime", "tailLines", "container", "follow"]))
def test_any_text_is_taken_or_refused(text: str, key: str) -> None:
    request: Any = Request("GET", "/")
    request._query = {key: [text]}
    with suppress(ApiError):
        log_options(request, "p")
