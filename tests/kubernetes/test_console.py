"""The console of the chart, through port-forward, for a visitor who may see one namespace only.

Beside the visitor's pods, another namespace has a pod on the same card: no page may tell of it.
"""

import contextlib
import http.client
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpupool.console.pages import ACTIONS, PAGES
from gpupool.contract.names import RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from testbed.cluster import Kubernetes
from testbed.installation import NAMESPACE
from testbed.processes import free_port
from tests.console.test_console import cookie_of, get
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.chart import NODE, install, one_node, token_of
from tests.kubernetes.conftest import LONGEST_S
from tests.kubernetes.pods import IMAGE, gpu_pod

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

OWN, OTHER = "research", "takeover-plans"
HIDDEN = "bid-model"  # a pod in the other namespace
CARDS = re.compile(r"Tesla V100|GPU-[0-9a-f]{8}")
ROLE: Obj = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "sees"},
    "rules": [
        {
            "apiGroups": ["", "apps"],
            "resources": ["pods", "services", "events", "configmaps", "deployments", "replicasets"],
            "verbs": ["get", "list", "watch"],
        },
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ],
}
BINDING: Obj = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "sees"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "sees"},
    "subjects": [{"kind": "ServiceAccount", "name": "visitor", "namespace": OWN}],
}
DEPLOYMENT: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": IMAGE}]},
        },
    },
}
LISTS = ("pods", "deployments", "services", "configmaps", "events")  # that the role allows
DETAILS = (
    f"pods/{OWN}/mine",
    f"pods/{OWN}/mine/logs",
    f"pods/{OWN}/waits",
    f"deployments/{OWN}/web",
)
REFUSED = {
    "nodes": "list nodes",
    f"nodes/{NODE}": "list nodes",
    "secrets": f"list secrets --namespace {OWN}",
    "statefulsets": f"list statefulsets.apps --namespace {OWN}",
}


@dataclass(frozen=True)
class Visitor:
    port: int
    cookie: str

    def sees(self, path: str) -> tuple[int, str]:
        return get(self.port, f"/clusters/cluster/{path}", self.cookie)[:2]

    def sends(self, path: str, **form: str) -> tuple[int, str]:
        return get(self.port, f"/clusters/cluster/{path}", self.cookie, form=form)[:2]


kubernetes = one_node


@pytest.fixture(scope="module")
def released(
    kubernetes: Kubernetes, admin: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install(kubernetes, admin, tmp_path_factory.mktemp("values") / "values.yaml")
    for namespace, pods in ((OWN, {"mine": 3, "waits": 14}), (OTHER, {HIDDEN: 2})):
        admin("create", "namespace", namespace)
        inside = admin.within(namespace)
        account = ("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        inside(*account)
        for name, units in pods.items():
            inside.apply(gpu_pod(name, RESOURCE_GPU_MEM, units))
            if name != "waits":
                inside.wait("condition=Ready", f"pod/{name}", within_s=80)
    own = admin.within(OWN)
    own.apply(ROLE, BINDING, DEPLOYMENT)
    condition = ".status.conditions[0].reason"
    eventually(lambda: own.field(condition, "pod", "waits") == "Unschedulable", LONGEST_S)


@pytest.fixture(scope="module")
def console(released: None, admin: Kubectl) -> Iterator[int]:
    """Its port on this machine."""
    port = free_port()
    forward = ("port-forward", "deployment/gpupool-console", f"{port}:8480")
    with admin.within(NAMESPACE).start(*forward) as running:
        running.shows("Forwarding from 127.0.0.1")
        yield port


@pytest.fixture(scope="module")
def visitor(console: int, admin: Kubectl) -> Visitor:
    token = token_of(admin, "visitor", OWN)
    status, _, headers = get(console, "/sign-in", form={"token": token})
    assert status == 303
    return Visitor(console, cookie_of(headers))


def addresses(namespace: str, name: str) -> Iterator[str]:
    """Of every page and every action, for an object of this name."""
    given = {"pool": "p", "node": NODE, "card": "0", "template": "t"}
    for path in (*(page.path for page in PAGES), *(action.path for action in ACTIONS)):
        yield path.format(namespace=namespace, name=name, **given)


def test_lists_and_pages_of_the_own_namespace_are_shown(visitor: Visitor) -> None:
    for path in LISTS:
        status, page = visitor.sees(f"{path}?namespace={OWN}")
        assert status == 200, (path, page)
        assert visitor.sees(path)[0] == 403, "all namespaces"
    for path in DETAILS:
        assert visitor.sees(path)[0] == 200, path
    page = visitor.sees(f"pods?namespace={OWN}")[1]
    assert "card 0: 3226 MiB" in page
    assert "wants 14" in page
    waits = visitor.sees(f"pods/{OWN}/waits")[1]
    assert "you need the right to see all nodes and pods" in waits


def test_a_page_without_the_right_for_it_names_the_right(visitor: Visitor) -> None:
    for path, right in REFUSED.items():
        status, page = visitor.sees(f"{path}?namespace={OWN}")
        assert status == 403, path
        assert f"You do not have the right: {right}" in page


def test_what_the_visitor_may_not_do_is_greyed_out_with_the_reason(
    visitor: Visitor, admin: Kubectl
) -> None:
    for path, right in (
        (f"pods?namespace={OWN}", f"delete pods --namespace {OWN}"),
        (f"pods/{OWN}/mine", f"delete pods --namespace {OWN}"),
        (f"deployments/{OWN}/web", f"patch deployments.apps --namespace {OWN}"),
    ):
        page = visitor.sees(path)[1]
        assert 'aria-disabled="true"' in page
        assert f"You do not have the right: {right}" in page, path
    pods = admin.within(OWN).names("pods")
    for path in (f"pods/{OWN}/mine/delete", f"pods/{OWN}/mine/resize", f"nodes/{NODE}/cordon"):
        assert visitor.sends(path, units="1")[0] == 403, path
    assert admin.within(OWN).names("pods") == pods


@pytest.mark.parametrize(("namespace", "name"), [(OWN, "mine"), (OTHER, HIDDEN)])
def test_no_page_and_no_action_breaks_or_tells_of_another_namespace(
    visitor: Visitor, namespace: str, name: str
) -> None:
    for path in addresses(namespace, name):
        for query in ("", f"?namespace={OWN}", f"?namespace={OTHER}&q=bid"):
            for status, page in (visitor.sees(path + query), visitor.sends(path + query)):
                assert status < 500, (path, query, page)
                assert "Traceback" not in page
                # What the visitor has typed may be shown; whatever is behind it may not.
                told = page if namespace == OWN and OTHER not in query else ""
                assert not re.search(f"{OTHER}|{HIDDEN}", told), (path, query)
                if namespace == OTHER and f"/{OTHER}/" in path:
                    assert status in (403, 404, 405), (path, query)
                    assert not CARDS.search(page), (path, query)


def test_the_search_and_the_choice_of_namespaces_know_the_own_one_only(visitor: Visitor) -> None:
    for text in (HIDDEN, OTHER, "b"):
        page = visitor.sees(f"search?q={text}&namespace={OWN}")[1]
        assert f"/pods/{OTHER}" not in page
    page = visitor.sees(f"pods?namespace={OWN}")[1]
    assert OTHER not in page


def test_a_live_page_follows_the_own_namespace_only(visitor: Visitor, admin: Kubectl) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", visitor.port, timeout=LONGEST_S)
    headers = {"Cookie": visitor.cookie, "Accept": "text/event-stream"}
    with contextlib.closing(connection):
        connection.request("GET", f"/clusters/cluster/pods?namespace={OWN}", headers=headers)
        answer = connection.getresponse()
        admin.within(OTHER).apply(gpu_pod(f"{HIDDEN}-2", RESOURCE_GPU_MEM, 1))
        admin.within(OWN).apply(gpu_pod("newcomer", RESOURCE_GPU_MEM, 1))
        told = ""
        while "newcomer" not in told:
            line = answer.readline().decode()
            assert line, f"it ended: {told}"
            told += line
    assert not re.search(f"{OTHER}|{HIDDEN}", told)


def test_an_administrator_sees_both_through_the_same_console(
    console: int, kubernetes: Kubernetes
) -> None:
    headers = get(console, "/sign-in", form={"token": kubernetes.plane.token})[2]
    seen = Visitor(console, cookie_of(headers))
    for path in ("pods", "map"):
        page = seen.sees(path)[1]
        assert HIDDEN in page
        assert "mine" in page
    # The console asks the agent of the node, with the rights of whoever looks.
    eventually(lambda: "34 °C" in seen.sees(f"nodes/{NODE}")[1], LONGEST_S)
