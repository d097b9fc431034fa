"""Back to an earlier revision of a workload, as `kubectl rollout undo` does it."""

import re

import pytest

from gpupool.console.pages.rollouts import deployment_patch
from gpupool.console.rows.revisions import controller_revision_row, replica_set_row
from tests.console.conftest import Office
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, template, workload

pytestmark = pytest.mark.timeout(600)

APPS = "/apis/apps/v1/namespaces/default"
EVIL = "<img src=x onerror=alert(1)>"


def roll_out(office: Office, plural: str, name: str, script: str) -> None:
    path = f"{APPS}/{plural}/{name}"

    def is_written() -> bool:
        found = office.finds(path)
        found["spec"]["template"]["spec"]["containers"] = [shell(script)]
        annotations = found["metadata"].setdefault("annotations", {})
        annotations["kubernetes.io/change-cause"] = f"{script} {EVIL}"
        return call(office.cluster, "PUT", path, found)[0] == 200

    eventually(is_written, within_s=60)


def revisions(office: Office, page: str) -> list[str]:
    return re.findall(r"undo\?revision=(\d+)", office.sees(page)[1])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_workload_goes_back_to_an_earlier_revision(office: Office, kind: str) -> None:
    plural, name = f"{kind.lower()}s", f"rolled-{kind.lower()}"
    labels = {"rolled": kind.lower()}
    pods = template(shell("sleep 1000"))
    pods["metadata"]["labels"] = labels
    spec = {"template": pods, "selector": {"matchLabels": labels}}
    replicas = None if kind == "DaemonSet" else 1
    office.makes(f"{APPS}/{plural}", workload(kind, name, replicas, **spec))
    page = f"{plural}/default/{name}"
    eventually(lambda: "the present one" in office.sees(page)[1], within_s=120)
    assert f"{page}/undo" not in office.sees(page)[1], "there is no way back from the first one"
    assert f"an earlier revision of {name}" in office.sees(f"{page}/undo")[1]
    roll_out(office, plural, name, "sleep 2000")
    eventually(lambda: revisions(office, page) == ["1"], within_s=120)
    assert f'{page}/undo"' in office.sees(page)[1]
    roll_out(office, plural, name, "sleep 3000")
    eventually(lambda: revisions(office, page) == ["2", "1"], within_s=120)
    assert EVIL not in office.sees(page)[1]

    asked = office.sees(f"{page}/undo?revision=1")[1]
    assert "- sleep 1000" in re.search(r'class="diff-line added">(.*)\n', asked)[1]  # type: ignore[index]
    assert f"kubectl rollout undo {kind.lower()} {name} --to-revision=1" in asked
    assert office.sends(f"{page}/undo?revision=1")[::2] == (303, page)
    found = office.finds(f"{APPS}/{plural}/{name}")["spec"]["template"]
    assert found["spec"]["containers"][0]["command"][-1] == "sleep 1000"
    assert "pod-template-hash" not in found["metadata"]["labels"]
    eventually(lambda: revisions(office, page) == ["3", "2"], within_s=120)
    # Without a number: that before the present one, which is the third.
    assert office.sends(f"{page}/undo")[0] == 303
    found = office.finds(f"{APPS}/{plural}/{name}")["spec"]["template"]
    assert found["spec"]["containers"][0]["command"][-1] == "sleep 3000"
    for wrong in ("99", "-1", "x", "1"):
        assert office.sees(f"{page}/undo?revision={wrong}")[0] == 404
    assert call(office.cluster, "DELETE", f"{APPS}/{plural}/{name}")[0] == 200


def test_a_paused_deployment_stays_as_it_is(office: Office) -> None:
    page = "deployments/default/halted"
    spec = {"template": template(shell("sleep 1000"))}
    office.makes(f"{APPS}/deployments", workload("Deployment", "halted", 0, **spec))
    eventually(lambda: "the present one" in office.sees(page)[1], within_s=120)
    roll_out(office, "deployments", "halted", "sleep 2000")
    eventually(lambda: revisions(office, page) == ["1"], within_s=120)

    def is_paused() -> bool:
        found = office.finds(f"{APPS}/deployments/halted")
        found["spec"]["paused"] = True
        return call(office.cluster, "PUT", f"{APPS}/deployments/halted", found)[0] == 200

    eventually(is_paused, within_s=60)
    status, said, _ = office.sends(f"{page}/undo?revision=1")
    assert status == 422
    assert "halted is paused: resume it first." in said


def test_what_belongs_to_the_present_is_not_taken_back() -> None:
    mark, applied = (
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
    )
    now = {"metadata": {"annotations": {mark: "3", applied: "x", "team": "now"}}}
    pod = {"metadata": {"labels": {"app": "a", "pod-template-hash": "h"}}, "spec": {}}
    then = {"metadata": {"annotations": {mark: "1", "team": "then"}}, "spec": {"template": pod}}
    template_change, annotations = deployment_patch(now, then)
    assert annotations["value"] == {mark: "3", applied: "x", "team": "then"}
    assert template_change["value"]["metadata"]["labels"] == {"app": "a"}


def test_revisions_that_somebody_wrote_by_hand_break_nothing() -> None:
    for hand_made in ("<b>", "-1", "9" * 5000, "9" * 16):
        metadata = {"name": "x", "annotations": {"deployment.kubernetes.io/revision": hand_made}}
        assert replica_set_row({"metadata": metadata}).number == 0
    assert controller_revision_row({"metadata": {"name": "x"}}).template == {}
