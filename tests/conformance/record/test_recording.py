"""The fixtures are what the cases describe, and stand on their own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conformance.record.case import Case, get, post
from tests.conformance.record.cases import CASES
from tests.conformance.record.layout import laid_out
from tests.conformance.record.samples import SAMPLES

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def _fixture(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text())


def test_each_case_has_a_name_and_a_namespace_of_its_own() -> None:
    for key in ("name", "namespace"):
        counts = Counter(getattr(case, key) for case in CASES)
        assert [value for value, count in counts.items() if count > 1] == []


def test_every_case_is_recorded() -> None:
    assert [record["name"] for record in _fixture("requests")] == [case.name for case in CASES]


def test_every_sample_is_recorded() -> None:
    assert list(_fixture("defaults")) == [sample.label for sample in SAMPLES]


def test_no_prelude_failed() -> None:
    for record in _fixture("requests"):
        for step in record.get("prelude", []):
            assert step["status"] < 400 or step["status"] == step["until_status"], record["name"]


def test_a_case_is_namespaced_when_any_of_its_requests_is() -> None:
    inside = post("/api/v1/namespaces/{ns}/configmaps", {})
    assert not Case("x", get("/version")).namespaced
    assert Case("x", get("/version"), (inside,)).namespaced
    assert Case("x", inside).namespaced


def test_layout_keeps_the_value() -> None:
    value = {"a": [1, 2, {"b": "x" * 90, "é": None}], "empty": {}, "long": ["y" * 60] * 3}
    assert json.loads(laid_out(value)) == value
    assert max(map(len, laid_out(value).splitlines())) <= 110
    assert laid_out({"a": [1, 2]}) == '{"a": [1, 2]}'
