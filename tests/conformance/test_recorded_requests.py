"""Every request that was put to a real kube-apiserver 1.35.8 gets the same answer from ours.

What differs on purpose is listed in `deliberate_differences.py`, each with its reason; a listed
case that no longer differs fails too, so that the list stays true.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.deliberate_differences import DIFFERENCES, NOT_REPLAYED, PRINTED
from tests.conformance.printed_objects import without_objects
from tests.conformance.record.case import Case
from tests.conformance.record.cases import CASES
from tests.conformance.record.client import Client
from tests.conformance.record.normalise import normalise, unordered
from tests.conformance.record.replay import run

_RECORDED = Path(__file__).parent / "fixtures" / "requests.json"
RECORDED: dict[str, Any] = {each["name"]: each for each in json.loads(_RECORDED.read_bytes())}


def _comparable(record: dict[str, Any]) -> dict[str, Any]:
    response = unordered(normalise(record["response"]))
    if isinstance(response, dict) and isinstance(response.get("items"), list):
        response = {**response, "items": [_item(response, item) for item in response["items"]]}
    return {"status": record["status"], "warnings": record["warnings"], "response": response}


def _item(listing: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """Ours repeat apiVersion and kind in every item, which costs nothing and harms nobody."""
    if str(listing.get("kind", "")).startswith("PartialObjectMetadata"):
        return item
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}


def _without_objects(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_objects(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_objects(inner) for inner in value]
    return without_objects(value) if isinstance(value, str) else value


REPLAYED = [case for case in CASES if case.name not in NOT_REPLAYED]


def test_every_difference_is_about_a_case() -> None:
    assert DIFFERENCES.keys() | NOT_REPLAYED.keys() <= {case.name for case in CASES}
    assert not DIFFERENCES.keys() & NOT_REPLAYED.keys()


@pytest.mark.parametrize("case", REPLAYED, ids=lambda case: case.name)
def test_a_recorded_request_gets_the_recorded_answer(case: Case, client: Client) -> None:
    expected = _comparable(RECORDED[case.name])
    answer = run(case, client)
    actual = _comparable(answer)
    if case.name in DIFFERENCES:
        assert actual != expected, f"no longer different: {DIFFERENCES[case.name]}"
        assert actual["status"] < 500 or expected["status"] >= 500
        if DIFFERENCES[case.name] is PRINTED:
            recorded = _without_objects(RECORDED[case.name])
            assert _comparable(_without_objects(answer)) == _comparable(recorded)
    else:
        assert actual == expected
