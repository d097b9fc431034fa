"""A webhook that is a pod behind a service, as most of them are on real clusters."""

import base64

import pytest

from kubeclient.objects import Obj
from testbed.processes import free_port
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, pod, service
from tests.localkube.apiserver.admission.webhook_server import key_pair

pytestmark = pytest.mark.kubectl

REFUSING = """
import http.server, json, ssl, sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": "the pod says no"}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = json.dumps(review | {"response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def _configuration(namespace: str, ca: bytes) -> Obj:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "hook.example.com",
                "clientConfig": {
                    "service": {"namespace": namespace, "name": "hook", "path": "/"},
                    "caBundle": base64.b64encode(ca).decode(),
                },
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def test_the_process_behind_a_service_decides(live: Kubectl) -> None:
    certificate, key = key_pair(f"hook.{live.namespace}.svc")
    files = {"tls.crt": certificate, "tls.key": key}
    port = free_port()
    live.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "tls"},
            "stringData": {name: pem.decode() for name, pem in files.items()},
        },
        pod(
            "hook",
            container(
                "hook",
                "python",
                command=["python", "-c", REFUSING, str(port)],
                ports=[{"containerPort": port}],
                readinessProbe={"tcpSocket": {"port": port}, "periodSeconds": 1},
                volumeMounts=[{"name": "tls", "mountPath": "/tls"}],
            ),
            volumes=[{"name": "tls", "secret": {"secretName": "tls"}}],
        ),
        service("hook", ports=[{"port": 443, "targetPort": port}]),
    )
    live.wait("condition=Ready", "pod/hook")
    eventually(lambda: live.field(".items[*].endpoints[*].conditions.ready", "endpointslices"))
    configuration = _configuration(live.namespace, certificate)
    live.apply(configuration)
    try:
        said = live.refused("create", "configmap", "c")
    finally:
        live("delete", "validatingwebhookconfiguration", live.namespace)
    assert 'admission webhook "hook.example.com" denied the request: the pod says no' in said
