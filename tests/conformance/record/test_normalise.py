from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.record.case import Json
from tests.conformance.record.normalise import normalise, unordered

UID = "9ee5a8de-1b7f-4b6e-9d5c-0123456789ab"
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"metadata": {"uid": UID}}, {"metadata": {"uid": "<uid>"}}),
        ({"metadata": {"resourceVersion": "12"}}, {"metadata": {"resourceVersion": "<version>"}}),
        ({"metadata": {"resourceVersion": ""}}, {"metadata": {"resourceVersion": ""}}),
        ({"time": "2026-01-02T03:04:05Z"}, {"time": "<time>"}),
        ({"time": "2026-01-02T03:04:05.000006Z"}, {"time": "<time>"}),
        (
            {"generateName": "gen-", "name": "gen-x4zbc"},
            {"generateName": "gen-", "name": "gen-<suffix>"},
        ),
        (
            {"generateName": "gen-", "name": "gen-chosen"},
            {"generateName": "gen-", "name": "gen-chosen"},
        ),
        ({"name": "kube-api-access-x4zbc"}, {"name": "kube-api-access-<suffix>"}),
        ({"clusterIP": "10.0.3.4"}, {"clusterIP": "<address>"}),
        (
            {"clusterIP": "None", "clusterIPs": ["None"]},
            {"clusterIP": "None", "clusterIPs": ["None"]},
        ),
        ({"nodePort": 31234}, {"nodePort": "<port>"}),
        ({"nodePort": 80}, {"nodePort": 80}),
        ({"cells": ["p", "1/1", 3, "5m3s"]}, {"cells": ["p", "1/1", 3, "<age>"]}),
        ({"cells": ["5 (318d ago)"]}, {"cells": ["5 (<age> ago)"]}),
        ({"cells": ["10.0.1.2", "80:32205/TCP"]}, {"cells": ["<address>", "80:<port>/TCP"]}),
        ('resourceVersion: "31"', 'resourceVersion: "<version>"'),
        ({"message": f"UID in record ({UID})"}, {"message": "UID in record (<uid>)"}),
        ({"replicas": 3, "paused": False, "x": None}, {"replicas": 3, "paused": False, "x": None}),
        (
            [{"type": "ADDED", "object": {"uid": "u"}}],
            [{"type": "ADDED", "object": {"uid": "<uid>"}}],
        ),
        ("ok", "ok"),
    ],
)
def test_only_what_varies_is_replaced(answer: Json, expected: Json) -> None:
    assert normalise(answer) == expected


def test_order_of_map_walks_does_not_count() -> None:
    causes = [{"field": "spec.a", "message": "Required"}, {"field": "spec.b", "message": "Odd"}]
    one = {
        "message": "x is invalid: [spec.a: Required, spec.b: Odd]",
        "details": {"causes": causes},
    }
    other = {
        "message": "x is invalid: [spec.b: Odd, spec.a: Required]",
        "details": {"causes": causes[::-1]},
    }
    assert one != other
    assert unordered(one) == unordered(other) == one


def test_managed_fields_can_be_left_out() -> None:
    answer = {"metadata": {"name": "x", "managedFields": [{"manager": "m"}]}}
    assert normalise(answer, managed_fields=False) == {"metadata": {"name": "x"}}
    assert normalise(answer) == answer


def test_twice_is_as_good_as_once() -> None:
    for record in json.loads((FIXTURES / "requests.json").read_text()):
        once = normalise(record["response"])
        assert normalise(once) == once, record["name"]
