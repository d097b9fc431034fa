"""Makes keys and certificates (ECDSA P-256). Bad input is a ValueError."""

import datetime
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS = 3650
SERVER_DAYS = 365
# A clock that is set back a little must not make the cluster unreachable.
_BACKDATED = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Made:
    files: dict[str, bytes]
    not_before_s: int
    not_after_s: int  # of whichever ends first


def renew(found: Mapping[str, bytes], names: list[str], *, renew_s: int) -> Made:
    """A new server certificate; the authority and the service accounts' key stay if there are any.

    An authority that ends within `renew_s` is replaced too.
    """
    ca, ca_key = _authority(found, datetime.timedelta(seconds=renew_s))
    key = ec.generate_private_key(ec.SECP256R1())
    server = _server_certificate(ca, ca_key, key, names)
    account_key = _account_key(found.get("sa.key"))
    ca_pem = ca.public_bytes(serialization.Encoding.PEM)
    files = {
        "ca.crt": ca_pem,
        "ca.key": _pem(ca_key),
        "server.crt": server.public_bytes(serialization.Encoding.PEM) + ca_pem,
        "server.key": _pem(key),
        "sa.key": account_key,
    }
    ends = min(server.not_valid_after_utc, ca.not_valid_after_utc)
    begins = server.not_valid_before_utc
    return Made(files, int(begins.timestamp()), int(ends.timestamp()))


def _account_key(found: bytes | None) -> bytes:
    if not found:
        return _pem(ec.generate_private_key(ec.SECP256R1()))
    try:
        _load_key(found)
    except ValueError as error:
        raise ValueError(
            f"sa.key is no key ({error}); remove it to have a new one made, which ends all tokens "
            "of service accounts"
        ) from error
    return found


def _authority(
    found: Mapping[str, bytes], margin: datetime.timedelta
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    if "ca.crt" not in found and "ca.key" not in found:
        return _new_authority()
    for name in ("ca.crt", "ca.key"):
        if name not in found:
            raise ValueError(f"{name} is missing")
    certificate = x509.load_pem_x509_certificate(found["ca.crt"])
    key = _load_key(found["ca.key"])
    if certificate.public_key() != key.public_key():
        raise ValueError("ca.key is not the key of ca.crt")
    if certificate.not_valid_after_utc - _now() < margin:
        return _new_authority()
    return certificate, key


def _new_authority() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("localkube cluster CA")
    builder = _builder(name, name, key.public_key(), CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return builder.sign(key, hashes.SHA256()), key


def _server_certificate(
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    names: list[str],
) -> x509.Certificate:
    identifier = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
    builder = _builder(_name("kube-apiserver"), ca.subject, key.public_key(), SERVER_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(usage, critical=False)
    builder = builder.add_extension(authority, critical=False)
    builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(ca_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = _now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not of an elliptic curve")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
