"""An exception in any program of a cluster: the API server and all other programs go on, the
program comes back, and readiness and an event say what failed."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES
from localkube import Cluster, assembly
from localkube.assembly import ClusterSettings, Extension, RunningCluster, run_cluster
from localkube.data_directory import make_data_directory
from localkube.supervision import Program
from tests.localkube.bombs import Bombs
from tests.localkube.rest import PATIENCE_S, Rest

EVENTS = "/api/v1/namespaces/kube-system/events"
PROGRAMS = (
    "namespace-controller",
    "serviceaccount-controller",
    "deployment-controller",
    "replicaset-controller",
    "replication-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "ttl-after-finished-controller",
    "cronjob-controller",
    "horizontal-pod-autoscaler",
    "endpoint-slice-controller",
    "endpoint-controller",
    "disruption-controller",
    "validatingadmissionpolicy-status-controller",
    "event-expiry",
    "crd-cleanup",
    "node-controller",
    "pod-garbage-collector",
    "service-controller",
    "persistentvolume-controller",
    "persistentvolume-reclaim",
    "controllers/pods",
    "garbage-collector",
    "scheduler",
    "records",
    "aggregation",
    "crd-registration",
    "csrapproving",
    "csrcleaner",
    "csrsigning",
    "flow-schemas",
    "acme",
    "kubelet/usage",
    "kubelet/volumes",
    "kubelet/events",
    "kubelet/nodes",
    "kubelet/pods",
    "kubelet/pod-timers",
    "kubelet/node-timers",
    "kubelet/pod-worker-0",
    "kubelet/node-worker-0",
)


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def acme(_: RunningCluster) -> dict[str, Program]:
    async def waits() -> None:
        await asyncio.Event().wait()

    return {"acme": waits}


@pytest.fixture(scope="module")
def bombed() -> Iterator[tuple[Rest, Bombs]]:
    bombs = Bombs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "Supervisor", bombs.supervisor())
        with Cluster(nodes=1, extension=Extension(programs=acme)) as cluster:
            rest = Rest(cluster)
            rest.post("/api/v1/namespaces/default/pods", pod("witness"))
            rest.until("/api/v1/namespaces/default/pods/witness", _runs)
            yield rest, bombs


def pod(name: str) -> Obj:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}


def _runs(found: Obj) -> bool:
    statuses = found.get("status", {}).get("containerStatuses") or [{}]
    return bool(statuses[0].get("ready"))


def failures(rest: Rest, name: str) -> list[Obj]:
    return [
        event
        for event in rest.get(EVENTS)["items"]
        if event["reason"] == "ProgramFailed" and event["source"]["component"] == name
    ]


def test_every_program_of_a_cluster_is_in_the_list(bombed: tuple[Rest, Bombs]) -> None:
    """So that a new one gets its test."""
    _, bombs = bombed
    parts = ("kubelet/pod-worker-", "kubelet/node-worker-", "kubelet/devices of ", "controllers/")
    found = {name for name in bombs.starts if not name.startswith(parts)}
    others = {"controllers", "kubelet", "kubelet/namespaces", "kubelet/services"}
    assert found - others - {"events-of-programs"} == {
        name for name in PROGRAMS if not name.startswith(parts)
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_in_one_program_stops_no_other(bombed: tuple[Rest, Bombs], name: str) -> None:
    rest, bombs = bombed
    before = bombs.starts.copy()
    bombs.throw(name)
    eventually(lambda: f"[-]{name} failed: Bomb: thrown into {name}\n" in rest.ready()[1])
    assert rest.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
    eventually(lambda: bombs.starts[name] == before[name] + 1)
    assert rest.ready()[0] == 500
    bombs.forgive(name)
    eventually(lambda: rest.ready()[0] == 200)
    before[name] += 1
    assert bombs.starts == before  # no other was started again
    eventually(lambda: failures(rest, name))
    event = failures(rest, name)[0]
    assert event["message"] == f"{name} failed: Bomb: thrown into {name}"
    assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "kube-system")
    [status] = rest.get("/api/v1/namespaces/default/pods/witness")["status"]["containerStatuses"]
    assert (status["restartCount"], status["ready"]) == (0, True)


@pytest.mark.parametrize("name", ["controllers", "kubelet"])
def test_an_exception_in_what_holds_several_programs_starts_them_all_again(
    bombed: tuple[Rest, Bombs], name: str
) -> None:
    rest, bombs = bombed
    before = bombs.starts.copy()
    bombs.throw(name)
    eventually(lambda: bombs.starts[name] == before[name] + 1)
    assert rest.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
    bombs.forgive(name)
    eventually(lambda: rest.ready()[0] == 200)
    assert bombs.starts["scheduler"] == before["scheduler"]


def test_after_all_that_everything_still_works(bombed: tuple[Rest, Bombs]) -> None:
    rest, _ = bombed
    spec = pod("web")["spec"]
    template = {"metadata": {"labels": {"a": "web"}}, "spec": spec}
    wanted = {"replicas": 2, "selector": {"matchLabels": {"a": "web"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    rest.post(path, {"metadata": {"name": "web"}, "spec": wanted})
    rest.until(f"{path}/web", lambda found: found["status"].get("readyReplicas") == 2)
    rest.delete(f"{path}/web")
    pods = "/api/v1/namespaces/default/pods?labelSelector=a%3Dweb"
    rest.until(pods, lambda found: not found["items"])  # by the garbage collector and the kubelet


def test_a_program_that_fails_for_ever_has_one_event_with_a_count(
    bombed: tuple[Rest, Bombs],
) -> None:
    rest, bombs = bombed
    start = bombs.starts["records"]
    for number in range(1, 4):
        wanted = start + number
        bombs.throw("records")
        eventually(lambda: bombs.starts["records"] == wanted)  # noqa: B023  # it is awaited here

    def counted() -> bool:
        events = failures(rest, "records")
        return len(events) == 1 and events[0]["count"] >= 3

    eventually(counted)
    bombs.forgive("records")
    eventually(lambda: rest.ready()[0] == 200)


async def _never(_: object) -> None:
    await asyncio.Event().wait()


async def _fails(_: object) -> None:
    raise ValueError("broken for ever")


async def test_a_program_that_always_fails_does_not_keep_a_cluster_from_coming_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "Supervisor", Bombs().supervisor())
    stop = asyncio.Event()
    ready: asyncio.Future[RunningCluster] = asyncio.get_running_loop().create_future()
    settings = ClusterSettings("test", make_data_directory(tmp_path / "data"))
    extension = Extension(scheduler=_fails, ready=_never)
    running = asyncio.create_task(
        run_cluster(settings, extension, ready=ready.set_result, stop=stop)
    )
    await asyncio.wait((running, ready), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    cluster = ready.result()
    assert [check.name for check in cluster.health.failing()] == ["scheduler"]
    await cluster.admin().get(NAMESPACES, "default")
    stop.set()
    await asyncio.wait_for(running, PATIENCE_S)
