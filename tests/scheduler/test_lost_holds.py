"""A pod that is bound is held, whatever else goes wrong while it is read."""

import contextlib

import pytest

from gpupool.engine.packing import Packing
from gpupool.scheduler.cluster_state import ClusterState
from tests.scheduler.model_api import ModelApi


def test_a_bound_pod_is_held_before_anything_is_learned_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mirror goes on after an error: the card of the pod would be given to another."""
    api = ModelApi()
    state = ClusterState({"gpupool-scheduler"}, "residue", lambda: None, lambda: 0.0)
    api.set_node("n", ill=False)
    state.node_changed(None, api.nodes["n"])
    api.add_pod("bound", 4, spec={"nodeName": "n"})
    api.add_pod("waits", 4)
    monkeypatch.setattr(Packing, "count", lambda *_: 1 / 0)
    for name in ("bound", "waits"):
        with contextlib.suppress(ZeroDivisionError):
            state.pod_changed(None, api.pods[name])
    assert state.cluster.held(api.pods["bound"]["metadata"]["uid"]) is not None
    assert api.pods["waits"]["metadata"]["uid"] in state.pending
