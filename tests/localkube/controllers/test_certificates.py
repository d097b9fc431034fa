"""Signing requests are approved, signed and cleaned up."""

import base64
import datetime
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import SIGNING_REQUESTS, Resource
from localkube.apiserver.request import User
from localkube.apiserver.security.identities import AUTHENTICATED
from localkube.controllers import (
    certificate_approval,
    certificate_cleanup,
    certificate_signing,
)
from localkube.controllers.certificate_signing import validity_of
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.signing_samples import CLIENT, KUBELET, SERVING, ask, request_object

BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
NODE = User("system:node:n", ("system:nodes", AUTHENTICATED))
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MINUTE, HOUR, DAY = (datetime.timedelta(minutes=n) for n in (1, 60, 1440))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    controllers = (
        certificate_approval.CONTROLLER,
        certificate_signing.controller(tmp_path),
        certificate_cleanup.CONTROLLER,
    )
    async with desk_for(tmp_path, *controllers) as found:
        yield found


async def decide(desk: Desk, kind: str, name: str = "r") -> None:
    request = await desk.get(SIGNING_REQUESTS, name)
    request["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "Test"}]}
    await desk.kube.update(SIGNING_REQUESTS, request, "approval")
    await desk.settle()


async def status_of(desk: Desk, name: str = "r") -> Obj:
    found: Obj = (await desk.get(SIGNING_REQUESTS, name)).get("status", {})
    return found


def certificate(status: Obj) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))


async def test_an_approved_request_becomes_a_certificate_of_the_clusters_authority(
    desk: Desk, tmp_path: Path
) -> None:
    asked = ask("jane", "readers")
    await desk.create(SIGNING_REQUESTS, request_object(asked, CLIENT, "client auth"))
    await desk.settle()
    assert await status_of(desk) == {}
    await decide(desk, "Approved")
    made = certificate(await status_of(desk))
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    made.verify_directly_issued_by(authority)
    assert made.subject == x509.load_pem_x509_csr(asked.pem).subject
    assert made.public_key() == asked.key.public_key()
    usages = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    with pytest.raises(x509.ExtensionNotFound):
        made.extensions.get_extension_for_class(x509.KeyUsage)


async def test_a_servers_certificate_has_its_names_and_usages(desk: Desk) -> None:
    asked = ask("system:node:n", "system:nodes", alternatives=[x509.DNSName("n.example.com")])
    usages = ("digital signature", "key encipherment", "server auth")
    await desk.create(SIGNING_REQUESTS, request_object(asked, SERVING, *usages))
    await decide(desk, "Approved")
    made = certificate(await status_of(desk))
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n.example.com"]
    key_usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert key_usage.digital_signature
    assert key_usage.key_encipherment
    assert not key_usage.key_cert_sign
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not constraints.ca


async def test_what_a_signer_does_not_accept_fails(desk: Desk) -> None:
    wrong = request_object(ask("jane"), CLIENT, "client auth", "server auth")
    await desk.create(SIGNING_REQUESTS, wrong)
    await decide(desk, "Approved")
    status = await status_of(desk)
    assert "certificate" not in status
    failed = status["conditions"][1]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert failed["message"] == "invalid usage for client certificate: server auth"


async def test_what_is_denied_is_not_signed(desk: Desk) -> None:
    await desk.create(SIGNING_REQUESTS, request_object(ask("jane"), CLIENT, "client auth"))
    await decide(desk, "Denied")
    assert "certificate" not in await status_of(desk)


async def test_other_signers_are_left_to_others(desk: Desk) -> None:
    await desk.create(SIGNING_REQUESTS, request_object(ask("jane"), "example.com/own", "any"))
    await decide(desk, "Approved")
    assert "certificate" not in await status_of(desk)


async def test_a_certificate_ends_with_its_authority(desk: Desk, tmp_path: Path) -> None:
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    desk.late = authority.not_valid_after_utc - datetime.datetime.now(datetime.UTC) - DAY
    await desk.create(SIGNING_REQUESTS, request_object(ask("jane"), CLIENT, "client auth"))
    request = await desk.get(SIGNING_REQUESTS, "r")
    condition = {"type": "Approved", "status": "True", "reason": "Test"}
    condition["lastUpdateTime"] = desk.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    request["status"] = {"conditions": [condition]}
    await desk.kube.update(SIGNING_REQUESTS, request, "approval")
    await desk.settle()
    made = certificate(await status_of(desk))
    assert made.not_valid_after_utc == authority.not_valid_after_utc


@pytest.mark.parametrize(
    ("asked_s", "expected"),
    [
        (None, 365 * DAY - 5 * MINUTE),
        (10**9, 365 * DAY - 5 * MINUTE),
        (86_400, DAY - 5 * MINUTE),
        (3600, HOUR),
        (600, 10 * MINUTE),
        (1, 10 * MINUTE),
    ],
)
def test_a_certificate_lasts_as_long_as_was_asked_for_up_to_a_year(
    asked_s: int | None, expected: datetime.timedelta
) -> None:
    begins, ends = validity_of(asked_s, NOW)
    assert (begins, ends) == (NOW - 5 * MINUTE, NOW + expected)


async def test_a_kubelet_gets_its_own_certificate_if_it_may(desk: Desk) -> None:
    node = desk.server.client(NODE)
    asked = ask("system:node:n", "system:nodes")
    usages = ("digital signature", "client auth")
    await node.create(SIGNING_REQUESTS, request_object(asked, KUBELET, *usages, name="before"))
    await desk.settle()
    assert await status_of(desk, "before") == {}
    role = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "nodes"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    }
    await desk.create(BINDINGS, binding)
    await node.create(SIGNING_REQUESTS, request_object(asked, KUBELET, *usages, name="after"))
    # Of another node: this one may not ask for it.
    other = ask("system:node:m", "system:nodes")
    await node.create(SIGNING_REQUESTS, request_object(other, KUBELET, *usages, name="other"))
    await desk.settle()
    status = await status_of(desk, "after")
    assert status["conditions"][0]["reason"] == "AutoApproved"
    assert status["certificate"]
    assert await status_of(desk, "other") == {}


@pytest.mark.parametrize(
    ("decision", "kept"), [("", DAY), ("Denied", HOUR), ("Approved", HOUR)], ids=str
)
async def test_a_request_goes_when_it_is_done_with(
    desk: Desk, decision: str, kept: datetime.timedelta
) -> None:
    await desk.create(SIGNING_REQUESTS, request_object(ask("jane"), CLIENT, "client auth"))
    if decision:
        await decide(desk, decision)
    desk.forward(kept.total_seconds() - 60)
    await desk.settle()
    assert await desk.names(SIGNING_REQUESTS) == ["r"]
    desk.forward(120)
    await desk.settle()
    with pytest.raises(NotFound):
        await desk.get(SIGNING_REQUESTS, "r")
