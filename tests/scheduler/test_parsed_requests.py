"""What a pod asks for is not parsed again, unless it is another pod by now."""

from typing import Any

import pytest

from gpupool.core.pods import PodRequest
from gpupool.scheduler.parsed_requests import ParsedRequests

REQUEST = PodRequest("u", "default", "p", {"pods": 1}, labels={"app": "a"})
SAME = {"uid": "u", "generation": 3, "labels": {"app": "a"}}


def kept(generation: int = 3) -> ParsedRequests:
    made = ParsedRequests()
    made.keep(generation, REQUEST)
    return made


def test_the_request_is_taken_once() -> None:
    parsed = kept()
    assert parsed.take(SAME) is REQUEST
    assert parsed.take(SAME) is None


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "v"},
        {"generation": 4},
        {"labels": {"app": "b"}},
        {"labels": None},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_a_pod_that_is_another_by_now_is_parsed(change: dict[str, Any]) -> None:
    assert kept().take({**SAME, **change}) is None


def test_without_a_generation_nobody_knows_whether_it_is_the_same() -> None:
    assert len(kept(generation=0)) == 0


def test_a_pod_that_is_gone_is_forgotten() -> None:
    parsed = kept()
    parsed.gone("u")
    assert len(parsed) == 0
