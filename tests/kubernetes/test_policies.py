"""The policies of the chart on a real API server: what they let a stolen token do, and their types.

It needs no node.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from testbed.controlplane import ControlPlane
from testbed.images import BUSYBOX
from testbed.installation import CHART, NAMESPACE, helm_program
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

VALUES = "history.enabled=true,history.idlePolicy.enabled=true"
PARTS = ("service-accounts", "node-policies", "idle-policy")
TRAINER: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "trainer"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "trainer"}},
        "template": {
            "metadata": {"labels": {"app": "trainer"}},
            "spec": {"containers": [{"name": "main", "image": BUSYBOX}]},
        },
    },
}
NOTE = {"annotations": {"gpupool.io/idle-replicas": "2"}}
OTHER_IMAGE = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}
FORBIDDEN: tuple[Obj, ...] = (
    {"spec": {"replicas": 0}},  # nobody could bring it back
    {"metadata": NOTE, "spec": {"replicas": 5}},
    {"metadata": NOTE, "spec": {"replicas": 0, "template": OTHER_IMAGE}},
    {"metadata": {"labels": {"gpupool.io/keep-idle": "true"}}},
)


@pytest.fixture(scope="module")
def plane(able: None) -> Iterator[ControlPlane]:
    with ControlPlane(controllers=True) as running:
        yield running


@pytest.fixture(scope="module")
def admin(
    plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    """The chart's policies are there."""
    found = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    only = [f"--show-only=templates/{part}.yaml" for part in PARTS]
    command = [str(helm_program()), "template", "gpupool", str(CHART), f"--set={VALUES}", *only]
    where = f"--namespace={NAMESPACE}"
    done = subprocess.run([*command, where], capture_output=True, text=True, check=True)
    found.within(NAMESPACE)("apply", "-f", "-", stdin=done.stdout)
    return found


def test_the_collector_may_scale_to_zero_with_a_note_and_do_nothing_else(
    plane: ControlPlane, admin: Kubectl, tmp_path: Path
) -> None:
    admin.apply(TRAINER)
    file = tmp_path / "kubeconfig"
    file.touch(mode=0o600)
    token = admin.within(NAMESPACE)("create", "token", "gpupool-history").strip()
    file.write_text(plane.kubeconfig_of("gpupool-history", token))
    collector = replace(admin, kubeconfig=file)

    def refusal(change: Obj, *flags: str) -> str:
        patch = ("patch", "deployment", "trainer", f"-p={json.dumps(change)}", *flags)
        return collector.run(*patch).err

    # The API server needs some moments for a new policy.
    dry = ("--dry-run=server",)
    eventually(lambda: "gpupool-idle-policy" in refusal(FORBIDDEN[0], *dry), LONGEST_S)
    for change in FORBIDDEN:
        assert "gpupool-idle-policy" in refusal(change), change
    assert refusal({"metadata": NOTE, "spec": {"replicas": 0}}) == ""
    assert admin.field(".spec.replicas", "deployment", "trainer") == "0"


def test_the_api_server_finds_no_wrong_types_in_any_policy(admin: Kubectl) -> None:
    def statuses() -> dict[str, Obj]:
        policies = admin.json("get", "validatingadmissionpolicies")["items"]
        return {each["metadata"]["name"]: each.get("status", {}) for each in policies}

    eventually(lambda: all("typeChecking" in each for each in statuses().values()), LONGEST_S)
    warnings = {
        name: status["typeChecking"].get("expressionWarnings")
        for name, status in statuses().items()
    }
    assert len(warnings) > 1
    assert not any(warnings.values()), warnings
