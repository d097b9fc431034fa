"""Shapes: one value for pods that are alike."""

import pytest

from gpupool.engine import shapes
from gpupool.engine.kinds import kind_of
from gpupool.engine.shapes import Shapes
from tests.engine.building import shared


def test_pods_that_are_alike_share_a_shape() -> None:
    known = Shapes()
    assert known.of(shared("a", 3)) is known.of(shared("b", 3))
    assert known.of(shared("a", 3)) is not known.of(shared("a", 4))
    assert known.of(shared("a", 3)) is not known.of(shared("a", 3, node_name="n"))


def test_the_kind_of_a_pod_is_that_of_the_pod_that_is_asked_about() -> None:
    known, pods = Shapes(), [shared("a", 3), shared("b", 4), shared("a", 5)]
    for pod in (*pods, pods[0], pods[0]):
        assert known.of(pod).kind == kind_of(pod)


def test_only_so_many_shapes_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST_SHAPES", 4)
    known = Shapes()
    for units in range(1, 20):
        assert known.of(shared("a", units)).kind.ask.memory == units
        assert len(known._known) <= 4
