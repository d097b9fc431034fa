"""Every sample that was sent to a real kube-apiserver is stored alike by ours, end to end.

What only the pure part has to do with (defaults) is tested beside it, in
tests/localkube/apiserver/test_recorded_defaults.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.deliberate_differences import OBJECTS
from tests.conformance.record import replay
from tests.conformance.record.client import Client
from tests.conformance.record.defaults import NAMESPACE
from tests.conformance.record.normalise import normalise

_FIXTURE = Path(__file__).parent / "fixtures" / "defaults.json"
RECORDED: dict[str, Any] = json.loads(_FIXTURE.read_bytes())


@pytest.fixture(scope="module")
def room(client: Client) -> Client:
    """A client, and the namespace of the samples."""
    for step in replay.namespace_steps(NAMESPACE):
        client.send(step.method, step.path, step.body)
    return client


def test_every_difference_is_about_a_sample() -> None:
    assert len(RECORDED) > 100
    assert set(OBJECTS) <= set(RECORDED)


@pytest.mark.parametrize("label", RECORDED)
def test_a_sample_is_stored_as_recorded(label: str, room: Client) -> None:
    sample = RECORDED[label]
    room.send("DELETE", f"{sample['path']}/{sample['stored']['metadata']['name']}")
    answer = room.send("POST", sample["path"], sample["sent"])
    assert answer.status == 201, answer.response
    actual = [normalise(answer.response), list(answer.warnings)]
    expected = [normalise(sample["stored"]), sample["warnings"]]
    if label in OBJECTS:
        assert actual != expected, f"no longer different: {OBJECTS[label]}"
    else:
        assert actual == expected
