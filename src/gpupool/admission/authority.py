"""The webhook's own certificate authority: made once, kept in a Secret, renewed in time.

All replicas share the authority, and each makes its own server certificate from it, in memory. When
an authority is replaced, its predecessor stays in the bundle that the API server trusts: replicas
show certificates of the old one until the bundle is registered (`identity.py`).
"""

import base64
import contextlib
import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeclient.client import Kube
from kubeclient.errors import AlreadyExists, Conflict, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import SECRETS

AUTHORITY_LIFE = datetime.timedelta(days=3650)
SERVER_LIFE = datetime.timedelta(days=90)
_BACKDATED = datetime.timedelta(minutes=5)  # for clocks that are behind
_PEM = serialization.Encoding.PEM


class BadAuthority(Exception):
    """The Secret holds something that cannot be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    bundle_pem: bytes  # its certificate, and its predecessor's


def is_due(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """With a third of its life left."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_after_utc - life / 3


def is_trusted(authority: x509.Certificate, bundle_pem: bytes) -> bool:
    return authority.public_bytes(_PEM) in bundle_pem


def new_authority(now: datetime.datetime, predecessor_pem: bytes = b"") -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpupool admission")])
    certificate = (
        _certificate(name, name, key.public_key(), now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        # Authorities have the same name; by this, theirs are told apart from their predecessor's.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key, certificate.public_bytes(_PEM) + predecessor_pem)


def server_context() -> ssl.SSLContext:
    """Without a certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load_certificate(
    context: ssl.SSLContext, authority: Authority, names: Sequence[str], now: datetime.datetime
) -> x509.Certificate:
    """A new one; whoever connects from now on sees it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _certificate(name, authority.certificate.subject, key.public_key(), now, SERVER_LIFE)
        .add_extension(issuer, critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(n) for n in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    # The library reads keys from files only; this one is gone before anybody connects.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(_key_pem(key) + certificate.public_bytes(_PEM))
        context.load_cert_chain(path)
    return certificate


async def shared_authority(
    kube: Kube, namespace: str, name: str, now: datetime.datetime
) -> Authority:
    """The one of all replicas. Raises BadAuthority, KubeError."""
    secret = await _found_or_made(kube, namespace, name, now)
    found = _authority(secret)
    if not is_due(found.certificate, now):
        return found
    successor = new_authority(now, found.certificate.public_bytes(_PEM))
    renewed = _secret(successor, namespace, name)
    renewed["metadata"]["resourceVersion"] = secret["metadata"]["resourceVersion"]
    try:
        await kube.update(SECRETS, renewed)
    except Conflict:  # another replica was faster
        return _authority(await kube.get(SECRETS, name, namespace))
    return successor


async def _found_or_made(kube: Kube, namespace: str, name: str, now: datetime.datetime) -> Obj:
    with contextlib.suppress(NotFound):
        return await kube.get(SECRETS, name, namespace)
    try:
        return await kube.create(SECRETS, _secret(new_authority(now), namespace, name))
    except AlreadyExists:  # another replica was faster
        return await kube.get(SECRETS, name, namespace)


def _secret(authority: Authority, namespace: str, name: str) -> Obj:
    data = {
        "tls.crt": authority.certificate.public_bytes(_PEM),
        "tls.key": _key_pem(authority.key),
        "ca.crt": authority.bundle_pem,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def _authority(secret: Obj) -> Authority:
    metadata = secret["metadata"]
    try:
        data = {key: base64.b64decode(text) for key, text in (secret.get("data") or {}).items()}
        key = serialization.load_pem_private_key(data["tls.key"], password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"a key of type {type(key).__name__}")
        certificate = x509.load_pem_x509_certificate(data["tls.crt"])
        return Authority(certificate, key, data["ca.crt"])
    except (KeyError, ValueError, TypeError) as error:
        where = f"{metadata['namespace']}/{metadata['name']}"
        raise BadAuthority(
            f"secret {where} does not hold a certificate authority ({error}); "
            "delete it, and a new one is made"
        ) from error


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
