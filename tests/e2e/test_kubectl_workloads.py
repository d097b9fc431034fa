"""StatefulSets, DaemonSets, Jobs, CronJobs and HorizontalPodAutoscalers by kubectl."""

import json
import re
from typing import Any

import pytest

from gpupool.local.config.settings import NAMES
from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, deployment, service, template, workload

pytestmark = pytest.mark.kubectl


def ending(code: int = 0, seconds: float = 0.0) -> Obj:
    """A template whose containers end by themselves."""
    notes = {NAMES.run_seconds_annotation: str(seconds), NAMES.exit_code_annotation: str(code)}
    made = template(container("main", "busybox"), annotations=notes, restartPolicy="Never")
    del made["metadata"]["labels"]
    return made


def job(name: str, code: int = 0, **spec: Any) -> Obj:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": ending(code), **spec},
    }


def cron_job(name: str, schedule: str, **spec: Any) -> Obj:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job("x")["spec"]}, **spec},
    }


def order_of_birth(kubectl: Kubectl) -> list[str]:
    items = kubectl.json("get", "pods")["items"]
    born = sorted(items, key=lambda pod: int(pod["metadata"]["resourceVersion"]))
    return [pod["metadata"]["name"] for pod in born]


def test_a_stateful_set_starts_one_after_the_other(kubectl: Kubectl) -> None:
    with kubectl.start("get", "pods", "-w", "--output-watch-events") as watch:
        kubectl.apply(workload("StatefulSet", "web", 3), service("web", clusterIP="None"))
        kubectl("rollout", "status", "sts/web")
        text = eventually(lambda: watch.text() if watch.text().count("Running") >= 3 else "")
    first = [text.index(f"web-{number}") for number in range(3)]
    running = [re.search(rf"web-{n}\s+1/1\s+Running", text) for n in range(3)]
    assert first == sorted(first)
    for number in range(2):
        ready = running[number]
        assert ready is not None
        assert ready.start() < first[number + 1]


def test_a_stateful_set_names_labels_and_hosts(kubectl: Kubectl) -> None:
    kubectl.apply(workload("StatefulSet", "web", 2))
    kubectl("rollout", "status", "sts/web")
    found = kubectl.json("get", "pod", "web-1")
    labels = found["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert found["spec"]["hostname"] == "web-1"
    assert found["spec"]["subdomain"] == "web"
    assert kubectl.names("controllerrevisions") == [labels["controller-revision-hash"]]


def test_a_parallel_stateful_set_starts_all_at_once(kubectl: Kubectl) -> None:
    big = template(container(resources={"requests": {"cpu": "500"}}))
    spec = {"podManagementPolicy": "Parallel", "template": big}
    kubectl.apply(workload("StatefulSet", "web", 3, **spec))
    eventually(lambda: kubectl.names("pods") == ["web-0", "web-1", "web-2"])


def test_an_ordered_stateful_set_waits_for_the_first(kubectl: Kubectl) -> None:
    big = template(container(resources={"requests": {"cpu": "500"}}))
    kubectl.apply(workload("StatefulSet", "web", 3, template=big))
    kubectl.wait("condition=PodScheduled=False", "pod/web-0")
    assert kubectl.names("pods") == ["web-0"]


def test_a_stateful_set_shrinks_from_the_end_and_heals(kubectl: Kubectl) -> None:
    kubectl.apply(workload("StatefulSet", "web", 3))
    kubectl("rollout", "status", "sts/web")
    kubectl("scale", "sts/web", "--replicas=1")
    eventually(lambda: kubectl.names("pods") == ["web-0"])
    before = kubectl.field(".metadata.uid", "pod", "web-0")
    kubectl("delete", "pod", "web-0")
    kubectl.wait("condition=Ready", "pod/web-0")
    assert kubectl.field(".metadata.uid", "pod", "web-0") != before


def test_a_stateful_set_keeps_its_volumes(kubectl: Kubectl) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    mounts = [{"name": "data", "mountPath": "/data"}]
    spec = {"template": template(container(volumeMounts=mounts)), "volumeClaimTemplates": [claim]}
    kubectl.apply(workload("StatefulSet", "web", 1, **spec))
    kubectl.wait("condition=Ready", "pod/web-0")
    assert kubectl.field(".status.phase", "pvc", "data-web-0") == "Bound"
    volume = kubectl.field(".spec.volumeName", "pvc", "data-web-0")
    kubectl("delete", "sts", "web")
    assert kubectl.names("pvc") == ["data-web-0"]
    kubectl("delete", "pvc", "data-web-0")
    kubectl.wait("delete", f"pv/{volume}")


def test_a_daemon_set_is_on_every_node_that_it_may(kubectl: Kubectl) -> None:
    kubectl.apply(workload("DaemonSet", "web", None))
    kubectl("rollout", "status", "ds/web")
    workers = set(kubectl.names("nodes", "-l", "disk=ssd"))
    assert set(kubectl.field(".items[*].spec.nodeName", "pods").split()) == workers
    everywhere = template(tolerations=[{"operator": "Exists"}])
    kubectl.apply(workload("DaemonSet", "web", None, template=everywhere))
    kubectl("rollout", "status", "ds/web")
    nodes = set(kubectl.names("nodes"))
    eventually(lambda: set(kubectl.field(".items[*].spec.nodeName", "pods").split()) == nodes)


def test_a_daemon_set_follows_its_node_selector(kubectl: Kubectl) -> None:
    node = kubectl.names("nodes", "-l", "disk=ssd")[0]
    label = f"for-{kubectl.namespace}"
    kubectl.apply(workload("DaemonSet", "web", None, template=template(nodeSelector={label: "y"})))
    kubectl.wait("jsonpath={.status.observedGeneration}=1", "ds/web")
    assert kubectl.names("pods") == []
    kubectl("label", "node", node, f"{label}=y")
    eventually(lambda: kubectl.field(".items[*].spec.nodeName", "pods") == node)
    kubectl("label", "node", node, f"{label}-")
    eventually(lambda: kubectl.names("pods") == [])


def test_a_job_completes(kubectl: Kubectl) -> None:
    kubectl.apply(job("once", completions=3, parallelism=2))
    kubectl.wait("condition=Complete", "job/once")
    found = kubectl.json("get", "job", "once")["status"]
    assert found["succeeded"] == 3
    assert found["completionTime"] >= found["startTime"]
    assert [c["type"] for c in found["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    table = kubectl("get", "job", "once").splitlines()[1].split()
    assert table[:3] == ["once", "Complete", "3/3"]
    labels = kubectl.json("get", "pods")["items"][0]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "once"


def test_a_job_gives_up_after_its_limit(kubectl: Kubectl) -> None:
    kubectl.apply(job("never", 3, backoffLimit=0))
    kubectl.wait("condition=Failed", "job/never")
    found = kubectl.json("get", "job", "never")["status"]
    assert found["failed"] == 1
    condition = next(c for c in found["conditions"] if c["type"] == "Failed")
    assert condition["reason"] == "BackoffLimitExceeded"
    assert condition["message"] == "Job has reached the specified backoff limit"


def test_a_job_past_its_deadline_fails(kubectl: Kubectl) -> None:
    slow = job("slow", activeDeadlineSeconds=1)
    slow["spec"]["template"] = ending(seconds=1000)
    kubectl.apply(slow)
    kubectl.wait("condition=Failed", "job/slow")
    assert "DeadlineExceeded" in kubectl.field(".status.conditions[*].reason", "job", "slow")
    eventually(lambda: kubectl.names("pods", "--field-selector=status.phase=Running") == [])


def test_a_suspended_job_waits(kubectl: Kubectl) -> None:
    kubectl.apply(job("later", suspend=True))
    kubectl.wait("condition=Suspended", "job/later")
    assert kubectl.names("pods") == []
    kubectl("patch", "job", "later", "-p", '{"spec":{"suspend":false}}')
    kubectl.wait("condition=Complete", "job/later")


def test_an_indexed_job_numbers_its_pods(kubectl: Kubectl) -> None:
    kubectl.apply(job("many", completions=3, parallelism=3, completionMode="Indexed"))
    kubectl.wait("condition=Complete", "job/many")
    assert kubectl.field(".status.completedIndexes", "job", "many") == "0-2"
    path = r".items[*].metadata.annotations.batch\.kubernetes\.io/job-completion-index"
    assert sorted(kubectl.field(path, "pods").split()) == ["0", "1", "2"]


def test_a_job_is_deleted_after_its_time(kubectl: Kubectl) -> None:
    kubectl.apply(job("gone", ttlSecondsAfterFinished=0))
    eventually(lambda: kubectl.names("jobs,pods") == [])


def test_a_deleted_job_takes_its_pods_along(kubectl: Kubectl) -> None:
    kubectl.apply(job("once"))
    kubectl.wait("condition=Complete", "job/once")
    kubectl("delete", "job", "once")
    eventually(lambda: kubectl.names("pods") == [])


def test_a_cron_job_can_be_run_by_hand(kubectl: Kubectl) -> None:
    kubectl.apply(cron_job("nightly", "0 0 1 1 *"))
    assert kubectl("create", "job", "now", "--from=cronjob/nightly") == "job.batch/now created\n"
    kubectl.wait("condition=Complete", "job/now")
    path = r".metadata.annotations.cronjob\.kubernetes\.io/instantiate"
    assert kubectl.field(path, "job", "now") == "manual"


@pytest.mark.slow
def test_a_cron_job_runs_when_its_minute_comes(kubectl: Kubectl) -> None:
    kubectl.apply(cron_job("often", "* * * * *"))
    kubectl.wait("jsonpath={.status.lastSuccessfulTime}", "cronjob/often", within_s=75)
    (name,) = kubectl.names("jobs")
    assert re.fullmatch(r"often-\d+", name)
    assert kubectl.field(".metadata.ownerReferences[0].kind", "job", name) == "CronJob"
    kubectl("patch", "cronjob", "often", "-p", '{"spec":{"suspend":true}}')
    assert kubectl("get", "cronjob", "often").splitlines()[1].split()[-4] == "True"


def test_a_bad_schedule_is_refused(kubectl: Kubectl) -> None:
    said = kubectl.refused("apply", "-f", "-", stdin=json.dumps(cron_job("bad", "every day")))
    assert "spec.schedule: Invalid value" in said


def test_an_autoscaler_is_made_and_shown(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"))
    said = kubectl("autoscale", "deployment", "web", "--min=2", "--max=5", "--cpu-percent=50")
    assert said == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    eventually(lambda: kubectl.field(".spec.replicas", "deployment", "web") == "2")
    row = kubectl("get", "hpa", "web").splitlines()[1]
    assert row.startswith("web    Deployment/web")
    metric = kubectl.json("get", "hpa", "web")["spec"]["metrics"][0]["resource"]
    assert metric["target"] == {"type": "Utilization", "averageUtilization": 50}
