"""Recorded writes of a real kube-apiserver, once more through patches and field ownership."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.patch.desk import Desk, Json, target, without_nulls

FIXTURE = Path(__file__).parents[3] / "conformance" / "fixtures" / "requests.json"
WRITES = frozenset({"POST", "PUT", "PATCH"})
# These need more of a server than the desk has.
BEYOND_THE_DESK = frozenset(
    {
        "create from yaml",
        "create with generateName",
        "create duplicate field warns",
        # Unknown fields are pruned by decoding.
        "create unknown field warns",
        "create unknown field ignored",
        "create two unknown fields warn",
        # Times that Go writes as null are not kept, so they have no owner.
        "pod: status",
        "pod: status merges conditions",
        "status: put",
        # A real server forgets when a Scale was written.
        "ssa: scale then apply without replicas",
        # Names and versions are checked elsewhere.
        "create with resourceVersion",
        "merge patch renames",
        # Said in the words of another parser.
        "merge patch not json",
        "ssa: name mismatch",
        "ssa: bad yaml",
        # A Job has labels that the server has set.
        "status metadata: Job-minimal",
        # An empty list is dropped by defaulting.
        "rbac: colon in a name",
    }
)
# All of these have unknown fields.
PRUNED = "strict: "
# Nothing is added to these by admission, nothing allocated.
WITHOUT_ADMISSION = frozenset({"ConfigMap", "Deployment", "Secret"})
OUR_REFUSALS = ("Apply failed with", "rejected our request", "managedFields must", "error decoding")


def is_for_the_desk(case: Json) -> bool:
    steps = [*case.get("prelude", ()), case]
    if case["name"] in BEYOND_THE_DESK or case["name"].startswith(PRUNED):
        return False
    if any(step["method"] not in WRITES for step in steps):
        return False
    try:
        if any(target(step["path"])[0].virtual for step in steps):
            return False
    except KeyError:
        return False
    answer = case["response"]
    if case["status"] in (200, 201):
        return "managedFields" in answer["metadata"]
    return case["status"] == 500 or any(text in answer["message"] for text in OUR_REFUSALS)


CASES = [
    pytest.param(case, id=case["name"])
    for case in orjson.loads(FIXTURE.read_bytes())
    if is_for_the_desk(case)
]


def owners(obj: Json) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in entry.items() if key != "time"} | {"timed": "time" in entry}
        for entry in obj["metadata"].get("managedFields", ())
    ]


def content(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


@pytest.mark.parametrize("case", CASES)
def test_a_write_ends_as_it_did_on_a_real_server(case: Json) -> None:
    desk = Desk()
    for step in case.get("prelude", ()):
        desk.handle(step)
    if case["status"] >= 400:
        with pytest.raises(ApiError) as caught:
            desk.handle(case)
        assert caught.value.status == case["response"]
        return
    found = desk.handle(case)
    wanted = without_nulls(case["response"])
    assert owners(found) == owners(wanted)
    if wanted["kind"] in WITHOUT_ADMISSION and case["name"] != "ssa: null value":
        assert content(found) == content(wanted)


def test_there_is_enough_to_compare_with() -> None:
    assert len(CASES) > 140
