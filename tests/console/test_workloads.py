"""Workloads of every kind in the console: lists, pages, and what can be done to them."""

import pytest

from gpupool.console.rows.workloads import cron_job_row, daemon_set_row, job_row
from kubeclient.objects import Obj
from tests.console.conftest import Office
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, template, workload

pytestmark = pytest.mark.timeout(600)

APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"


def job_spec(script: str) -> Obj:
    return {"template": {"spec": {"containers": [shell(script)], "restartPolicy": "Never"}}}


def cron_job(name: str) -> Obj:
    spec = {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": job_spec("true")}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def test_a_daemon_set_has_its_page_with_pods_and_yaml(office: Office) -> None:
    spec = {"template": template(shell("sleep 9999"))}
    made = workload("DaemonSet", "every-node", None, **spec)
    office.makes(f"{APPS}/daemonsets", made)

    def has_pods() -> bool:
        page = office.sees("daemonsets/default/every-node")[1]
        return "/pods/default/every-node-" in page and "1 of 1 pods are ready." in page

    eventually(has_pods, within_s=120)
    page = office.sees("daemonsets/default/every-node")[1]
    assert "kind: DaemonSet" in page
    assert "SuccessfulCreate" in page, "its events"
    assert "every-node/scale" not in page
    assert office.sends("daemonsets/default/every-node/restart")[0] == 303
    found = office.finds(f"{APPS}/daemonsets/every-node")
    assert (
        "kubectl.kubernetes.io/restartedAt" in found["spec"]["template"]["metadata"]["annotations"]
    )
    status, _, led = office.sends("daemonsets/default/every-node/delete")
    assert (status, led) == (422, ""), "without the name"
    form = {"typed-name": "every-node"}
    assert office.sends("daemonsets/default/every-node/delete", **form)[2] == "daemonsets"
    gone = f"{APPS}/daemonsets/every-node"
    eventually(lambda: call(office.cluster, "GET", gone)[0] == 404, within_s=120)


def test_a_cron_job_runs_now_is_suspended_and_goes_on(office: Office) -> None:
    made = office.makes(f"{BATCH}/cronjobs", cron_job("nightly"))
    status, _, led = office.sends("cronjobs/default/nightly/run")
    assert (status, led.rpartition("-")[0]) == (303, "jobs/default/nightly")
    job = office.finds(f"{BATCH}/{led.replace('/default', '')}")
    assert job["metadata"]["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert job["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    eventually(lambda: "Complete: 1 of 1 runs succeeded." in office.sees(led)[1], within_s=120)
    assert f"/{led}" in office.sees("cronjobs/default/nightly")[1], "its Jobs are on its page"
    page = office.sees("cronjobs")[1]
    assert "nightly/suspend" in page
    assert "nightly/resume" not in page
    assert office.sends("cronjobs/default/nightly/suspend")[0] == 303
    assert office.finds(f"{BATCH}/cronjobs/nightly")["spec"]["suspend"] is True
    eventually(
        lambda: "makes no Jobs until it is resumed" in office.sees("cronjobs/default/nightly")[1],
        within_s=60,
    )
    assert "nightly/suspend" not in office.sees("cronjobs/default/nightly")[1]
    assert office.sends("cronjobs/default/nightly/resume")[0] == 303
    assert office.finds(f"{BATCH}/cronjobs/nightly")["spec"]["suspend"] is False
    # What was resumed twice is as good as resumed once, and so is a second deletion refused.
    assert office.sends("cronjobs/default/nightly/resume")[0] == 303
    form = {"typed-name": "nightly"}
    assert office.sends("cronjobs/default/nightly/delete", **form)[2] == "cronjobs"
    assert office.sends("cronjobs/default/nightly/delete", **form)[0] == 422
    eventually(lambda: office.sees(led)[0] == 404, within_s=120)


def test_a_job_that_failed_says_why(office: Office) -> None:
    spec = {**job_spec("exit 3"), "backoffLimit": 0}
    office.makes(f"{BATCH}/jobs", {"metadata": {"name": "fails"}, "spec": spec})
    page = "jobs/default/fails"
    eventually(lambda: "Failed: 0 of 1 runs succeeded." in office.sees(page)[1], within_s=120)
    assert "Job has reached the specified backoff limit" in office.sees(page)[1]
    assert "fails/suspend" not in office.sees(page)[1], "it is over"


def test_the_pods_of_a_deployment_are_on_its_page_and_those_of_its_neighbour_are_not(
    office: Office,
) -> None:
    """Both have the same labels."""
    for name in ("left", "right"):
        spec = {"template": template(shell("sleep 9999"))}
        office.makes(f"{APPS}/deployments", workload("Deployment", name, 1, **spec))
    page = "deployments/default/left"
    eventually(lambda: "/pods/default/left-" in office.sees(page)[1], within_s=120)
    eventually(lambda: "/pods/default/right-" in office.sees("pods")[1], within_s=120)
    assert "/pods/default/right-" not in office.sees(page)[1]
    assert office.sends(f"{page}/scale", replicas="2")[2] == page
    assert office.finds(f"{APPS}/deployments/left")["spec"]["replicas"] == 2
    for wrong in ("-1", "1.5", "many", "", "999999999999"):
        assert office.sends(f"{page}/scale", replicas=wrong)[0] == 422
    assert office.sees("deployments/default/neither")[0] == 404


def test_a_deployment_whose_pods_are_refused_says_why(office: Office) -> None:
    """The event is of its ReplicaSet, which has no page."""
    limits = {"aliyun.com/gpu-mem": "3", "nvidia.com/gpu": "1"}
    container = {"name": "c", "image": "pause", "resources": {"limits": limits}}
    made = workload("Deployment", "refused", 1, template=template(container))
    office.makes(f"{APPS}/deployments", made)
    words = "or a share of one (aliyun.com/gpu-mem), found both"
    page = "deployments/default/refused"
    eventually(lambda: "Pods cannot be made: admission" in office.sees(page)[1], within_s=120)
    assert words in office.sees(page)[1]
    assert words in office.sees("deployments")[1]
    office.sends(f"{page}/delete", **{"typed-name": "refused"})


def test_what_is_not_there_yet_is_no_mistake() -> None:
    """Objects as they are just after they were made, without a status."""
    metadata = {"name": "x", "namespace": "y"}
    assert daemon_set_row({"metadata": metadata, "spec": {}}).wanted == 0
    assert job_row({"metadata": metadata}).wanted == 1
    assert job_row({"metadata": metadata, "spec": {"completions": 0}}).wanted == 0
    row = cron_job_row(
        {"metadata": metadata, "spec": {"schedule": "* * * * *", "timeZone": "Asia/Shanghai"}}
    )
    assert (row.schedule, row.last, row.active) == ("* * * * * Asia/Shanghai", "", 0)
