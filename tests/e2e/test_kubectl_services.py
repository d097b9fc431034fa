"""Services by kubectl: endpoints, addresses, and a load balancer that HTTP reaches."""

import json
import urllib.request

import pytest

from gpupool.local.config.settings import NAMES
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, deployment, pod, service, shell, template

pytestmark = pytest.mark.kubectl


def fetch(address: str, port: str) -> str:
    with urllib.request.urlopen(f"http://{address}:{port}/", timeout=10) as answer:
        return str(answer.read().decode())


def address_of(kubectl: Kubectl, name: str) -> str:
    return eventually(lambda: kubectl.field(".status.loadBalancer.ingress[0].ip", "service", name))


def port_of(kubectl: Kubectl, name: str, port: int) -> str:
    """Where a port is really served: that of the service, or the one that the note names."""
    notes: dict[str, str] = kubectl.json("get", "service", name)["metadata"].get("annotations", {})
    moved = dict(
        pair.split("=")
        for pair in notes.get(NAMES.load_balancer_ports_annotation, "").split(",")
        if pair
    )
    return moved.get(str(port), str(port))


def test_endpoints_follow_the_pods(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2), service("web"))
    kubectl("rollout", "status", "deployment/web")

    def addresses() -> set[str]:
        items = kubectl.json("get", "endpointslices")["items"]
        return {a for item in items for each in item["endpoints"] or () for a in each["addresses"]}

    def pods() -> set[str]:
        return set(kubectl.field(".items[*].status.podIP", "pods").split())

    eventually(lambda: len(addresses()) == 2 and addresses() == pods())
    kubectl("scale", "deployment/web", "--replicas=1")
    eventually(lambda: len(addresses()) == 1)
    kubectl("delete", "service", "web")
    eventually(lambda: kubectl.names("endpointslices,endpoints") == [])


def test_a_named_port_is_each_pods_own(kubectl: Kubectl) -> None:
    for name, port in (("a", 8080), ("b", 9090)):
        kubectl.apply(pod(name, container(ports=[{"name": "http", "containerPort": port}])))
    kubectl.apply(service("web", ports=[{"name": "web", "port": 80, "targetPort": "http"}]))
    kubectl.wait("condition=Ready", "pod/a", "pod/b")

    def ports() -> list[int]:
        items = kubectl.json("get", "endpointslices")["items"]
        return sorted(port["port"] for item in items for port in item["ports"] or ())

    eventually(lambda: ports() == [8080, 9090])


def test_a_load_balancer_answers(live: Kubectl) -> None:
    live("create", "deployment", "web", "--image=nginx", "--port=80")
    live("expose", "deployment", "web", "--type=LoadBalancer", "--port=80")
    live("rollout", "status", "deployment/web")
    address = address_of(live, "web")
    assert address.startswith("127.")
    assert address in live("get", "service", "web")
    port = port_of(live, "web", 80)
    assert "nginx" in fetch(address, port)


def test_a_load_balancer_follows_its_pods(live: Kubectl) -> None:
    live.apply(deployment("web", template=template(container(ports=[{"containerPort": 80}]))))
    live.apply(service("web", type="LoadBalancer", ports=[{"port": 8080, "targetPort": 80}]))
    live("rollout", "status", "deployment/web")
    address, port = address_of(live, "web"), port_of(live, "web", 8080)
    assert "nginx" in fetch(address, port)
    live("rollout", "restart", "deployment/web")
    live("rollout", "status", "deployment/web")
    assert eventually(lambda: "nginx" in fetch(address, port))
    live("patch", "service", "web", "-p", '{"spec":{"type":"ClusterIP"}}')
    eventually(lambda: not live.field(".status.loadBalancer.ingress", "service", "web"))


def test_two_load_balancers_share_no_address(live: Kubectl) -> None:
    for name in ("a", "b"):
        live.apply(service(name, type="LoadBalancer", ports=[{"port": 8080, "targetPort": 80}]))
    assert address_of(live, "a") != address_of(live, "b")


def test_addresses_are_given_once(kubectl: Kubectl) -> None:
    kubectl.apply(service("a"), service("b"))
    first = kubectl.field(".spec.clusterIP", "service", "a")
    assert first != kubectl.field(".spec.clusterIP", "service", "b")
    taken = json.dumps(service("c", clusterIP=first))
    said = kubectl.refused("create", "-f", "-", stdin=taken)
    assert "provided IP is already allocated" in said


def test_a_node_port_is_given_and_kept(kubectl: Kubectl) -> None:
    kubectl.apply(service("web", type="NodePort"))
    port = int(kubectl.field(".spec.ports[0].nodePort", "service", "web"))
    assert 30000 <= port <= 32767
    taken = service("other", type="NodePort", ports=[{"port": 80, "nodePort": port}])
    said = kubectl.refused("create", "-f", "-", stdin=json.dumps(taken))
    assert "provided port is already allocated" in said


def test_a_node_port_answers_and_is_described_as_a_link(live: Kubectl) -> None:
    live("create", "deployment", "web", "--image=nginx", "--port=80")
    live("expose", "deployment", "web", "--type=NodePort", "--port=80")
    live("rollout", "status", "deployment/web")
    port = live.field(".spec.ports[0].nodePort", "service", "web")
    link = f"http://127.0.0.1:{port}"
    assert eventually(lambda: link in live("describe", "service", "web"))
    assert "nginx" in fetch("127.0.0.1", port)


def test_a_claim_gets_a_volume(kubectl: Kubectl) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kubectl.apply(
        claim, pod("web", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    )
    kubectl.wait("condition=Ready", "pod/web")
    row = kubectl("get", "pvc", "data").splitlines()[1].split()
    assert (row[1], row[3]) == ("Bound", "1Gi")
    assert kubectl.field(".status.phase", "pv", row[2]) == "Bound"


def test_what_is_in_a_volume_outlives_the_pod(live: Kubectl) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
    mounts = [{"name": "d", "mountPath": "/data"}]

    def run(name: str, script: str) -> str:
        made = shell(script, volumeMounts=mounts)
        live.apply(pod(name, made, volumes=[volume], restartPolicy="Never"))
        live.wait("jsonpath={.status.phase}=Succeeded", f"pod/{name}")
        return live("logs", name)

    live.apply(claim)
    run("writer", "echo weights > /data/model")
    live("delete", "pod", "writer")
    assert run("reader", "cat /data/model") == "weights\n"
