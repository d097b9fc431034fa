"""The chart without a cluster, and its objects on the local one. tests/kubernetes installs it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpupool import __version__
from gpupool.agent.cards import KnownCard, NodeCards
from gpupool.agent.labels import card_labels, feature_labels
from gpupool.contract.names import (
    AGENT_PORT,
    AGENT_PORT_NAME,
    ANNOTATION_CLEARED_CARDS,
    ANNOTATION_INVENTORY,
    ANNOTATION_SHRINKS,
    CONDITION_GPU_PROBLEM,
)
from gpupool.hardware.driver import CardLook
from gpupool.local.roles import ROLES
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from testbed.find_kubectl import ensure_kubectl
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.clients

CHART = Path(__file__).parent.parent.parent / "deploy" / "gpupool"
MODES = ("second-scheduler", "extender", "only-scheduler")


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("helm")
    if not program.exists():
        pytest.skip("NO HELM: nothing of the chart was tested. It comes with helm-binary.")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def rendered(mode: str, *flags: str) -> str:
    where = ("template", "gpupool", str(CHART), "--namespace", "kube-system")
    done = helm(*where, "--set", f"mode={mode}", *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(mode: str) -> list[Obj]:
    return [each for each in yaml.safe_load_all(rendered(mode)) if each]


@pytest.mark.parametrize(
    ("host", "asks_for_names"),
    [
        ("", False),
        ("10.0.0.10", False),
        ("fd00::a", False),
        ("api.example.com", True),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_programs_may_ask_for_the_address_of_an_api_server_that_is_given_by_name(
    mode: str, host: str, asks_for_names: bool
) -> None:
    text = rendered(mode, "--set", "console.enabled=true", "--set", f"apiServer.host={host}")
    policies = [
        each for each in yaml.safe_load_all(text) if each and each["kind"] == "NetworkPolicy"
    ]
    assert policies
    for policy in policies:
        ports = [
            (port["port"], port.get("protocol", "TCP"))
            for rule in policy["spec"]["egress"]
            for port in rule["ports"]
        ]
        assert ((53, "UDP") in ports and (53, "TCP") in ports) is asks_for_names
        assert ((53, "UDP") in ports) is asks_for_names


@pytest.mark.parametrize("mode", MODES)
def test_helm_finds_nothing_to_complain_of(mode: str) -> None:
    done = helm("lint", "--strict", str(CHART), "--set", f"mode={mode}")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "value",
    [
        "mode=other",
        "agent.memoryUnit=3kB",
        "cleanup.enabled=3",
        "scheduler.replicas=0",
        "agnet.x=1",
    ],
)
def test_values_that_mean_nothing_are_refused(value: str) -> None:
    done = helm("template", "gpupool", str(CHART), "--set", value)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr


def test_the_chart_is_of_our_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__


def permissions(rules: list[Obj]) -> Iterator[tuple[str, ...]]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb, *rule.get("resourceNames", ())


@pytest.mark.parametrize("name", ["gpupool:agent", "gpupool:scheduler"])
def test_no_role_may_more_than_the_local_cluster_gives_it(name: str) -> None:
    """There, the programs are tried out with these rights all the time."""
    (role,) = (
        each
        for each in objects("second-scheduler")
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == name
    )
    extra = set(permissions(role["rules"])) - set(permissions(list(ROLES[name])))
    assert not extra


def test_clients_find_the_port_of_the_agents_readings_by_its_name() -> None:
    (agent,) = (each for each in objects("second-scheduler") if each["kind"] == "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": AGENT_PORT_NAME, "containerPort": AGENT_PORT}]
    assert f"--metrics-port={AGENT_PORT}" in container["args"]
    off = rendered("second-scheduler", "--set", "agent.readings.enabled=false")
    assert "metrics-port" not in off
    assert "gpupool:readings" not in off


def test_whoever_asks_for_readings_has_rights_in_one_namespace_only() -> None:
    found = [
        each
        for each in objects("second-scheduler")
        if "pods/portforward" in str(each.get("rules", ""))
    ]
    assert [(each["kind"], each["metadata"]["name"]) for each in found] == [
        ("Role", "gpupool:readings")
    ]
    assert set(permissions(found[0]["rules"])) == {
        ("", "pods", "get"),
        ("", "pods", "list"),
        ("", "pods/portforward", "get"),
        ("", "pods/portforward", "create"),
    }


@pytest.mark.parametrize("mode", MODES)
def test_nobody_is_root_but_the_agent(mode: str) -> None:
    for each in objects(mode):
        if each["kind"] in ("Deployment", "Job"):
            (container,) = each["spec"]["template"]["spec"]["containers"]
            assert container["securityContext"]["runAsNonRoot"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_agent_has_no_capability() -> None:
    (agent,) = (each for each in objects("second-scheduler") if each["kind"] == "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_the_policy_of_the_agent_lists_what_the_agent_writes() -> None:
    policy = next(
        each
        for each in objects("second-scheduler")
        if each["kind"] == "ValidatingAdmissionPolicy"
        and each["metadata"]["name"] == "gpupool-agent"
    )
    text = json.dumps(policy)
    card = KnownCard(CardLook(0, "GPU-0", "Tesla T4", 15360, compute=(7, 5)))
    node = NodeCards(driver="580.1.2", cuda=13000, cards=(card,))
    features = {label.partition("/")[2].partition(".")[0] for label in feature_labels(node)}
    assert all(f"'{label}'" in text for label in card_labels(node))
    assert all(f"startsWith('nvidia.com/{part}.')" in text for part in features)
    written = (ANNOTATION_INVENTORY, ANNOTATION_SHRINKS, ANNOTATION_CLEARED_CARDS)
    assert all(f"'{name}'" in text for name in (*written, CONDITION_GPU_PROBLEM))


def test_admission_may_change_its_own_webhooks_and_create_none() -> None:
    (role,) = (
        each
        for each in objects("second-scheduler")
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "gpupool:admission"
    )
    verbs = [rule["verbs"] for rule in role["rules"] if "resourceNames" not in rule]
    assert verbs == [["get", "list", "watch"]]


@pytest.mark.kubectl
def test_the_local_cluster_takes_every_object(tmp_path: Path) -> None:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: the chart's objects were not tried.")
    with Cluster() as cluster:
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "kube-system")
        for mode in MODES:
            made = rendered(mode)
            flags = ("--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
            said = kubectl("apply", *flags, stdin=made)
            assert said.count("serverside-applied") == made.count("\nkind:")
