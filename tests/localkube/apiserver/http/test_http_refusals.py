"""What clients are told when the HTTP layer itself refuses a request."""

import orjson
import pytest

from localkube.apiserver.request import Answer, Reply, Request
from tests.localkube.apiserver.http.wire_client import QUICK, wired


async def hello(request: Request) -> Reply:
    return Answer(200, b"hello")


@pytest.mark.parametrize(
    ("head", "code", "reason", "words"),
    [
        ("GET /" + "a" * 9_000 + " HTTP/1.1", 414, "URITooLong", "longer than 8192 bytes"),
        (
            "GET / HTTP/1.1\r\nX: " + "a" * 40_000,
            431,
            "RequestHeaderFieldsTooLarge",
            "more than 100 headers of 32768 bytes together",
        ),
        (
            "GET / HTTP/1.1" + "\r\nX: a" * 101,
            431,
            "RequestHeaderFieldsTooLarge",
            "more than 100 headers",
        ),
        (
            "POST / HTTP/1.1\r\nExpect: tea\r\nContent-Length: 3",
            417,
            "ExpectationFailed",
            "Expect: tea is not understood",
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip",
            501,
            "NotImplemented",
            "the only Transfer-Encoding understood is chunked",
        ),
    ],
)
async def test_a_refusal_of_the_wire_has_a_reason_and_words(
    head: str, code: int, reason: str, words: str
) -> None:
    async with wired(hello, QUICK) as wire:
        wire.send(f"{head}\r\nHost: localhost\r\n\r\n")
        answer = await wire.answer()
        said = orjson.loads(answer.body)
        assert (answer.status, said["kind"], said["code"]) == (code, "Status", code)
        assert said["reason"] == reason
        assert words in said["message"]
