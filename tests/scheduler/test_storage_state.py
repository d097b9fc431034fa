"""Held pods are counted with their volumes, in whatever order pods, claims and volumes are read."""

from itertools import permutations

import pytest

from gpupool.contract.volumes import Storage
from gpupool.core.pods import AttachedVolume
from gpupool.scheduler import pending
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.pending import Pending
from kubeclient.mirror import Changed
from kubeclient.objects import Obj
from tests.scheduler.model_api import ModelApi
from tests.scheduler.world import NAMES, POLICY

DISK = AttachedVolume("disks.example", "one")
ATTACHED = {"driver": "disks.example", "volumeHandle": "one"}
CLAIM = {
    "metadata": {"namespace": "default", "name": "data", "uid": "c"},
    "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"]},
    "status": {"phase": "Bound"},
}
VOLUME = {
    "metadata": {"name": "v"},
    "spec": {
        "csi": ATTACHED,
        "claimRef": {"namespace": "default", "name": "data", "uid": "c"},
    },
}


def bound_pod() -> Obj:
    api = ModelApi()
    api.add_pod("p", 1)
    used = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    api.set_spec("pods", "p", volumes=used, nodeName="n")
    return api.pods["p"]


def new_state() -> ClusterState:
    state = ClusterState(NAMES, POLICY, lambda: None, lambda: 0.0)
    state.node_changed(None, {"metadata": {"name": "n"}})
    return state


def attached(state: ClusterState) -> list[AttachedVolume]:
    node = state.cluster.state("n")
    assert node is not None
    return sorted(node.volumes)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_volumes_of_held_pods_count_in_any_order(order: tuple[int, ...]) -> None:
    state, pod = new_state(), bound_pod()
    changes: list[tuple[Changed, Obj]] = [
        (state.volume_claim_changed, CLAIM),
        (state.volume_changed, VOLUME),
        (state.pod_changed, pod),
    ]
    for at in order:
        tell, obj = changes[at]
        tell(None, obj)
    assert attached(state) == [DISK]
    state.pod_changed(pod, None)
    assert attached(state) == []
    state.volume_changed(VOLUME, None)  # nobody uses it any more


def test_limits_are_kept_whichever_is_seen_first_the_node_or_its_limits() -> None:
    state = new_state()
    drivers = [{"name": "d", "allocatable": {"count": 3}}]
    for name in ("n", "later"):
        state.volume_limits_changed(
            None, {"metadata": {"name": name}, "spec": {"drivers": drivers}}
        )
    state.node_changed(None, {"metadata": {"name": "later"}})
    for name in ("n", "later"):
        known = state.cluster.state(name)
        assert known is not None
        assert known.node.volume_limits == {"d": 3}
        state.volume_limits_changed({"metadata": {"name": name}}, None)
        known = state.cluster.state(name)
        assert known is not None
        assert known.node.volume_limits == {}


def test_a_volume_concerns_only_the_pods_that_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state, api = new_state(), ModelApi()
    for name in ("data", "other"):
        used = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        api.add_pod(name, 1)
        api.set_spec("pods", name, volumes=used)
        state.pod_changed(None, api.pods[name])
    looked_at: list[str] = []

    def with_storage(pod: Pending, storage: Storage) -> Pending:
        looked_at.append(pod.request.name)
        return pending.with_storage(pod, storage)

    monkeypatch.setattr("gpupool.scheduler.cluster_state.with_storage", with_storage)
    state.volume_claim_changed(None, CLAIM)
    state.volume_changed(None, VOLUME)
    assert looked_at == ["data", "data"]
    waiting = {pod.request.name: pod.request for pod in state.pending.values()}
    assert not waiting["data"].waits_for
    assert waiting["other"].waits_for
    state.class_changed(None, {"metadata": {"name": "fast"}})
    assert looked_at[2:] == ["data", "other"]


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    state, pod = new_state(), bound_pod()
    waiting = {**pod, "spec": {**pod["spec"], "nodeName": ""}}
    state.pod_changed(None, waiting)
    state.pod_changed(waiting, pod)
    state.pod_changed(pod, None)
    assert not state._storage._uses
    assert not state._storage._users
