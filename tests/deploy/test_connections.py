"""Which connections the chart's NetworkPolicies let through: those that its programs make, and no
others. What a program listens on is read from its arguments, not from what the policies say."""

import re
from dataclasses import dataclass

import pytest
import yaml

from kubeclient.objects import Obj
from tests.deploy.network_model import End, Host, Pod, lets_through, selects
from tests.deploy.test_chart import MODES, rendered

pytestmark = pytest.mark.clients

API = Host("10.0.0.10")
SCHEDULER = Host("10.0.0.11")  # kube-scheduler, on another machine
INTERNET, METADATA = Host("203.0.113.7"), Host("169.254.169.254")
TENANT = Pod("default", {"app": "web"})
NEIGHBOUR = Pod("kube-system", {"app": "other"})
WATCHER = Pod("watchers", {"app": "prometheus"})
DNS = Pod("kube-system", {"k8s-app": "kube-dns"})
STRANGERS: tuple[End, ...] = (TENANT, NEIGHBOUR, INTERNET)
_NAMED = (
    "--set=networkPolicies.apiServer.cidrs={10.0.0.10/32}",
    '--set-json=networkPolicies.kubeScheduler.callers=[{"ipBlock":{"cidr":"10.0.0.11/32"}}]',
)
_ALL = (
    "--set=history.enabled=true,console.enabled=true,monitoring.enabled=true",
    "--set=monitoring.scrapers[0].kind=ServiceAccount,monitoring.scrapers[0].name=prometheus,"
    "monitoring.scrapers[0].namespace=watchers",
)


@dataclass(frozen=True)
class Chart:
    policies: list[Obj]
    pods: dict[str, Pod]  # by command
    listens: dict[str, set[int]]  # by command: on more than the loopback interface
    services: list[Obj]

    def lets(self, source: End, destination: End, port: int, protocol: str = "TCP") -> bool:
        return lets_through(self.policies, source, destination, port, protocol)

    def behind(self, service: str) -> tuple[Pod, int]:
        """Where a connection to the Service ends."""
        [spec] = [s["spec"] for s in self.services if s["metadata"]["name"] == service]
        chosen = {"matchLabels": spec["selector"]}
        [pod] = [each for each in self.pods.values() if selects(chosen, each.labels)]
        target = spec["ports"][0]["targetPort"]
        return pod, pod.ports[target] if isinstance(target, str) else target


def chart(mode: str, *flags: str) -> Chart:
    made = [each for each in yaml.safe_load_all(rendered(mode, *flags)) if each]
    pods, listens = {}, {}
    for each in made:
        if "template" in each.get("spec", {}):
            template = each["spec"]["template"]
            [container] = template["spec"]["containers"]
            name = container["command"][1]
            ports = {p["name"]: p["containerPort"] for p in container.get("ports") or ()}
            pods[name] = Pod("kube-system", template["metadata"]["labels"], ports)
            text = " ".join(container.get("args") or ())
            listens[name] = {int(port) for port in re.findall(r"address=0\.0\.0\.0:(\d+)", text)}
    by_kind = {
        kind: [o for o in made if o["kind"] == kind] for kind in ("NetworkPolicy", "Service")
    }
    return Chart(by_kind["NetworkPolicy"], pods, listens, by_kind["Service"])


@pytest.fixture(scope="module", params=MODES)
def full(request: pytest.FixtureRequest) -> Chart:
    """All that can be on, with everybody named."""
    return chart(request.param, *_NAMED, *_ALL)


def test_every_program_reaches_the_api_server(full: Chart) -> None:
    assert len(full.pods) == 7
    for name, pod in full.pods.items():
        assert all(full.lets(pod, API, port) for port in (443, 6443)), name


def test_no_program_reaches_anything_else(full: Chart) -> None:
    for name, pod in full.pods.items():
        for other in (*STRANGERS, METADATA, SCHEDULER, WATCHER):
            assert not any(full.lets(pod, other, port) for port in (80, 443, 6443, 8443)), name
        for other in (*STRANGERS, DNS):
            assert not any(full.lets(pod, other, 53, each) for each in ("TCP", "UDP")), name
        for other in full.pods.values():
            assert not any(full.lets(pod, other, port) for port in range(1, 65536, 13)), name


def test_the_api_server_reaches_admission_through_its_service(full: Chart) -> None:
    pod, port = full.behind("gpupool-admission")
    assert (pod, port) == (full.pods["admission"], *full.listens["admission"])
    assert full.lets(API, pod, port)
    for other in (*STRANGERS, SCHEDULER, WATCHER):
        assert not full.lets(other, pod, port)


def test_kube_scheduler_reaches_the_extender_through_its_service(full: Chart) -> None:
    if "extender" not in full.pods:
        assert not [each for each in full.services if "extender" in each["metadata"]["name"]]
        return
    pod, port = full.behind("gpupool-extender")
    assert (pod, port) == (full.pods["extender"], *full.listens["extender"])
    assert full.lets(SCHEDULER, pod, port)
    for other in (*STRANGERS, API):
        assert not full.lets(other, pod, port)


def test_prometheus_reaches_metrics_and_nothing_else(full: Chart) -> None:
    told = {"agent": 9446, "scheduler": 10260, "extender": 32766}
    for name, pod in full.pods.items():
        reached = {port for port in full.listens[name] if full.lets(WATCHER, pod, port)}
        assert reached == ({told[name]} if name in told else set()), name


def test_nobody_but_those_reaches_a_program(full: Chart) -> None:
    """Also not the ports that programs open for probes, for readings or for themselves."""
    callers: tuple[End, ...] = (*STRANGERS, API, SCHEDULER, WATCHER, *full.pods.values())
    allowed: list[tuple[str, End]] = [("admission", API), ("extender", SCHEDULER)]
    allowed += [(name, WATCHER) for name in ("agent", "scheduler", "extender")]
    for name, pod in full.pods.items():
        ports = {*full.listens[name], *pod.ports.values(), 22, 443, 8480, 9445, 9447, 10259}
        for caller in callers:
            if (name, caller) not in allowed:
                assert not any(full.lets(caller, pod, port) for port in ports), (name, caller)


@pytest.mark.parametrize("mode", MODES)
def test_whoever_is_not_named_reaches_only_the_ports_that_need_it(mode: str) -> None:
    plain = chart(mode, "--set=history.enabled=true")
    called = {"admission": 8443, "extender": 32766}
    for name, pod in plain.pods.items():
        ports = {*plain.listens[name], *pod.ports.values(), 22, 8480, 9445, 9446, 10259, 10260}
        reached = {port for port in ports if plain.lets(TENANT, pod, port)}
        assert reached == ({called[name]} if name in called else set()), name
        out = {port for port in (22, 53, 80, 443, 6443, 8443) if plain.lets(pod, INTERNET, port)}
        assert out == {443, 6443, 8443}, name
        assert not plain.lets(pod, METADATA, 80)


@pytest.mark.parametrize("mode", MODES)
def test_an_api_server_that_is_given_by_name_needs_dns_and_its_port(mode: str) -> None:
    named = chart(mode, *_NAMED, "--set=apiServer.host=api.example.com,apiServer.port=7443")
    for name, pod in named.pods.items():
        assert all(named.lets(pod, DNS, 53, each) for each in ("TCP", "UDP")), name
        assert named.lets(pod, API, 7443), name
        assert not named.lets(pod, TENANT, 53, "UDP"), name


@pytest.mark.parametrize("port", [9443, 10250])
def test_another_port_of_admission_is_let_through_too(port: int) -> None:
    moved = chart("second-scheduler", *_NAMED, f"--set=admission.port={port}")
    pod, target = moved.behind("gpupool-admission")
    assert moved.listens["admission"] == {target} == {port}
    assert moved.lets(API, pod, port)
    assert not moved.lets(API, pod, 8443)


# -- the model itself --------------------------------------------------------------------------

_WEB = Pod("a", {"app": "web"}, {"http": 8080})


def _policy(**spec: object) -> list[Obj]:
    wanted = {"podSelector": {}, "policyTypes": ["Ingress"], **spec}
    return [{"metadata": {"namespace": "a"}, "spec": wanted}]


@pytest.mark.parametrize(
    ("policies", "is_let"),
    [
        ([], True),
        (_policy(), False),
        (_policy(podSelector={"matchLabels": {"app": "other"}}), True),
        (_policy(policyTypes=["Egress"]), True),
        (_policy(ingress=[{}]), True),
        (_policy(ingress=[{"from": []}]), True),
        (_policy(ingress=[{"from": [{"podSelector": {}}]}]), False),  # of its own namespace
        (_policy(ingress=[{"from": [{"namespaceSelector": {}}]}]), True),
        (_policy(ingress=[{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]), False),
        (_policy(ingress=[{"ports": [{"port": "http"}]}]), True),
        (_policy(ingress=[{"ports": [{"port": 8080, "protocol": "UDP"}]}]), False),
        (_policy(ingress=[{"ports": [{"port": 8000, "endPort": 8100}]}]), True),
        (_policy(ingress=[{"ports": [{"protocol": "TCP"}]}]), True),
        (_policy(ingress=[{"ports": [{"port": 1}]}, {"ports": [{"port": 8080}]}]), True),
    ],
)
def test_the_model_follows_the_rules_of_kubernetes(policies: list[Obj], is_let: bool) -> None:
    assert lets_through(policies, Pod("b", {"app": "web"}), _WEB, 8080) is is_let


@pytest.mark.parametrize(
    ("address", "is_let"), [("10.1.0.1", True), ("10.1.2.1", False), ("::1", False)]
)
def test_a_block_has_exceptions(address: str, is_let: bool) -> None:
    block = {"cidr": "10.1.0.0/16", "except": ["10.1.2.0/24"]}
    policies = _policy(ingress=[{"from": [{"ipBlock": block}]}])
    assert lets_through(policies, Host(address), _WEB, 8080) is is_let
