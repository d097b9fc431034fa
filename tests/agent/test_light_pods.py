"""Light pods tell the audits the same as whole ones."""

import pytest

from gpupool.agent.audit import audited, overuses
from gpupool.agent.leaves import Leaf
from gpupool.agent.light_pods import LightPods, light
from gpupool.agent.missing_cards import started
from gpupool.agent.owners import owner_names
from gpupool.agent.wall_plan import plan, walls
from gpupool.contract.allocation import pod_allocation
from gpupool.core.gpu import Isolation, Wall
from gpupool.core.ways import Way, Ways
from gpupool.hardware.driver import ProgramUse
from kubeclient.client import Kube
from kubeclient.mirror import Mirror, key_of
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.agent.test_shrinks import pod

ONE, OTHER, GONE = "a" * 64, "b" * 64, "c" * 64
STATES: dict[str, Obj] = {
    "running": {"state": {"running": {}}},
    "ended": {"state": {"terminated": {"containerID": f"containerd://{ONE}"}}},
    "again": {
        "state": {"running": {}},
        "lastState": {"terminated": {"containerID": f"containerd://{GONE}"}},
    },
}


def whole(state: str, phase: str) -> Obj:
    made = pod(isolation=Isolation.LIMIT)
    made["metadata"]["annotations"]["limits.gpupool.io/c"] = "GPU-a 1024 0\n"
    made["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    made["spec"]["runtimeClassName"] = "nvidia"
    status = {"name": "c", "containerID": f"containerd://{ONE}", **STATES[state]}
    sidecar = {"name": "s", "containerID": f"cri-o://{OTHER}", "state": {"running": {}}}
    made["status"] = {
        "phase": phase,
        "containerStatuses": [status],
        "initContainerStatuses": [sidecar],
    }
    return made


@pytest.mark.parametrize("phase", ["Running", "Failed"])
@pytest.mark.parametrize("state", STATES)
def test_a_light_pod_tells_all_readers_the_same(state: str, phase: str) -> None:
    full = whole(state, phase)
    less = light(full)
    assert len(str(less)) < len(str(full))
    ways = Ways(Way.RUNTIME_CLASS, runtime_class="nvidia")
    leaves = [Leaf("u", id, f"/{id}") for id in (ONE, OTHER, GONE)]
    uses = [ProgramUse(1, "GPU-a", 9999)]
    held = {"u": {ONE}}

    def said(each: Obj) -> tuple[object, ...]:
        return (
            owner_names(each),
            pod_allocation(each),
            list(started([each], ways)),
            len(audited([each])),
            overuses([each], uses, lambda pid: "u"),
            plan([each], leaves),
            walls([each], held, Wall.LIMITER),
        )

    assert said(less) == said(full)


def test_a_pod_that_is_hardly_there_stays_one() -> None:
    made = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {}, "status": None}
    less = light(made)
    assert less == {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": {}},
        "spec": {},
        "status": {},
    }


def test_a_pod_that_is_being_deleted_says_so() -> None:
    made = pod()
    made["metadata"]["deletionTimestamp"] = "2026-11-17T20:00:00Z"
    less = light(made)
    assert less["metadata"]["deletionTimestamp"] == "2026-11-17T20:00:00Z"


def test_a_pod_is_made_light_when_it_changes_and_not_when_it_is_looked_at() -> None:
    mirror = Mirror(Kube.__new__(Kube), PODS)
    pods = LightPods(mirror)
    told: list[int] = []
    pods.on_change(lambda: told.append(len(list(pods))))
    made = {**pod(), "spec": {"containers": []}}
    mirror._put(key_of(made), made)
    (first,), (again,) = pods, pods
    assert first is again
    assert first == light(made)
    mirror._put(key_of(made), None)
    assert list(pods) == []
    assert told == [1, 0]
