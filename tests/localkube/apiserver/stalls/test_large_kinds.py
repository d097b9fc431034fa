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
