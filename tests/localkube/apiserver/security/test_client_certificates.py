"""Clients are known by certificates of the cluster's authority."""

import datetime
import hashlib
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kubeclient.certificates import (
    Validity,
    certificate_pem,
    client_certificate,
    key_pem,
    new_authority,
)
from localkube.apiserver.request import ClientCertificate, Request, User
from localkube.apiserver.security.authentication import Authenticator
from localkube.apiserver.security.certificates import Certificates, ensure, server_context
from localkube.apiserver.security.client_certificates import of_connection
from localkube.apiserver.security.identities import ADMIN, AUTHENTICATED
from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.security.tokens import StaticTokens
from localkube.controllers.certificate_signing import sign, validity_of
from localkube.signing_requests import parse
from tests.localkube.apiserver.security.security_world import (
    new_key,
    recorded_authorizer,
    recorded_objects,
)
from tests.localkube.signing_samples import ask

NOW = datetime.datetime.now(datetime.UTC)
JANE = User("jane", ("readers", AUTHENTICATED))


def connected(made: Certificates, folder: Path, pem: bytes, key: bytes) -> ssl.SSLObject:
    """The server's side of a handshake with a client that shows this certificate."""
    for name, content in (("client.crt", pem), ("client.key", key)):
        (folder / name).write_bytes(content)
    trust = ssl.create_default_context(cadata=made.ca_pem.decode())
    if pem:
        trust.load_cert_chain(folder / "client.crt", folder / "client.key")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server_context(made).wrap_bio(up, down, server_side=True)
    theirs = trust.wrap_bio(down, up, server_hostname="localhost")
    for _ in range(4):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ours


def signed(folder: Path, *who: str, usages: tuple[str, ...]) -> tuple[bytes, bytes]:
    asked = ask(*who)
    return sign(parse(asked.pem), usages, validity_of(3600, NOW), folder), asked.key_pem


@pytest.fixture
def made(tmp_path: Path) -> Certificates:
    return ensure(tmp_path)


def test_the_common_name_is_the_user_and_organizations_are_groups(
    made: Certificates, tmp_path: Path
) -> None:
    pem, key = signed(tmp_path, "jane", "readers", "writers", usages=("client auth",))
    found = of_connection(connected(made, tmp_path, pem, key))
    assert found is not None
    assert (found.user.name, found.user.groups) == ("jane", ("readers", "writers", AUTHENTICATED))
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    shown = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    assert found.user.extra == {"authentication.kubernetes.io/credential-id": (shown,)}
    assert abs(found.ends_s - (NOW.timestamp() + 3600)) < 2


def test_a_client_without_a_certificate_may_connect(made: Certificates, tmp_path: Path) -> None:
    assert of_connection(connected(made, tmp_path, b"", b"")) is None
    assert of_connection(None) is None


def test_a_certificate_of_another_authority_ends_the_handshake(
    made: Certificates, tmp_path: Path
) -> None:
    validity = Validity(NOW - datetime.timedelta(days=1), NOW + datetime.timedelta(days=1))
    foreign = new_authority("localkube cluster CA", validity, key_usage=True)
    client = client_certificate(foreign, "root", validity)
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(made, tmp_path, certificate_pem(client.certificate), key_pem(client.key))


def test_a_servers_certificate_is_not_a_clients(made: Certificates, tmp_path: Path) -> None:
    own = (made.server_certificate.read_bytes(), made.server_key.read_bytes())
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(made, tmp_path, *own)


def test_the_front_proxys_certificate_opens_nothing_here(
    made: Certificates, tmp_path: Path
) -> None:
    own = (made.front_proxy_certificate.read_bytes(), made.front_proxy_key.read_bytes())
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(made, tmp_path, *own)


def _door() -> tuple[Authenticator, str]:
    static = StaticTokens()
    token = static.issue(ADMIN)
    accounts = ServiceAccountTokens(new_key(), recorded_objects())
    return Authenticator(static, accounts, recorded_authorizer(), lambda: 1000.0), token


def _request(ends_s: float, token: str = "") -> Request:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return Request("GET", "/api", headers=headers, certificate=ClientCertificate(JANE, ends_s))


def test_a_certificate_goes_before_a_token() -> None:
    door, token = _door()
    assert door.authenticate(_request(1001, token)) == JANE


def test_a_certificate_that_has_ended_meanwhile_counts_no_more() -> None:
    door, token = _door()
    assert door.authenticate(_request(999)) is None
    assert door.authenticate(_request(999, token)) == ADMIN


def test_whoever_has_a_certificate_may_be_somebody_else_only_if_allowed() -> None:
    door, _ = _door()
    request = _request(1001)
    request.headers = {"impersonate-user": "root"}
    with pytest.raises(Exception, match="cannot impersonate"):
        door.authenticate(request)
