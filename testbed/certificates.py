"""The certificates and keys of a throw-away control plane."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFE = datetime.timedelta(days=2)


def write_all(folder: Path) -> None:
    """Writes ca.crt and ca.key, and signed by it server.crt and server.key and those of the API
    server as a client of kubelets (client.crt, client.key); and the service accounts' sa.key."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("gpupool-testbed-ca")
    ca = _builder(ca_name, ca_name, ca_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    _write_certificate(folder / "ca.crt", ca.sign(ca_key, hashes.SHA256()))
    _write_key(folder / "ca.key", ca_key)

    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    server = _builder(_name("kube-apiserver"), ca_name, key).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )
    _write_certificate(folder / "server.crt", server.sign(ca_key, hashes.SHA256()))
    _write_key(folder / "server.key", key)
    client_key = ec.generate_private_key(ec.SECP256R1())
    client = _builder(_name("kube-apiserver", "system:masters"), ca_name, client_key).add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
    )
    _write_certificate(folder / "client.crt", client.sign(ca_key, hashes.SHA256()))
    _write_key(folder / "client.key", client_key)
    _write_key(folder / "sa.key", ec.generate_private_key(ec.SECP256R1()))


def _name(common: str, *groups: str) -> x509.Name:
    parts = [(NameOID.ORGANIZATION_NAME, group) for group in groups]
    parts.append((NameOID.COMMON_NAME, common))
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour back, so that a clock which was just set does not make it invalid.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
    )


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
