"""Who may connect to the chart's programs, and to what they may connect. Without a cluster."""

import itertools

import pytest
import yaml

from kubeclient.objects import Obj
from tests.deploy.test_chart import MODES, matches, rendered

pytestmark = pytest.mark.clients

_HISTORY = "--set=history.enabled=true"
_MONITORING = "--set=monitoring.enabled=true"
_ACCOUNT = (
    "--set=monitoring.scrapers[0].kind=ServiceAccount,monitoring.scrapers[0].name=prometheus,"
    "monitoring.scrapers[0].namespace=watchers"
)
_CIDRS = "--set=networkPolicies.apiServer.cidrs={10.0.0.10/32,fd00::a/128}"
_BLOCKS = [{"ipBlock": {"cidr": "10.0.0.10/32"}}, {"ipBlock": {"cidr": "fd00::a/128"}}]
_WATCHERS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "watchers"}}}


def _made(mode: str, *flags: str) -> list[Obj]:
    return [each for each in yaml.safe_load_all(rendered(mode, *flags)) if each]


def _policies(mode: str, *flags: str) -> dict[str, Obj]:
    made = (each for each in _made(mode, *flags) if each["kind"] == "NetworkPolicy")
    return {each["metadata"]["name"]: each["spec"] for each in made}


def _peers(label: str, value: str) -> str:
    return f"--set-json={label}=[{value}]"


@pytest.mark.parametrize("mode", MODES)
def test_each_pod_of_the_chart_is_held_by_one_policy(mode: str) -> None:
    made = _made(mode, _HISTORY)
    policies = [each["spec"] for each in made if each["kind"] == "NetworkPolicy"]
    templates = [each["spec"]["template"] for each in made if "template" in each.get("spec", {})]
    assert len(templates) == 7  # also those of `helm test` and of the end
    for template in templates:
        labels = template["metadata"]["labels"]
        held = [each for each in policies if matches(each["podSelector"]["matchLabels"], labels)]
        assert len(held) == 1, labels
    assert len(policies) == len(templates)


@pytest.mark.parametrize("job", ["gpupool-cleanup", "gpupool-test"])
def test_the_policy_of_a_job_is_there_before_the_job_and_goes_with_it(job: str) -> None:
    annotations = {
        each["kind"]: each["metadata"]["annotations"]
        for each in _made("extender")
        if each["metadata"]["name"] == job and each["kind"] in ("Job", "NetworkPolicy")
    }
    policy, of_job = annotations["NetworkPolicy"], annotations["Job"]
    for key in ("helm.sh/hook", "helm.sh/hook-delete-policy"):
        assert policy[key] == of_job[key]
    assert int(policy.get("helm.sh/hook-weight", "0")) < int(of_job["helm.sh/hook-weight"])


def test_no_policy_is_left_where_they_are_switched_off() -> None:
    assert not _policies("extender", _HISTORY, "--set=networkPolicies.enabled=false")


@pytest.mark.parametrize("mode", MODES)
def test_a_port_that_only_probes_use_is_closed_to_pods(mode: str) -> None:
    open_to_some = {name for name, spec in _policies(mode, _HISTORY).items() if "ingress" in spec}
    called = {"gpupool-admission"} | ({"gpupool-extender"} if mode == "extender" else set())
    assert open_to_some == called


@pytest.mark.parametrize("mode", MODES)
def test_every_source_and_every_destination_is_named_if_the_values_name_them(mode: str) -> None:
    policies = _policies(
        mode, _HISTORY, _MONITORING, _ACCOUNT, _CIDRS, "--set=apiServer.host=api.example.com"
    )
    for name, spec in policies.items():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        for rule in spec.get("ingress", ()):
            assert rule["from"], name
        for rule in spec["egress"]:
            assert rule["to"], name
        assert spec["egress"][0]["to"] == _BLOCKS
    assert [rule["from"] for rule in policies["gpupool-admission"]["ingress"]] == [_BLOCKS]


@pytest.mark.parametrize("mode", MODES)
def test_metrics_are_for_the_namespaces_of_the_accounts_that_may_read_them(mode: str) -> None:
    policies = _policies(mode, _MONITORING, _ACCOUNT, _CIDRS)
    agent = {"ports": [{"port": 9446}], "from": [_WATCHERS]}
    assert policies["gpupool-agent"]["ingress"] == [agent]
    if mode == "extender":
        expected = [
            {"ports": [{"port": 32766}], "from": _BLOCKS},
            {"ports": [{"port": 32766}], "from": [_WATCHERS]},
        ]
        assert policies["gpupool-extender"]["ingress"] == expected
    else:
        scheduler = {"ports": [{"port": 10260}], "from": [_WATCHERS]}
        assert policies["gpupool-scheduler"]["ingress"] == [scheduler]


def test_peers_that_are_named_come_before_those_that_are_derived() -> None:
    peer = '{"ipBlock":{"cidr":"10.9.0.0/16"}}'
    policies = _policies(
        "extender", _MONITORING, _ACCOUNT, _peers("networkPolicies.scrapers", peer)
    )
    (rule,) = policies["gpupool-agent"]["ingress"]
    assert rule["from"] == [{"ipBlock": {"cidr": "10.9.0.0/16"}}]


_GROUP = '{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"watchers"}'
_ONE = '{"kind":"ServiceAccount","name":"prometheus","namespace":"watchers"}'


@pytest.mark.parametrize("subjects", ["", _GROUP, f"{_ONE},{_GROUP}"])
def test_nobody_is_shut_out_whose_pods_the_chart_cannot_know(subjects: str) -> None:
    policies = _policies("extender", _MONITORING, _peers("monitoring.scrapers", subjects), _CIDRS)
    assert policies["gpupool-agent"]["ingress"] == [{"ports": [{"port": 9446}]}]
    assert {"ports": [{"port": 32766}]} in policies["gpupool-extender"]["ingress"]


@pytest.mark.parametrize("mode", MODES)
def test_a_prometheus_that_shows_the_token_of_another_account_is_not_shut_out(mode: str) -> None:
    """The account of a token in this namespace is in this namespace; Prometheus is elsewhere."""
    token = "--set=monitoring.podMonitor.enabled=true,monitoring.tokenSecret.name=t"
    policies = _policies(mode, _MONITORING, _ACCOUNT, token, "--set=monitoring.tokenSecret.key=k")
    [rule] = policies["gpupool-agent"]["ingress"]
    assert "from" not in rule


def test_a_namespace_with_two_scrapers_is_named_once() -> None:
    two = f'{_ONE},{{"kind":"ServiceAccount","name":"other","namespace":"watchers"}}'
    (rule,) = _policies("extender", _MONITORING, _peers("monitoring.scrapers", two))[
        "gpupool-agent"
    ]["ingress"]
    assert rule["from"] == [_WATCHERS]


_AGENTS = {"podSelector": {"matchLabels": {"k8s-app": "konnectivity-agent"}}}
_PROXY = '{"podSelector":{"matchLabels":{"k8s-app":"konnectivity-agent"}}}'
_SCHEDULER = '{"ipBlock":{"cidr":"10.0.0.11/32"}}'


def test_the_api_server_may_call_from_elsewhere_than_it_is_reached() -> None:
    calls = _peers("networkPolicies.apiServer.callers", _PROXY)
    policies = _policies("extender", _CIDRS, calls)
    assert policies["gpupool-admission"]["ingress"][0]["from"] == [_AGENTS]
    assert policies["gpupool-extender"]["ingress"][0]["from"] == [_AGENTS]
    assert policies["gpupool-admission"]["egress"][0]["to"] == _BLOCKS


def test_kube_scheduler_may_call_from_elsewhere_than_the_api_server() -> None:
    calls = _peers("networkPolicies.kubeScheduler.callers", _SCHEDULER)
    policies = _policies("extender", _CIDRS, calls)
    assert policies["gpupool-extender"]["ingress"][0]["from"] == [
        {"ipBlock": {"cidr": "10.0.0.11/32"}}
    ]
    assert policies["gpupool-admission"]["ingress"][0]["from"] == _BLOCKS


def test_names_are_asked_of_the_clusters_own_dns() -> None:
    for spec in _policies("extender", "--set=apiServer.host=api.example.com").values():
        rules = [
            rule for rule in spec["egress"] if {"port": 53, "protocol": "UDP"} in rule["ports"]
        ]
        assert [rule["to"] for rule in rules] == [
            [
                {
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}
                    },
                    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
                }
            ]
        ]


def test_no_rule_is_open_to_all_ports() -> None:
    for mode, flags in itertools.product(MODES, [(), (_CIDRS,), (_MONITORING,)]):
        for spec in _policies(mode, _HISTORY, *flags).values():
            for rule in [*spec.get("ingress", ()), *spec["egress"]]:
                assert rule["ports"]
