"""Certificates for users, as kubectl asks for them, approves them and uses them."""

import base64

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, eventually, stream_of
from tests.localkube.signing_samples import CLIENT, Asked, ask, request_object

pytestmark = pytest.mark.kubectl


def _request(kubectl: Kubectl, asked: Asked, *usages: str) -> Obj:
    """Named after the namespace: requests are of the whole cluster."""
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    name = kubectl.namespace
    return kind | request_object(asked, CLIENT, *usages, name=name, expirationSeconds=3600)


def _row(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "csr", kubectl.namespace, "--no-headers").split()


def _as_client(kubectl: Kubectl, asked: Asked) -> tuple[str, ...]:
    encoded = kubectl.field(".status.certificate", "csr", kubectl.namespace)
    (kubectl.folder / "user.crt").write_bytes(base64.b64decode(encoded))
    (kubectl.folder / "user.key").write_bytes(asked.key_pem)
    return "--client-certificate=user.crt", "--client-key=user.key"


def test_an_approved_certificate_makes_a_user(kubectl: Kubectl) -> None:
    asked = ask("jane", f"readers-{kubectl.namespace}")
    kubectl("create", "-f", "-", stdin=stream_of(_request(kubectl, asked, "client auth")))
    assert _row(kubectl)[2:] == [CLIENT, "kubernetes-admin", "60m", "Pending"]
    kubectl("certificate", "approve", kubectl.namespace)
    eventually(lambda: _row(kubectl)[-1] == "Approved,Issued")
    client = _as_client(kubectl, asked)
    whoami = kubectl("auth", "whoami", *client)
    assert "jane" in whoami
    assert f"[readers-{kubectl.namespace} system:authenticated]" in whoami
    assert 'User "jane" cannot list resource "pods"' in kubectl.refused("get", "pods", *client)
    group = f"--group=readers-{kubectl.namespace}"
    kubectl("create", "rolebinding", "readers", "--clusterrole=view", group)
    assert kubectl.run("get", "pods", *client).code == 0
    assert kubectl.run("get", "secrets", *client).code == 1


def test_a_denied_request_is_not_signed(kubectl: Kubectl) -> None:
    request = _request(kubectl, ask("jane"), "client auth")
    kubectl("create", "-f", "-", stdin=stream_of(request))
    kubectl("certificate", "deny", kubectl.namespace)
    assert _row(kubectl)[-1] == "Denied"
    said = kubectl.refused("certificate", "approve", kubectl.namespace)
    assert "is already Denied" in said
    assert kubectl.field(".status.certificate", "csr", kubectl.namespace) == ""


def test_a_request_that_its_signer_refuses_says_why(kubectl: Kubectl) -> None:
    request = _request(kubectl, ask("jane"), "client auth", "server auth")
    kubectl("create", "-f", "-", stdin=stream_of(request))
    kubectl("certificate", "approve", kubectl.namespace)
    eventually(lambda: _row(kubectl)[-1] == "Approved,Failed")
    said = kubectl.field(".status.conditions[1].message", "csr", kubectl.namespace)
    assert said == "invalid usage for client certificate: server auth"


def test_only_who_speaks_for_the_signer_approves(kubectl: Kubectl) -> None:
    request = _request(kubectl, ask("jane"), "client auth")
    kubectl("create", "-f", "-", stdin=stream_of(request))
    bob = f"bob-{kubectl.namespace}"
    role = ("create", "clusterrole", bob, "--verb=get,update")
    kubectl(*role, "--resource=certificatesigningrequests,certificatesigningrequests/approval")
    kubectl("create", "clusterrolebinding", bob, f"--clusterrole={bob}", f"--user={bob}")
    approve = ("certificate", "approve", kubectl.namespace, f"--as={bob}")
    assert "not permitted to approve requests with signerName" in kubectl.refused(*approve)
    approver = "system:certificates.k8s.io:kube-apiserver-client-approver"
    kubectl(
        "create", "clusterrolebinding", f"{bob}-2", f"--clusterrole={approver}", f"--user={bob}"
    )
    kubectl(*approve)
    kubectl("delete", f"clusterrolebinding/{bob}", f"clusterrolebinding/{bob}-2")
    kubectl("delete", f"clusterrole/{bob}")
