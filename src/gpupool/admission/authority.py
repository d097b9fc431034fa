"""The webhook's own certificate authority: made once, kept in a Secret, renewed in time.

All replicas share the authority through the Secret. Each replica makes its own server certificate
from it and keeps that in memory only. When the authority is replaced, the old one stays in the
bundle that the API server trusts, because replicas go on showing certificates of the old authority
until the new bundle is registered (`identity.py`).
"""

import base64
import contextlib
import datetime
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from kubeclient import certificates
from kubeclient.certificates import Issued, Validity, certificate_pem, key_pem, load_key
from kubeclient.client import Kube
from kubeclient.errors import AlreadyExists, Conflict, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import SECRETS

AUTHORITY_LIFE = datetime.timedelta(days=3650)
SERVER_LIFE = datetime.timedelta(days=90)
_BACKDATED = datetime.timedelta(minutes=5)  # the API server's clock may be behind ours


class BadAuthority(Exception):
    """The Secret does not hold a usable authority; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    bundle_pem: bytes  # its own certificate, then that of the authority it replaced, if any


def is_due(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """Whether it is to be renewed: less than a third of its lifetime is left."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_after_utc - life / 3


def is_trusted(authority: x509.Certificate, bundle_pem: bytes) -> bool:
    # Bundles are joined from outputs of `certificate_pem`, so comparing bytes is enough.
    return certificate_pem(authority) in bundle_pem


def new_authority(now: datetime.datetime, predecessor_pem: bytes = b"") -> Authority:
    validity = Validity(now - _BACKDATED, now + AUTHORITY_LIFE)
    made = certificates.new_authority("gpupool admission", validity, key_usage=False)
    return Authority(*made, certificate_pem(made.certificate) + predecessor_pem)


def server_context() -> ssl.SSLContext:
    """A TLS context that has no certificate yet: `load_certificate` puts one into it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load_certificate(
    context: ssl.SSLContext, authority: Authority, names: Sequence[str], now: datetime.datetime
) -> x509.Certificate:
    """Makes a new server certificate, and shows it on all connections from now on."""
    issuer = Issued(authority.certificate, authority.key)
    validity = Validity(now - _BACKDATED, now + SERVER_LIFE)
    made = certificates.server_certificate(issuer, names[0], names, validity, key_usage=False)
    # The ssl module loads keys from files only. The file is deleted before anybody connects.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "server.pem"
        # Created with its mode before the key is in it: nobody else can read it in between.
        path.touch(mode=0o600)
        path.write_bytes(key_pem(made.key) + certificate_pem(made.certificate))
        # The server uses this context already. New connections get the new certificate, and open
        # ones stay.
        context.load_cert_chain(path)
    return made.certificate


async def shared_authority(
    kube: Kube, namespace: str, name: str, now: datetime.datetime
) -> Authority:
    """The authority that all replicas share: found in the Secret, made if there is none, replaced
    if it is due. Raises BadAuthority, KubeError."""
    secret = await _get_or_create_secret(kube, namespace, name, now)
    found = _authority(secret)
    if not is_due(found.certificate, now):
        return found
    # Only the direct predecessor stays trusted, or the bundle would grow with each renewal.
    successor = new_authority(now, certificate_pem(found.certificate))
    renewed = _secret(successor, namespace, name)
    # With the resourceVersion only one of the replicas that find it due can replace it.
    renewed["metadata"]["resourceVersion"] = secret["metadata"]["resourceVersion"]
    try:
        await kube.update(SECRETS, renewed)
    except Conflict:  # by another replica, just before us
        return _authority(await kube.get(SECRETS, name, namespace))
    return successor


async def _get_or_create_secret(
    kube: Kube, namespace: str, name: str, now: datetime.datetime
) -> Obj:
    with contextlib.suppress(NotFound):
        return await kube.get(SECRETS, name, namespace)
    try:
        return await kube.create(SECRETS, _secret(new_authority(now), namespace, name))
    except AlreadyExists:  # by another replica, just before us
        return await kube.get(SECRETS, name, namespace)


def _secret(authority: Authority, namespace: str, name: str) -> Obj:
    data = {
        "tls.crt": certificate_pem(authority.certificate),
        "tls.key": key_pem(authority.key),
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
        key = load_key(data["tls.key"])
        certificate = x509.load_pem_x509_certificate(data["tls.crt"])
        return Authority(certificate, key, data["ca.crt"])
    except (KeyError, ValueError, TypeError) as error:
        where = f"{metadata['namespace']}/{metadata['name']}"
        raise BadAuthority(
            f"secret {where} does not hold a certificate authority ({error}); "
            "delete it, and a new one is made"
        ) from error
