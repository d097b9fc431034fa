import pytest

from kubeclient.objects import Obj
from kubeclient.times import stamp
from localkube.kubelet.lifecycle import (
    RestartBackoff,
    begin,
    mark_exited,
    mark_failed,
    mark_running,
    plan,
)
from localkube.kubelet.notices import crash_loop
from localkube.kubelet.pod_record import pod_record
from localkube.kubelet.pod_status import pod_status
from localkube.kubelet.state import Pod, Problem, Stop

NOW = 1_800_000_000.0
THEN = "2027-01-15T08:00:00Z"
BACKOFF = RestartBackoff()


def obj(*, inits: int = 0, status: Obj | None = None, **spec: object) -> Obj:
    named = [{"name": f"i{number}", "image": "busybox"} for number in range(inits)]
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(0)}
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 2},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "nginx"}],
            **({"initContainers": named} if inits else {}),
            **spec,
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort", "conditions": [scheduled]}
        | (status or {}),
    }


def started(given: Obj) -> Pod:
    pod = pod_record(given, "timer", NOW)
    pod.prepared = True
    pod.ip = "10.0.0.2"
    while starting := plan(pod, NOW, BACKOFF).start:
        for index in starting:
            begin(pod.containers[index], "id", NOW, BACKOFF)
            mark_running(pod.containers[index], NOW)
    return pod


def conditions(status: Obj) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c.get("reason", "")) for c in status["conditions"]}


def test_a_running_pod_as_a_kubelet_writes_it() -> None:
    given = obj()
    status = pod_status(started(given), given, "192.168.0.1", NOW)
    since = {"lastTransitionTime": THEN, "observedGeneration": 2, "status": "True"}
    assert status == {
        "phase": "Running",
        "observedGeneration": 2,
        "qosClass": "BestEffort",
        "startTime": THEN,
        "hostIP": "192.168.0.1",
        "hostIPs": [{"ip": "192.168.0.1"}],
        "podIP": "10.0.0.2",
        "podIPs": [{"ip": "10.0.0.2"}],
        "conditions": [
            {"type": "PodReadyToStartContainers", **since},
            {"type": "Initialized", **since},
            {"type": "Ready", **since},
            {"type": "ContainersReady", **since},
            {"type": "PodScheduled", **since, "lastTransitionTime": stamp(0)},
        ],
        "containerStatuses": [
            {
                "name": "c",
                "state": {"running": {"startedAt": THEN}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "nginx",
                "imageID": "localkube://nginx",
                "containerID": "localkube://id",
                "started": True,
                "resources": {},
            }
        ],
    }


def test_the_time_of_a_condition_stays_while_it_holds() -> None:
    given = obj()
    first = pod_status(started(given), given, "", NOW)
    later = pod_status(started(given), given | {"status": first}, "", NOW + 100)
    assert later["conditions"] == first["conditions"]


@pytest.mark.parametrize(("inits", "reason"), [(0, "ContainerCreating"), (1, "PodInitializing")])
def test_a_new_pod_waits_for_its_containers(inits: int, reason: str) -> None:
    given = obj(inits=inits)
    status = pod_status(pod_record(given, "timer", NOW), given, "", NOW)
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": reason}}
    assert "containerID" not in status["containerStatuses"][0]
    assert "podIP" not in status


def test_init_containers_hold_the_pod_up() -> None:
    given = obj(inits=2)
    pod = started(given)
    status = pod_status(pod, given, "", NOW)
    assert conditions(status)["Initialized"] == ("False", "ContainersNotInitialized")
    message = next(c["message"] for c in status["conditions"] if c["type"] == "Initialized")
    assert message == "containers with incomplete status: [i0 i1]"


def test_a_container_that_waits_for_its_next_run() -> None:
    given = obj()
    pod = started(given)
    container = pod.containers[0]
    container.backoff_s = 80
    mark_exited(container, 2, NOW)
    container.problem = crash_loop(pod, container)
    entry = pod_status(pod, given, "", NOW)["containerStatuses"][0]
    assert entry["state"] == {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off 1m20s restarting failed container=c pod=p_ns(u)",
        }
    }
    assert entry["lastState"]["terminated"]["exitCode"] == 2


def test_a_container_that_could_not_start() -> None:
    given = obj()
    pod = pod_record(given, "timer", NOW)
    begin(pod.containers[0], "id", NOW, BACKOFF)
    mark_failed(pod.containers[0], Problem("CreateContainerConfigError", "why"), NOW + 2)
    entry = pod_status(pod, given, "", NOW)["containerStatuses"][0]
    assert entry["state"]["waiting"] == {"reason": "CreateContainerConfigError", "message": "why"}


def test_readiness_gates_are_waited_for() -> None:
    given = obj(readinessGates=[{"conditionType": "example.com/ok"}])
    status = pod_status(started(given), given, "", NOW)
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert ready["message"] == (
        'corresponding condition of pod readiness gate "example.com/ok" does not exist.'
    )
    assert conditions(status)["ContainersReady"][0] == "True"
    mine = {"type": "example.com/ok", "status": "True"}
    given["status"]["conditions"].append(mine)
    status = pod_status(started(given), given, "", NOW)
    assert conditions(status)["Ready"] == ("True", "")
    assert mine in status["conditions"]


def test_the_conditions_of_a_finished_pod_say_how_it_ended() -> None:
    given = obj(restartPolicy="Never")
    pod = started(given)
    mark_exited(pod.containers[0], 0, NOW)
    status = pod_status(pod, given, "", NOW)
    assert conditions(status) == {
        "PodReadyToStartContainers": ("False", ""),
        "Initialized": ("True", "PodCompleted"),
        "Ready": ("False", "PodCompleted"),
        "ContainersReady": ("False", "PodCompleted"),
        "PodScheduled": ("True", ""),
    }
    failed = started(given)
    mark_exited(failed.containers[0], 1, NOW)
    assert conditions(pod_status(failed, given, "", NOW))["Ready"] == ("False", "PodFailed")


def test_a_pod_past_its_deadline() -> None:
    given = obj()
    pod = started(given)
    pod.stop = Stop(NOW, 30, Problem("DeadlineExceeded", "too long"))
    assert pod_status(pod, given, "", NOW)["phase"] == "Running"
    mark_exited(pod.containers[0], 143, NOW)
    status = pod_status(pod, given, "", NOW)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_record_is_restored_from_a_written_status() -> None:
    given = obj(inits=1)
    pod = started(given)
    mark_exited(pod.containers[0], 0, NOW)
    while plan(pod, NOW, BACKOFF).start:
        begin(pod.containers[1], "x", NOW, BACKOFF)
        mark_running(pod.containers[1], NOW)
    mark_exited(pod.containers[1], 1, NOW + 5)
    begin(pod.containers[1], "y", NOW + 5, BACKOFF)
    mark_running(pod.containers[1], NOW + 5)
    before = pod_status(pod, given, "1.1.1.1", NOW + 6)
    again = given | {"status": before}
    recalled = pod_record(again, "timer", NOW + 100)
    recalled.prepared = True
    assert pod_status(recalled, again, "1.1.1.1", NOW + 100) == before


def test_the_id_of_a_container_is_found_again_whatever_its_scheme() -> None:
    entry = {"name": "c", "containerID": "older://id", "state": {"running": {"startedAt": THEN}}}
    known = {"phase": "Running", "startTime": THEN, "containerStatuses": [entry]}
    given = obj(status=known)
    status = pod_status(pod_record(given, "timer", NOW), given, "", NOW)
    assert status["containerStatuses"][0]["containerID"] == "localkube://id"
