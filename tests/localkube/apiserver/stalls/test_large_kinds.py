"""Other threads wait for each single call into C: the checks of a large kind are made in many."""

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import orjson

from bench.heavy.bodies import crd_body, wide_schema
from localkube.apiserver.custom import CustomKinds
from localkube.apiserver.kinds import Kinds, builtin_kinds
from tests.faults.loop_watchdog import BOUND_S
from tests.localkube.apiserver.validation import rules_subject


def _longest_s(step: Callable[[], None]) -> float:
    """Of all calls of msgspec; in processor time, without the garbage collector's."""
    longest_s, began_s = 0.0, 0.0

    def called(_: FrameType, event: str, function: Any) -> None:
        nonlocal longest_s, began_s
        if not event.startswith("c_") or "msgspec" not in str(function.__module__):
            return
        if event == "c_call":
            began_s = time.thread_time()
        else:
            longest_s = max(longest_s, time.thread_time() - began_s)

    gc.disable()
    sys.setprofile(called)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return longest_s


def test_the_checks_of_a_large_kind_are_made_piece_by_piece() -> None:
    groups = {f"g{number}": wide_schema(100) for number in range(300)}
    crd = orjson.loads(crd_body("wide", {"type": "object", "properties": groups}))
    kinds = CustomKinds(Kinds(builtin_kinds()))
    assert 0 < _longest_s(lambda: kinds.prepare(crd)) < BOUND_S


def test_what_was_prepared_for_a_kind_goes_with_it() -> None:
    """The change that takes away its last finalizer is prepared as any other."""
    crd = orjson.loads(crd_body("wide", wide_schema(100)))
    kinds = CustomKinds(Kinds(builtin_kinds()))
    kinds.replace("wide", crd)
    kinds.prepare(crd)
    (prepared,) = kinds._prepared[1].values()
    schema = prepared.schema
    held = len(gc.get_referrers(schema))
    kinds.replace("wide", None)
    del prepared
    gc.collect()
    assert len(gc.get_referrers(schema)) < held


def test_a_kind_of_very_many_versions_is_refused() -> None:
    crd = orjson.loads(crd_body("wide", wide_schema(1)))
    crd |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    (first,) = crd["spec"]["versions"]
    others = [first | {"name": f"v{number}", "storage": False} for number in range(2, 102)]
    crd["spec"]["versions"] = [first, *others]
    said = [f"{field}: {message}" for _, field, message in rules_subject.created(crd)]
    assert "spec.versions: Too many: 101: must have at most 100 items" in said
