"""What a thief of each of the chart's tokens could do: the table of SECURITY.md, line by line.

Whoever gives a program of the chart one more right changes this table, and then that one.
"""

import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES, SECRETS, VALIDATING_POLICIES, Resource
from localkube.apiserver.security.identities import ADMIN, service_account_user
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from tests.conformance.api_server import NoNodes
from tests.deploy.chart_rights import rights
from tests.deploy.test_chart import rendered
from tests.faults.in_process import certificates_for_tests

pytestmark = pytest.mark.clients

_ADMISSION = "admissionregistration.k8s.io"
_BINDINGS = Resource(
    _ADMISSION,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
_READ = {"get", "list", "watch"}
_EVENTS = {key: {"create", "patch", "update"} for key in ("events", "events.events.k8s.io")}
_METRICS = {
    "tokenreviews.authentication.k8s.io": {"create"},
    "subjectaccessreviews.authorization.k8s.io": {"create"},
}
_SCHEDULES = {
    **dict.fromkeys(
        (
            "csinodes.storage.k8s.io",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "poddisruptionbudgets.policy",
            "pods",
            "resourcequotas",
            "storageclasses.storage.k8s.io",
        ),
        _READ,
    ),
    **_EVENTS,
    "leases.coordination.k8s.io=gpupool-scheduler@kube-system": {"get", "update"},
    "leases.coordination.k8s.io@kube-system": {"create"},
    "pods/binding": {"create"},
    "pods/status": {"patch"},
}
_ALWAYS = {
    "gpupool-admission": {
        f"mutatingwebhookconfigurations.{_ADMISSION}=gpupool-admission": {"get", "patch"},
        f"validatingwebhookconfigurations.{_ADMISSION}=gpupool-admission": {"get", "patch"},
        "nodes": _READ,
        "secrets=gpupool-admission@kube-system": {"get", "update"},
        "secrets@kube-system": {"create"},  # and a policy says which
    },
    "gpupool-agent": {
        **_EVENTS,
        "nodes": _READ | {"patch"},
        "nodes/status": {"patch"},
        "pods": _READ,
        "runtimeclasses.node.k8s.io": {"list"},
    },
    "gpupool-cleanup": {
        "leases.coordination.k8s.io=gpupool-scheduler@kube-system": {"delete", "get"},
        "nodes": {"list", "patch"},
        "nodes/status": {"patch"},
        "pods@kube-system": {"list"},
        "secrets=gpupool-admission@kube-system": {"delete"},
    },
    "gpupool-test": {
        "daemonsets.apps@kube-system": {"get"},
        f"mutatingwebhookconfigurations.{_ADMISSION}=gpupool-admission": {"get"},
        f"validatingwebhookconfigurations.{_ADMISSION}=gpupool-admission": {"get"},
        "namespaces": {"get"},
        "nodes": {"list"},
        "pods": {"list"},
        "pods@kube-system": {"create", "delete", "get"},
        "runtimeclasses.node.k8s.io": {"list"},
    },
}
_BY_MODE = {
    "second-scheduler": {"gpupool-scheduler": _SCHEDULES | {"pods": _READ | {"delete"}}},
    "extender": {"gpupool-extender": _SCHEDULES | {"nodes": _READ | {"patch"}}},
}
_HISTORY = {
    "deployments.apps": {"get", "patch"},
    "statefulsets.apps": {"get", "patch"},
    "events": {"create", "patch"},
    "namespaces": {"get"},
    "nodes": _READ,
    "pods": _READ,
    "pods/portforward@kube-system": {"create", "get"},
}
_ALL = tuple(
    part
    for flag in (
        "agent.audit.evict=true",
        "monitoring.enabled=true",
        "history.enabled=true",
        "history.idlePolicy.enabled=true",
        "console.enabled=true",
    )
    for part in ("--set", flag)
)


def _made(mode: str, *flags: str) -> Iterator[Obj]:
    return (each for each in yaml.safe_load_all(rendered(mode, *flags)) if each)


@pytest.mark.parametrize("mode", _BY_MODE)
def test_a_token_of_the_chart_gives_the_rights_of_the_table_and_no_others(mode: str) -> None:
    assert rights(_made(mode)) == _ALWAYS | _BY_MODE[mode]


@pytest.mark.parametrize("mode", _BY_MODE)
def test_everything_that_can_be_switched_on_gives_only_what_the_table_says(mode: str) -> None:
    (name,) = _BY_MODE[mode]
    agent = _ALWAYS["gpupool-agent"] | _METRICS | {"pods/eviction": {"create"}}
    assert rights(_made(mode, *_ALL)) == _ALWAYS | {
        "gpupool-agent": agent,
        name: _BY_MODE[mode][name] | _METRICS,
        "gpupool-history": _HISTORY,
    }


@pytest.mark.parametrize("mode", _BY_MODE)
def test_no_policy_of_the_network_lets_everything_in_or_out(mode: str) -> None:
    policies = [each for each in _made(mode, *_ALL) if each["kind"] == "NetworkPolicy"]
    assert len(policies) >= 4
    for policy in policies:
        spec = policy["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert spec["podSelector"]["matchLabels"]
        for rule in [*spec.get("ingress", ()), *spec["egress"]]:
            assert rule["ports"], policy["metadata"]["name"]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    tmp_path.chmod(0o700)  # noqa: ASYNC240
    made = build(tmp_path, certificates_for_tests(), StaticTokens(), NoNodes())
    kube = made.client(ADMIN)
    for name in ("kube-system", "other"):
        await kube.create(NAMESPACES, {"metadata": {"name": name}})
    roles = {"Role": "roles", "RoleBinding": "rolebindings"}
    for each in _made("second-scheduler"):
        kind, name = each["kind"], each["metadata"]["name"]
        if name == "gpupool-admission" and kind == "ValidatingAdmissionPolicy":
            await kube.create(VALIDATING_POLICIES, each)
        elif name == "gpupool-admission" and kind == "ValidatingAdmissionPolicyBinding":
            await kube.create(_BINDINGS, each)
        elif kind in roles and name == "gpupool:admission":
            group = "rbac.authorization.k8s.io"
            await kube.create(Resource(group, "v1", roles[kind], kind, namespaced=True), each)
    try:
        yield made
    finally:
        await made.end()


@pytest.fixture
def thief(server: ApiServer) -> Kube:
    return server.client(service_account_user("kube-system", "gpupool-admission", "u", {}))


def _secret(name: str, kind: str, **metadata: Obj) -> Obj:
    keys = ("tls.crt", "tls.key") if kind == "kubernetes.io/tls" else ()
    return {
        "metadata": {"name": name, "namespace": "kube-system", **metadata},
        "type": kind,
        "data": {key: base64.b64encode(b"x").decode() for key in keys},
    }


_OF_ANOTHER = {"annotations": {"kubernetes.io/service-account.name": "default"}}


@pytest.mark.parametrize(
    "secret",
    [
        _secret("gpupool-admission", "kubernetes.io/service-account-token", **_OF_ANOTHER),
        _secret("gpupool-admission", "Opaque"),
        _secret("another", "kubernetes.io/tls"),
    ],
    ids=["a token", "another type", "another name"],
)
async def test_admission_creates_no_secret_but_its_own(thief: Kube, secret: Obj) -> None:
    with pytest.raises(Refused, match="may write only the Secret gpupool-admission"):
        await thief.create(SECRETS, secret)


async def test_admission_creates_and_renews_its_own_secret(thief: Kube) -> None:
    made = await thief.create(SECRETS, _secret("gpupool-admission", "kubernetes.io/tls"))
    made["data"]["ca.crt"] = ""
    await thief.update(SECRETS, made)
    with pytest.raises(Refused, match="cannot get"):
        await thief.get(SECRETS, "another", "kube-system")
    elsewhere = _secret("gpupool-admission", "kubernetes.io/tls")
    elsewhere["metadata"]["namespace"] = "other"
    with pytest.raises(Refused, match="cannot create"):
        await thief.create(SECRETS, elsewhere)
