"""An API server that is a pod: its kinds are used by kubectl as those of the cluster."""

import base64

import pytest

from kubeclient.objects import Obj
from testbed.processes import free_port
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, pod, service
from tests.localkube.apiserver.admission.webhook_server import key_pair

pytestmark = pytest.mark.kubectl

SERVER = """
import http.server, json, ssl, sys

GROUP = sys.argv[2] + "/v1"
TOYS = {"name": "toys", "singularName": "toy", "namespaced": True, "kind": "Toy",
        "verbs": ["get", "list"]}

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        user = {"user": self.headers["X-Remote-User"]}
        toy = {"apiVersion": GROUP, "kind": "Toy", "metadata": {"name": "bear"}, "spec": user}
        if self.path.partition("?")[0] == "/apis/" + GROUP:
            found = {"kind": "APIResourceList", "groupVersion": GROUP, "resources": [TOYS]}
        else:
            found = {"apiVersion": GROUP, "kind": "ToyList", "metadata": {}, "items": [toy]}
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile="/front/ca.crt")
context.verify_mode = ssl.CERT_REQUIRED
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def _kept(kind: str, name: str, **texts: str) -> Obj:
    field = "data" if kind == "ConfigMap" else "stringData"
    files = {key.replace("_", "."): text for key, text in texts.items()}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: files}


def _registration(group: str, namespace: str, ca: bytes) -> Obj:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "caBundle": base64.b64encode(ca).decode(),
            "service": {"namespace": namespace, "name": "toys"},
        },
    }


def test_the_kinds_of_a_pod_are_used_like_others(live: Kubectl) -> None:
    certificate, key = key_pair(f"toys.{live.namespace}.svc")
    front = "-n=kube-system", "configmap", "extension-apiserver-authentication"
    ca = live.field(".data.requestheader-client-ca-file", *front)
    group, port = f"{live.namespace}.example.com", free_port()
    served = container(
        "toys",
        "python",
        command=["python", "-c", SERVER, str(port), group],
        ports=[{"containerPort": port}],
        readinessProbe={"tcpSocket": {"port": port}, "periodSeconds": 1},
        volumeMounts=[
            {"name": "tls", "mountPath": "/tls"},
            {"name": "front", "mountPath": "/front"},
        ],
    )
    volumes = [
        {"name": "tls", "secret": {"secretName": "tls"}},
        {"name": "front", "configMap": {"name": "front"}},
    ]
    live.apply(
        _kept("Secret", "tls", tls_crt=certificate.decode(), tls_key=key.decode()),
        _kept("ConfigMap", "front", ca_crt=ca),
        pod("toys", served, volumes=volumes),
        service("toys", ports=[{"port": 443, "targetPort": port}]),
        _registration(group, live.namespace, certificate),
    )
    try:
        live.wait("condition=Available", f"apiservice/v1.{group}")
        row = live("get", "apiservice", f"v1.{group}", "--no-headers").split()
        assert row[1:3] == [f"{live.namespace}/toys", "True"]
        assert "toys" in live("api-resources", f"--api-group={group}", "--cached=false")
        assert live.field(".items[*].spec.user", f"toys.{group}") == "kubernetes-admin"
        assert "cannot list" in live.refused("get", f"toys.{group}", "--as=nobody")
        live("delete", "pod", "toys", "--now")
        shown = ("get", "apiservice", f"v1.{group}", "--no-headers")
        eventually(lambda: "False" in live(*shown))
        assert "ServiceUnavailable" in live.refused("get", "--raw", f"/apis/{group}/v1")
    finally:
        live("delete", "apiservice", f"v1.{group}")
