"""Certificates as the admission webhook and the API server of a local cluster build them."""

import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubeclient.certificates import (
    Issued,
    Validity,
    certificate_pem,
    key_pem,
    load_key,
    new_authority,
    new_key,
    server_certificate,
)

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
VALIDITY = Validity(NOW, NOW + datetime.timedelta(days=90))
Extensions = dict[type[x509.ExtensionType], bool]
HOSTS = ["webhook.kube-system.svc", "127.0.0.1", "::1"]


def extensions(certificate: x509.Certificate) -> Extensions:
    """The type of each extension, and whether it is critical."""
    return {type(each.value): each.critical for each in certificate.extensions}


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "key-usage"])
def pair(request: pytest.FixtureRequest) -> tuple[Issued, Issued, bool]:
    authority = new_authority("an authority", VALIDITY, key_usage=request.param)
    server = server_certificate(authority, HOSTS[0], HOSTS, VALIDITY, key_usage=request.param)
    return authority, server, request.param


def test_keys_are_of_the_curve_p_256(pair: tuple[Issued, Issued, bool]) -> None:
    for issued in pair[:2]:
        assert isinstance(issued.key.curve, ec.SECP256R1)
        assert issued.certificate.public_key() == issued.key.public_key()


def test_an_authority_may_sign_servers_but_no_further_authorities(
    pair: tuple[Issued, Issued, bool],
) -> None:
    found = pair[0].certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert found.critical
    assert found.value == x509.BasicConstraints(ca=True, path_length=0)


def test_extensions_are_exactly_these(pair: tuple[Issued, Issued, bool]) -> None:
    authority, server, key_usage = pair
    of_authority: Extensions = {x509.SubjectKeyIdentifier: False, x509.BasicConstraints: True}
    of_server: Extensions = {
        x509.ExtendedKeyUsage: False,
        x509.AuthorityKeyIdentifier: False,
        x509.SubjectAlternativeName: False,
    }
    if key_usage:
        of_server |= of_authority
        of_authority[x509.KeyUsage] = of_server[x509.KeyUsage] = True
    assert extensions(authority.certificate) == of_authority
    assert extensions(server.certificate) == of_server


def test_a_server_certificate_is_signed_by_its_authority(
    pair: tuple[Issued, Issued, bool],
) -> None:
    authority, server, _ = pair
    server.certificate.verify_directly_issued_by(authority.certificate)
    named = server.certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    assert named.value.key_identifier == own.value.digest


def test_hosts_are_written_as_names_and_as_addresses(pair: tuple[Issued, Issued, bool]) -> None:
    found = pair[1].certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert found.value.get_values_for_type(x509.DNSName) == HOSTS[:1]
    addresses = [ipaddress.ip_address(host) for host in HOSTS[1:]]
    assert found.value.get_values_for_type(x509.IPAddress) == addresses


def test_validity_is_as_given(pair: tuple[Issued, Issued, bool]) -> None:
    for issued in pair[:2]:
        assert issued.certificate.not_valid_before_utc == VALIDITY.begins
        assert issued.certificate.not_valid_after_utc == VALIDITY.ends


def test_a_common_name_is_cut_at_the_limit_of_x_509() -> None:
    authority = new_authority("an authority", VALIDITY, key_usage=False)
    host = f"{'a' * 60}.example.com"
    server = server_certificate(authority, host, [host], VALIDITY, key_usage=False)
    assert server.certificate.subject.rfc4514_string() == f"CN={host[:64]}"


def test_a_host_that_no_certificate_can_hold_is_refused() -> None:
    authority = new_authority("an authority", VALIDITY, key_usage=False)
    with pytest.raises(ValueError, match="A-label"):
        server_certificate(authority, "x", ["schlüssel.example"], VALIDITY, key_usage=False)


def test_a_key_survives_its_pem() -> None:
    key = new_key()
    assert load_key(key_pem(key)).private_numbers() == key.private_numbers()


def test_a_key_of_another_kind_is_refused() -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = other.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(ValueError, match="not of an elliptic curve"):
        load_key(pem)


def test_an_authority_without_a_key_identifier_can_sign() -> None:
    """One that somebody else made may lack it."""
    key = new_key()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "from elsewhere")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(VALIDITY.begins)
        .not_valid_after(VALIDITY.ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    server = server_certificate(
        Issued(certificate, key), "x", ["127.0.0.1"], VALIDITY, key_usage=True
    )
    server.certificate.verify_directly_issued_by(certificate)


def test_the_pems_can_be_loaded_by_tls(pair: tuple[Issued, Issued, bool], tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    file.write_bytes(key_pem(pair[1].key) + certificate_pem(pair[1].certificate))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
