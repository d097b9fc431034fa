"""How long `gpupool up` waits for nodes."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpupool.local import pool_readiness
from gpupool.local.pool_readiness import Pools, pools_as_they_come

WANTED = 10


class World:
    """A server whose cluster moves on with each look; its clock moves with it."""

    def __init__(self, steps: Iterator[tuple[int, int] | None], phase: str) -> None:
        self.steps, self.now_s = steps, 0.0
        self.there = self.ready = 0
        self.phase = phase  # empty: what fits the number of nodes

    def answer(self, _: Path, __: int, path: str, **___: object) -> bytes | None:
        if path.startswith("/api/v1/nodes"):
            items = min(self.there, 1)
            rest = {"remainingItemCount": self.there - 1} if self.there > 1 else {}
            return json.dumps({"metadata": rest, "items": [{}] * items}).encode()
        step = next(self.steps)
        if step is None:
            return None
        self.there, self.ready = step
        phase = self.phase or ("Active" if self.ready == WANTED else "Initializing")
        pool = {
            "metadata": {"name": "p"},
            "spec": {"count": WANTED},
            "status": {"phase": phase, "readyNodes": self.ready},
        }
        return json.dumps({"metadata": {}, "items": [pool]}).encode()

    def sleep(self, _: float) -> None:
        self.now_s += 1.0


def wait(
    monkeypatch: pytest.MonkeyPatch,
    steps: Iterator[tuple[int, int] | None],
    limit_s: float = 1000,
    phase: str = "",
) -> tuple[Pools | None, list[int], float]:
    here = World(steps, phase)
    clock = SimpleNamespace(monotonic=lambda: here.now_s, sleep=here.sleep)
    monkeypatch.setattr(pool_readiness, "time", clock)
    monkeypatch.setattr(pool_readiness, "ask_server", here.answer)
    monkeypatch.setattr(pool_readiness, "read_token", lambda _: "")
    heard: list[int] = []
    found = pools_as_they_come(
        Path("/none"),
        1,
        stall_s=5,
        limit_s=limit_s,
        tell=lambda _, there: heard.append(there),
    )
    return found, heard, here.now_s


def test_nodes_are_waited_for_while_more_of_them_come(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [(there, 0) for there in range(WANTED + 1) for _ in range(4)]
    found, heard, _ = wait(monkeypatch, iter([*slow, (WANTED, WANTED)]))
    assert found is not None
    assert found.ready == found.wanted == WANTED
    assert heard == list(range(WANTED + 1))


def test_nodes_of_a_pool_that_was_active_before_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = iter([(WANTED, WANTED - 1), (WANTED, WANTED)])
    found, _, _ = wait(monkeypatch, steps, phase="Active")
    assert found is not None
    assert found.ready == WANTED


def test_a_cluster_that_gets_no_further_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found, heard, took_s = wait(monkeypatch, iter([(3, 1)] * 100))
    assert found is not None
    assert (found.ready, heard, took_s) == (1, [3], 5.0)


def test_the_wait_has_an_end_even_if_nodes_keep_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _, took_s = wait(monkeypatch, iter([(n, 0) for n in range(100)]), limit_s=20)
    assert found is not None
    assert (found.ready, took_s) == (0, 20.0)


def test_a_late_answer_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _, _ = wait(monkeypatch, iter([(3, 1), None, None, (WANTED, WANTED)]))
    assert found is not None
    assert found.ready == WANTED


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait(monkeypatch, iter([None]))[0] is None
