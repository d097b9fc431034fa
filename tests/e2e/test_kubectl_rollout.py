"""kubectl rollout of Deployments, StatefulSets and DaemonSets."""

import re

import pytest

from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, deployment, template, workload

pytestmark = pytest.mark.kubectl

KINDS = ["deployment", "statefulset", "daemonset"]
_OBJECTS = {
    "deployment": ("Deployment", 2),
    "statefulset": ("StatefulSet", 2),
    "daemonset": ("DaemonSet", None),
}


def start(kubectl: Kubectl, kind: str, image: str = "nginx:1") -> str:
    """A workload `web` of this kind, rolled out; how kubectl names it."""
    full, replicas = _OBJECTS[kind]
    kubectl.apply(workload(full, "web", replicas, template=template(container(image=image))))
    kubectl("rollout", "status", f"{kind}/web")
    return f"{kind}/web"


def images(kubectl: Kubectl) -> set[str]:
    """Of the pods that run and are to stay."""
    items = kubectl.json("get", "pods")["items"]
    return {
        pod["spec"]["containers"][0]["image"]
        for pod in items
        if "deletionTimestamp" not in pod["metadata"]
    }


def revisions(kubectl: Kubectl, what: str) -> list[int]:
    shown = kubectl("rollout", "history", what)
    return [int(number) for number in re.findall(r"^(\d+)\s", shown, re.MULTILINE)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_image_is_rolled_out(kubectl: Kubectl, kind: str) -> None:
    web = start(kubectl, kind)
    kubectl("set", "image", web, "web=nginx:2")
    said = kubectl("rollout", "status", web)
    assert re.search("successfully rolled out|partitioned roll out complete", said)
    eventually(lambda: images(kubectl) == {"nginx:2"})


@pytest.mark.parametrize("kind", KINDS)
def test_history_and_undo(kubectl: Kubectl, kind: str) -> None:
    web = start(kubectl, kind)
    kubectl("set", "image", web, "web=nginx:2")
    kubectl("rollout", "status", web)
    assert revisions(kubectl, web) == [1, 2]
    assert "Image:\tnginx:1" in kubectl("rollout", "history", web, "--revision=1")
    assert "rolled back" in kubectl("rollout", "undo", web)
    kubectl("rollout", "status", web)
    eventually(lambda: images(kubectl) == {"nginx:1"})
    eventually(lambda: revisions(kubectl, web) == [2, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_restart_replaces_every_pod(kubectl: Kubectl, kind: str) -> None:
    web = start(kubectl, kind)

    def uids() -> set[str]:
        return set(kubectl.field(".items[*].metadata.uid", "pods").split())

    before = uids()
    assert kubectl("rollout", "restart", web).endswith("/web restarted\n")
    kubectl("rollout", "status", web)
    eventually(lambda: not uids() & before)


def test_undo_to_a_revision_and_what_caused_it(kubectl: Kubectl) -> None:
    web = start(kubectl, "deployment")
    kubectl("annotate", web, "kubernetes.io/change-cause=the first")
    for number in (2, 3):
        kubectl("set", "image", web, f"web=nginx:{number}")
        kubectl("rollout", "status", web)
    eventually(lambda: "the first" in kubectl("rollout", "history", web))
    kubectl("rollout", "undo", web, "--to-revision=1")
    kubectl("rollout", "status", web)
    eventually(lambda: images(kubectl) == {"nginx:1"})
    said = kubectl.refused("rollout", "undo", web, "--to-revision=99")
    assert "unable to find specified revision 99 in history" in said


def test_an_undone_revision_is_the_old_replica_set_again(kubectl: Kubectl) -> None:
    web = start(kubectl, "deployment")
    first = kubectl.names("rs")
    kubectl("set", "image", web, "web=nginx:2")
    kubectl("rollout", "status", web)
    kubectl("rollout", "undo", web)
    kubectl("rollout", "status", web)
    assert len(kubectl.names("rs")) == 2
    path = ".metadata.annotations.deployment\\.kubernetes\\.io/revision"
    assert kubectl.field(path, "rs", first[0]) == "3"


def test_a_paused_deployment_waits(kubectl: Kubectl) -> None:
    web = start(kubectl, "deployment")
    assert kubectl("rollout", "pause", web) == "deployment.apps/web paused\n"
    kubectl("set", "image", web, "web=nginx:2")
    kubectl.wait("jsonpath={.status.observedGeneration}=3", web)
    assert images(kubectl) == {"nginx:1"}
    assert "already paused" in kubectl.refused("rollout", "pause", web)
    assert kubectl("rollout", "resume", web) == "deployment.apps/web resumed\n"
    kubectl("rollout", "status", web)
    eventually(lambda: images(kubectl) == {"nginx:2"})


def test_a_rollout_that_gets_nowhere_fails(kubectl: Kubectl) -> None:
    big = container(resources={"requests": {"cpu": "500"}})
    kubectl.apply(deployment("web", progressDeadlineSeconds=1, template=template(big)))
    ended = kubectl.run("rollout", "status", "deployment/web")
    assert ended.code == 1
    assert 'error: deployment "web" exceeded its progress deadline' in ended.err


def test_a_rolling_update_keeps_within_its_bounds(kubectl: Kubectl) -> None:
    bounds = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    kubectl.apply(deployment("web", 3, strategy=bounds))
    kubectl("rollout", "status", "deployment/web")
    wanted = '{.metadata.name} {.spec.replicas}{"\\n"}'
    available = '{.status.availableReplicas}{"\\n"}'
    with (
        kubectl.start("get", "replicasets", "-w", "-o", f"jsonpath={wanted}") as sets,
        kubectl.start("get", "deployment/web", "-w", "-o", f"jsonpath={available}") as whole,
    ):
        sets.shows(" 3\n")
        whole.shows("3\n")
        kubectl("set", "image", "deployment/web", "web=nginx:2")
        kubectl("rollout", "status", "deployment/web")
        seen = sets.shows(" 0\n").splitlines()
        healthy = whole.text().split()
    sizes: dict[str, int] = {}
    for line in seen:
        name, size = line.split()
        sizes[name] = int(size)
        assert sum(sizes.values()) <= 4
    assert min(map(int, healthy)) >= 3


def test_recreate_stops_the_old_first(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2, strategy={"type": "Recreate"}))
    kubectl("rollout", "status", "deployment/web")
    with kubectl.start("get", "pods", "-w", "--output-watch-events") as watch:
        watch.shows("Running")
        kubectl("set", "image", "deployment/web", "web=nginx:2")
        kubectl("rollout", "status", "deployment/web")
        events = [line.split()[0] for line in watch.text().splitlines()[1:]]
    gone = [number for number, event in enumerate(events) if event == "DELETED"]
    come = [number for number, event in enumerate(events) if event == "ADDED"]
    assert max(gone[:2]) < min(come[2:])


def test_a_partition_holds_back_a_stateful_set(kubectl: Kubectl) -> None:
    web = start(kubectl, "statefulset")
    strategy = '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}'
    kubectl("patch", web, "-p", strategy)
    kubectl("set", "image", web, "web=nginx:2")
    said = kubectl("rollout", "status", web)
    assert "partitioned roll out complete: 1 new pods have been updated" in said
    path = ".spec.containers[0].image"
    assert [kubectl.field(path, "pod", f"web-{n}") for n in (0, 1)] == ["nginx:1", "nginx:2"]


def test_on_delete_waits_for_the_pods_to_be_deleted(kubectl: Kubectl) -> None:
    spec = {"updateStrategy": {"type": "OnDelete"}}
    kubectl.apply(workload("StatefulSet", "web", 1, **spec))
    kubectl.wait("jsonpath={.status.readyReplicas}=1", "sts/web")
    kubectl("set", "image", "sts/web", "web=nginx:2")
    kubectl.wait("jsonpath={.status.observedGeneration}=2", "sts/web")
    assert images(kubectl) == {"nginx:1"}
    kubectl("delete", "pod", "web-0")
    eventually(lambda: images(kubectl) == {"nginx:2"})
