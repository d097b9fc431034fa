"""The chart of deploy/ on a real Kubernetes: gpupool as pods, from its installation to its end."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.contract.names import (
    ADMISSION,
    CONDITION_GPU_PROBLEM,
    RESOURCE_GPU_MEM,
    SCHEDULER_LEASE,
)
from testbed.cluster import Kubernetes
from testbed.installation import CHART, NAMESPACE
from tests.deploy.node_attacks import CHANGES, Thief, unexpected
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.chart import DAEMON_SET, NODE, helm, install, one_node, units
from tests.kubernetes.conftest import LONGEST_S
from tests.kubernetes.pods import gpu_pod

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]


kubernetes = one_node


@pytest.fixture(scope="module")
def installed(
    kubernetes: Kubernetes, admin: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    assert "gpupool doctor" in install(kubernetes, admin, file)
    return file


def agent_pod(admin: Kubectl) -> str:
    of_node = ("-l", f"name={DAEMON_SET}", "--field-selector", f"spec.nodeName={NODE}")
    (name,) = admin.within(NAMESPACE).names("pods", *of_node) or [""]
    return name


def test_a_stolen_token_of_an_agent_changes_only_what_the_agent_owns(
    installed: Path, kubernetes: Kubernetes, admin: Kubectl
) -> None:
    system = admin.within(NAMESPACE)
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={agent_pod(admin)}")
    token = system("create", "token", "gpupool-agent", *bound).strip()
    thief = Thief(kubernetes.plane.url, kubernetes.plane.ca_file, token)
    admin("label", "node", NODE, "zone=a")
    admin.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}})
    said = {what: thief.refusal(change, NODE, "other") for what, change in CHANGES.items()}
    loose = thief._replace(token=system("create", "token", "gpupool-agent").strip())
    unbound = loose.refusal(CHANGES["the inventory"], NODE, "other")
    admin("delete", "node", "other")
    assert not unexpected(said)
    assert f"not {NODE}" in unbound, "a token that names no node changes none"


def test_canaries_of_doctor_and_of_helm_see_what_they_were_given(
    installed: Path, kubernetes: Kubernetes, admin: Kubectl
) -> None:
    said = helm(kubernetes, "test", "gpupool", "--timeout", "5m")
    assert "Phase:          Succeeded" in said
    where = ["--kubeconfig", str(kubernetes.plane.kubeconfig)]
    done = CliRunner().invoke(gpupool, ["doctor", "--canary", *where])
    assert done.exit_code == 0, done.output
    assert "canary" in done.output
    assert not admin.names("pods", "-l", "gpupool.io/canary")


def test_an_agent_without_capabilities_sees_what_containers_of_any_user_count(
    installed: Path, kubernetes: Kubernetes, admin: Kubectl
) -> None:
    """Before a share gets smaller, the agent reads how much of it is used."""
    user = {"securityContext": {"runAsUser": 4242, "runAsGroup": 4242, "fsGroup": 4243}}
    admin.apply(gpu_pod("somebody", RESOURCE_GPU_MEM, 4, **user))
    admin.wait("condition=Ready", "pod/somebody", within_s=80)
    assert "/   4301MiB |" in admin("exec", "somebody", "--", "nvidia-smi")
    where = ["--kubeconfig", str(kubernetes.plane.kubeconfig), "--timeout", "120"]
    done = CliRunner().invoke(gpupool, ["resize", "somebody", "--gpu-mem", "2", *where])
    assert "4 units (4301 MiB) -> 2 units (2150 MiB)" in done.output
    assert done.exit_code == 0
    admin("delete", "pod", "somebody", "--timeout=60s")


def test_a_release_lives(installed: Path, kubernetes: Kubernetes, admin: Kubectl) -> None:
    """One pod sees all of it: installation, the agent's pod deleted, an upgrade, the end."""
    system = admin.within(NAMESPACE)
    admin.apply(gpu_pod("share", RESOURCE_GPU_MEM, 3))
    admin.wait("condition=Ready", "pod/share", within_s=80)
    assert "/   3226MiB |" in admin("exec", "share", "--", "nvidia-smi")
    container = admin.field(".status.containerStatuses[0].containerID", "pod", "share")
    assert_readings_are_shown(kubernetes)

    old = agent_pod(admin)
    system("delete", "pod", old, "--timeout=60s")
    system("rollout", "status", f"daemonset/{DAEMON_SET}", "--timeout=80s")
    assert agent_pod(admin) != old
    eventually(lambda: units(admin) == "15", LONGEST_S)

    flags = ("-f", str(installed), "--set", "agent.featureLabels=true", "--wait")
    helm(kubernetes, "upgrade", "gpupool", str(CHART), *flags)
    label = ("nodes", "-l", "nvidia.com/gpu.product=Tesla-V100-SXM2-16GB")
    eventually(lambda: admin.names(*label) == [NODE], LONGEST_S)
    admin.apply(gpu_pod("later", RESOURCE_GPU_MEM, 3))
    admin.wait("condition=Ready", "pod/later", within_s=80)

    helm(kubernetes, "uninstall", "gpupool", "--wait")
    # Else the API server would go on asking somebody who is gone, and refuse every GPU pod.
    eventually(lambda: not admin.names("mutatingwebhookconfigurations"), LONGEST_S)
    eventually(lambda: not admin.names("validatingwebhookconfigurations"), LONGEST_S)
    assert admin.field(".status.containerStatuses[0].containerID", "pod", "share") == container
    assert admin.field(".status.containerStatuses[0].restartCount", "pod", "share") == "0"
    assert "/   3226MiB |" in admin("exec", "share", "--", "nvidia-smi")
    assert_nothing_is_left(admin)


def assert_readings_are_shown(kubernetes: Kubernetes) -> None:
    """The agent is asked by port-forward: API server, kubelet, containerd, the agent's loopback."""
    where = ("--kubeconfig", str(kubernetes.plane.kubeconfig), "--agents", NAMESPACE)
    done = CliRunner().invoke(gpupool, ["gpu", "list", NODE, "-o", "json", *where])
    assert (done.exit_code, done.stderr) == (0, "")
    [card] = json.loads(done.stdout)["items"]
    assert (card["memoryUsedMiB"], card["memoryFreeMiB"]) == (0, 16130)
    assert card["temperatureCelsius"] == 34
    [user] = card["usedBy"]
    assert (user["pod"], user["memoryUsedMiB"], user["memoryLimitMiB"]) == ("share", 0, 3226)
    assert user["isolation"] == "limiter"


def assert_nothing_is_left(admin: Kubectl) -> None:
    kinds = ",".join(admin("api-resources", "--verbs=list", "-o", "name").split())
    ours = (kinds, "-A", "-l", "app.kubernetes.io/part-of=gpupool", "--ignore-not-found")
    eventually(lambda: not admin.names(*ours), LONGEST_S)
    system = admin.within(NAMESPACE)
    assert SCHEDULER_LEASE not in system.names("leases")
    assert ADMISSION not in system.names("secrets")
    node = admin.json("get", "node", NODE)
    labels, annotations = node["metadata"]["labels"], node["metadata"]["annotations"]
    assert [name for name in labels if "nvidia" in name or "gpupool" in name] == []
    assert labels["cgpu"] == "true", "what people wrote stays"
    assert [name for name in annotations if "gpupool" in name] == []
    assert CONDITION_GPU_PROBLEM not in [each["type"] for each in node["status"]["conditions"]]


@pytest.mark.parametrize("mode", ["second-scheduler", "extender", "only-scheduler"])
def test_every_object_of_every_mode_is_accepted(
    kubernetes: Kubernetes, admin: Kubectl, mode: str
) -> None:
    made = helm(kubernetes, "template", "gpupool", str(CHART), "--set", f"mode={mode}")
    said = admin.within(NAMESPACE)(
        "apply", "--server-side", "--dry-run=server", "-f", "-", stdin=made
    )
    assert said.count("serverside-applied") == made.count("\nkind:")
