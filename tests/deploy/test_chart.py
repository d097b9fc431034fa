"""The chart without a cluster, and its objects on the local one. tests/kubernetes installs it."""

import json
import re
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


def upgraded(cluster: Cluster, *flags: str) -> str:
    """What an upgrade in mode extender would make, or why it stops."""
    where = ("--namespace=kube-system", f"--kubeconfig={cluster.kubeconfig}")
    asked = ("template", "gpupool", str(CHART), "--dry-run=server", "--set=mode=extender")
    done = helm(*asked, *where, *flags)
    return done.stdout if done.returncode == 0 else done.stderr


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


def agent_of(*flags: str) -> Obj:
    text = rendered("second-scheduler", "--show-only", "templates/agent.yaml", *flags)
    (found,) = (each for each in yaml.safe_load_all(text) if each)
    template: Obj = found["spec"]["template"]
    return template


def test_beside_the_gpu_operator_the_agent_leaves_for_driver_upgrades_and_shows_the_class() -> None:
    values = str(CHART / "values-gpu-operator.yaml")
    spec = agent_of("--values", values)["spec"]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.deploy.client": "true"}
    assert spec["runtimeClassName"] == "nvidia"
    arguments = spec["containers"][0]["args"]
    assert "--own-driver=runtime-class=nvidia" in arguments
    assert "--switch-off-nvidia-plugin" in arguments
    admission = rendered("second-scheduler", "--values", values)
    assert "--runtime-class=nvidia" in admission


def test_operators_that_do_not_know_the_label_of_clients_get_agents_by_another_label() -> None:
    values = str(CHART / "values-gpu-operator.yaml")
    older = "agent.operator.nodeLabel=nvidia.com/gpu.deploy.operator-validator"
    spec = agent_of("--values", values, "--set", older)["spec"]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.deploy.operator-validator": "true"}


def test_the_operators_label_stands_beside_those_that_an_administrator_selects_nodes_by() -> None:
    own = ("--set", "agent.nodeSelector.pool=a", "--set", "agent.operator.nodeLabel=b.c/d")
    assert agent_of(*own)["spec"]["nodeSelector"] == {"pool": "a", "b.c/d": "true"}


def test_where_nvidias_nri_plugin_brings_the_driver_nothing_else_can() -> None:
    template = agent_of("--set", "agent.cdiDevice=management.nvidia.com/gpu=all")
    annotation = "nvidia.cdi.k8s.io/container.agent"
    assert template["metadata"]["annotations"] == {annotation: "management.nvidia.com/gpu=all"}
    (container,) = template["spec"]["containers"]
    assert container["name"] == "agent"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
    assert "--own-driver=nvidia-nri" in container["args"]
    assert "--cdi=/var/run/cdi" in container["args"]
    mounts = {each["mountPath"]: each.get("readOnly") for each in container["volumeMounts"]}
    assert mounts["/var/run/cdi"] is True
    assert "--nri-only-checks" in container["args"]


def test_helm_test_starts_canaries_with_few_rights() -> None:
    text = rendered("second-scheduler", "--show-only", "templates/tests/canary.yaml")
    made = [each for each in yaml.safe_load_all(text) if each]
    assert all(each["metadata"]["annotations"]["helm.sh/hook"] == "test" for each in made)
    (job,) = (each for each in made if each["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["gpupool", "doctor", "--canary"]
    verbs = {verb for each in made for rule in each.get("rules", ()) for verb in rule["verbs"]}
    assert verbs == {"list", "get", "create", "delete"}
    (writing,) = (r for each in made for r in each.get("rules", ()) if "create" in r["verbs"])
    assert writing["resources"] == ["pods"]


def test_only_an_agent_that_loads_the_driver_itself_is_privileged() -> None:
    def context(*flags: str) -> Obj:
        found: Obj = agent_of(*flags)["spec"]["containers"][0]["securityContext"]
        return found

    assert "privileged" not in context()
    privileged = context("--set", "agent.driverRoot=/run/nvidia/driver")
    assert privileged["privileged"] is True
    assert "allowPrivilegeEscalation" not in privileged
    arguments = agent_of("--set", "agent.driverRoot=/")["spec"]["containers"][0]["args"]
    assert "--driver-root=/:/host/driver" in arguments
    assert not any(each.startswith("--own-driver") for each in arguments)


MONITORING = (
    "--set=monitoring.enabled=true,monitoring.serviceMonitor.enabled=true",
    "--set=monitoring.podMonitor.enabled=true,monitoring.tokenSecret.name=t",
    "--set=monitoring.rules.enabled=true,monitoring.dashboards.enabled=true",
)


@pytest.mark.parametrize("mode", MODES)
def test_scrapers_find_a_port_and_nothing_else_is_opened(mode: str) -> None:
    without = rendered(mode)
    assert "--metrics-address" not in without
    assert "monitoring.coreos.com" not in without
    made = [each for each in yaml.safe_load_all(rendered(mode, *MONITORING)) if each]
    (agent,) = (each for each in made if each["kind"] == "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["metrics"] == 9446
    assert "--metrics-address=0.0.0.0:9446" in container["args"]
    (policy,) = (
        each
        for each in made
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "gpupool-agent"
    )
    assert policy["spec"]["ingress"] == [{"ports": [{"port": 9446}]}]
    kinds = [each["kind"] for each in made]
    assert (kinds.count("ServiceMonitor"), kinds.count("PodMonitor")) == (2, 2)
    for monitor in made:
        if monitor["kind"] in ("ServiceMonitor", "PodMonitor"):
            spec = monitor["spec"]
            (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
            assert (endpoint["scheme"], endpoint["honorLabels"]) == ("https", True)


def matches(selector: Obj, labels: Obj) -> bool:
    return all(labels.get(name) == value for name, value in selector.items())


@pytest.mark.parametrize("mode", MODES)
def test_each_monitor_leads_to_a_port_on_which_a_program_has_metrics(mode: str) -> None:
    made = [each for each in yaml.safe_load_all(rendered(mode, *MONITORING)) if each]
    templates = [
        each["spec"]["template"] for each in made if each["kind"] in ("DaemonSet", "Deployment")
    ]

    def listening(selector: Obj) -> list[Obj]:
        """Named ports of the pods with these labels, and what their programs are told."""
        chosen = [each for each in templates if matches(selector, each["metadata"]["labels"])]
        (template,) = chosen  # of one program, and of no other
        return [each for each in template["spec"]["containers"] if each.get("ports")]

    found = set()
    for monitor in (each for each in made if each["kind"] in ("ServiceMonitor", "PodMonitor")):
        spec, kind = monitor["spec"], monitor["kind"]
        selector = spec["selector"]["matchLabels"]
        (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
        if kind == "PodMonitor":
            ports = {p["name"]: p["containerPort"] for c in listening(selector) for p in c["ports"]}
            port = ports[endpoint["port"]]
        else:
            services = [each for each in made if each["kind"] == "Service"]
            (service,) = (s for s in services if matches(selector, s["metadata"]["labels"]))
            (way,) = (p for p in service["spec"]["ports"] if p["name"] == endpoint["port"])
            selector, port = service["spec"]["selector"], way["targetPort"]
        words = [word for each in listening(selector) for word in each["args"]]
        assert any(re.fullmatch(rf"--.*(port=|address=.*:){port}", word) for word in words), monitor
        found.add((kind, monitor["metadata"]["name"]))
    assert len(found) == 4


def ports_of(workload: Obj) -> set[int]:
    """On which its containers listen, as they are told."""
    containers = workload["spec"]["template"]["spec"]["containers"]
    texts = [text for each in containers for text in (*each["command"], *each.get("args", ()))]
    found = (re.fullmatch(r"--(?:[a-z]+-)?(?:port=|address=.*:)(\d+)", text) for text in texts)
    declared = (port["containerPort"] for each in containers for port in each.get("ports") or ())
    return {*declared, *(int(match[1]) for match in found if match is not None)}


@pytest.mark.parametrize("mode", MODES)
def test_programs_that_share_the_network_of_a_node_have_different_ports(mode: str) -> None:
    text = rendered(mode, *MONITORING, "--set=hostNetwork=true,history.enabled=true")
    made = [each for each in yaml.safe_load_all(text) if each]
    workloads = [each for each in made if each["kind"] in ("DaemonSet", "Deployment")]
    names = [each["metadata"]["name"] for each in workloads]
    assert {"gpushare-device-plugin-ds", "gpupool-console", "gpupool-history"} <= set(names)
    by_name = {name: ports_of(each) for name, each in zip(names, workloads, strict=True)}
    assert all(by_name.values()), by_name
    assert sum(map(len, by_name.values())) == len(set.union(*by_name.values())), by_name


def test_programs_that_ask_agents_know_the_namespace_of_the_release() -> None:
    where = ("template", "gpupool", str(CHART), "--namespace", "gpus")
    text = helm(*where, "--set", "history.enabled=true").stdout
    made = [each for each in yaml.safe_load_all(text) if each and each["kind"] == "Deployment"]
    arguments = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]["args"]
        for each in made
    }
    for name in ("gpupool-console", "gpupool-history"):
        assert "--agents=gpus" in arguments[name]


def test_a_pod_monitor_without_a_token_is_refused() -> None:
    flags = ("--set", "monitoring.enabled=true,monitoring.podMonitor.enabled=true")
    done = helm("template", "gpupool", str(CHART), *flags)
    assert done.returncode != 0
    assert "tokenSecret" in done.stderr
