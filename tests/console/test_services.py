"""Services in the console: made for a workload, changed, and seen with the pods behind them."""

import pytest

from gpupool.console.pages.services import endpoint
from gpupool.console.parts.cells import Link, Several, Text
from gpupool.console.parts.form import Invalid
from gpupool.console.parts.port_lines import port_lines, ports_of
from gpupool.console.rows.services import service_row
from gpupool.console.words import ENGLISH, translator
from kubeclient.objects import Obj
from tests.console.conftest import Office
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, workload

pytestmark = pytest.mark.timeout(600)

CORE = "/api/v1/namespaces/default/services"
APPS = "/apis/apps/v1/namespaces/default/deployments"
FORM = {
    "type": "LoadBalancer",
    "workload": "",
    "namespace": "default",
    "selector": "",
    "ports": "80",
}
T = translator(ENGLISH)


def test_a_service_is_made_for_a_workload_and_changed(office: Office) -> None:
    labels = {"app": "shop"}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [shell("sleep 9999")]}}
    spec = {"template": pods, "selector": {"matchLabels": labels}}
    office.makes(APPS, workload("Deployment", "shop", 1, **spec))
    chosen = "Deployment default/shop"
    eventually(lambda: chosen in office.sees("create/service")[1], within_s=60)
    form = {**FORM, "name": "shop", "workload": chosen, "namespace": "x", "ports": "80:8888 http"}
    status, page, led = office.sends("create/service", **form)
    assert (status, led) == (303, "services/default/shop"), page
    made = office.finds(f"{CORE}/shop")["spec"]
    assert (made["type"], made["selector"]) == ("LoadBalancer", labels)
    assert [(port["port"], port["targetPort"], port["name"]) for port in made["ports"]] == [
        (80, 8888, "http")
    ]
    eventually(lambda: "/pods/default/shop-" in office.sees(led)[1], within_s=120)
    # Until it has one, it is reached by its node port.
    endpoint = "Its external endpoint is http://127."
    eventually(lambda: endpoint in office.sees(led)[1], within_s=120)
    assert 'target="_blank"' in office.sees("services")[1]

    node_port = made["ports"][0]["nodePort"]
    changed = {"type": "NodePort", "selector": "app=shop\nrole=a", "ports": "80:8888 http\n53/UDP"}
    assert office.sends("services/default/shop/change", **changed)[0] == 303
    spec = office.finds(f"{CORE}/shop")["spec"]
    assert (spec["type"], spec["selector"]) == ("NodePort", {"app": "shop", "role": "a"})
    assert [port["name"] for port in spec["ports"]] == ["http", "udp-53"]
    assert spec["ports"][0]["nodePort"] == node_port, "what the form does not show stays"
    inside = {"type": "ClusterIP", "selector": "app=shop", "ports": "80:8888"}
    assert office.sends("services/default/shop/change", **inside)[0] == 303
    assert "nodePort" not in office.finds(f"{CORE}/shop")["spec"]["ports"][0]
    named = {"typed-name": "shop"}
    assert office.sends("services/default/shop/delete", **named)[2] == "services"
    assert call(office.cluster, "GET", f"{CORE}/shop")[0] == 404


def test_what_is_wrong_is_said_at_the_field_or_in_the_servers_words(office: Office) -> None:
    def said(**changes: str) -> str:
        status, page, _ = office.sends("create/service", **{**FORM, "name": "odd", **changes})
        assert status == 422
        return page

    assert "Choose a workload, or name labels of pods." in said()
    assert "line 1: wanted 80, 80:8888, 53/UDP, found: http" in said(selector="a=b", ports="http")
    assert "Port 80 is there twice." in said(selector="a=b", ports="80\n80:90")
    assert "line 1: wanted key=value" in said(selector="a b")
    assert "Choose one of those that are offered." in said(workload="Deployment default/none")
    assert "Choose one of those that are offered." in said(type="<b>")
    assert "This is needed." in said(name="", selector="a=b")
    assert "metadata.name" in said(name="Bad_Name", selector="a=b")
    assert "not found" in said(selector="a=b", namespace="nowhere")


def test_a_visitor_who_may_only_look_makes_and_changes_nothing(office: Office) -> None:
    office.makes(CORE, {"metadata": {"name": "calm"}, "spec": {"ports": [{"port": 80}]}})
    viewer = office.as_user("service-viewer", "view")
    assert viewer.sees("services/default/calm")[0] == 200
    assert viewer.sees("create/service?namespace=default")[0] == 403
    form = {**FORM, "name": "mine", "selector": "a=b"}
    assert viewer.sends("create/service?namespace=default", **form)[0] == 403
    assert viewer.sends("services/default/calm/change", type="NodePort", ports="1")[0] == 403
    assert office.finds(f"{CORE}/calm")["spec"]["type"] == "ClusterIP"


@pytest.mark.parametrize(
    "text", ["0", "65536", "80:0", "80:70000", "x", "80/ICMP", "-1", "80 80 80", "99999999"]
)
def test_ports_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        ports_of(T, "ports", text)


def test_a_command_of_gpupool_is_not_called_one_of_kubectl(office: Office) -> None:
    assert "<summary>as kubectl</summary>" in office.sees("services")[1]
    assert "<summary>as a command</summary>" in office.sees("map")[1]


@pytest.mark.parametrize(("kind", "words"), [("LoadBalancer", "Waiting"), ("ClusterIP", "–")])
def test_a_load_balancer_without_an_address_waits_for_one(kind: str, words: str) -> None:
    service = {"metadata": {"name": "shop", "namespace": "default"}, "spec": {"type": kind}}
    assert endpoint(T, service_row(service)) == Text(words)


def test_ports_survive_the_way_through_the_form() -> None:
    for text in ("80", "80:8888", "53/UDP", "80:web http\n443 https\n53:5353/UDP dns"):
        assert port_lines(ports_of(T, "ports", text)) == text
    assert ports_of(T, "ports", "\n") == []


def test_a_service_that_waits_for_its_balancer_says_that_the_link_is_by_its_node_port() -> None:
    note = {"gpupool.io/address": "http://127.0.0.1:30080"}
    metadata = {"name": "web", "namespace": "default", "annotations": note}
    waits: Obj = {"metadata": metadata, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    shown = endpoint(T, service_row(waits))
    assert isinstance(shown, Several)
    assert shown.cells[1] == Text("by its node port")
    has: Obj = {**waits, "status": {"loadBalancer": {"ingress": [{"ip": "127.96.0.1"}]}}}
    assert isinstance(endpoint(T, service_row(has)), Link)
    plain: Obj = {**waits, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    assert isinstance(endpoint(T, service_row(plain)), Link)
