"""Builds certificate authorities and certificates of servers and clients: ECDSA P-256, SHA-256.

Nothing is read or written here. How long a certificate is valid and when it is renewed is for the
program to say: the admission webhook and the API server of a local cluster have rules of their own.

Loading this module takes a noticeable part of a program's start; import it only where a certificate
is really parsed or built.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_PEM = serialization.Encoding.PEM
_LONGEST_COMMON_NAME = 64  # X.509's limit, in characters


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when a certificate is valid."""

    begins: datetime.datetime
    ends: datetime.datetime


class Issued(NamedTuple):
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def new_authority(name: str, validity: Validity, *, key_usage: bool) -> Issued:
    """A self-signed authority that may sign server certificates, but no further authorities.

    `key_usage`: also state in the certificate what its key may be used for.
    """
    key = new_key()
    subject = _name(name)
    # The subject key identifier tells authorities of the same name apart: during a rotation both
    # the old and the new one are in the bundle that clients trust.
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(subject, subject, key, validity)
        .add_extension(identifier, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    )
    if key_usage:
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return Issued(builder.sign(key, hashes.SHA256()), key)


def server_certificate(
    authority: Issued, name: str, hosts: Sequence[str], validity: Validity, *, key_usage: bool
) -> Issued:
    """A certificate with which a server is trusted under each of `hosts` (DNS names or addresses).

    `key_usage`: also state what its key may be used for, and that it signs nothing. Raises
    ValueError for a host that no certificate can hold.
    """
    key = new_key()
    builder = _builder(_name(name), authority.certificate.subject, key, validity)
    if key_usage:
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = (
            builder.add_extension(identifier, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
        )
    alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    builder = (
        builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .add_extension(authority_key_identifier(authority.certificate), critical=False)
        .add_extension(alternatives, critical=False)
    )
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def client_certificate(authority: Issued, name: str, validity: Validity) -> Issued:
    """A certificate with which a client is known by that name."""
    key = new_key()
    builder = (
        _builder(_name(name), authority.certificate.subject, key, validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
        .add_extension(authority_key_identifier(authority.certificate), critical=False)
    )
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError, TypeError."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"a key of type {type(key).__name__} is not of an elliptic curve")
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(_PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.begins)
        .not_valid_after(validity.ends)
    )


def authority_key_identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """The identifier that the authority's own certificate states. An authority that somebody else
    made may state none; then it is derived from the public key, as ours are."""
    try:
        stated = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = authority.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)  # its private key is one of ours
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(stated)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _name(common_name: str) -> x509.Name:
    shortened = common_name[:_LONGEST_COMMON_NAME]
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, shortened)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
