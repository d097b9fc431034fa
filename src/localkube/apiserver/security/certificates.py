"""The cluster's keys and certificates in its data directory: made at the first start, then kept.

    ca.crt ca.key          our own authority, ten years; whoever trusts it trusts the cluster
    server.crt server.key  for the loopback and for kubernetes.default, one year
    sa.key                 signs the tokens of service accounts
    front-proxy-ca.crt     another authority, without its key: it has signed one certificate
    front-proxy-client.*   that one; API servers that this one forwards requests to know it by it
    certificates.json      a digest of all that, and until when it is good

The server's certificate is renewed at a start that finds it near its end or with other names.
Whatever parses or makes one is in certificate_making.py, and imported only when needed: loading
the library behind it takes longer than all the rest of a start.
"""

import hashlib
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from localkube.data_directory import read_private, write_private

_DAY_S = 86400
_RENEW_S = 60 * _DAY_S
FRONT_PROXY = "front-proxy-client"  # as whom it is known to those servers
_FRONT_PROXY = ("front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key")
_FILES = ("ca.crt", "ca.key", "server.crt", "server.key", "sa.key", *_FRONT_PROXY)
_NOTES = "certificates.json"
ALWAYS_NAMED = (
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class CertificateError(Exception):
    """A key or certificate that cannot be used. The message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Certificates:
    ca_pem: bytes
    service_account_key_pem: bytes
    server_certificate: Path
    server_key: Path
    front_proxy_ca_pem: bytes
    front_proxy_certificate: Path
    front_proxy_key: Path


class _Notes(msgspec.Struct, frozen=True):
    digest: str
    not_before_s: int
    not_after_s: int


def ensure(
    directory: Path, names: Iterable[str] = (), *, clock: Callable[[], float] = time.time
) -> Certificates:
    """Certificates for the loopback and `names` (host names or addresses), new where need be."""
    wanted = sorted({*ALWAYS_NAMED, *names})
    found = {name: data for name in _FILES if (data := read_private(directory / name)) is not None}
    notes = read_private(directory / _NOTES)
    if not _is_good(notes, found, wanted, clock()):
        # Without notes, the first start never came to its end: nobody has trusted its files yet.
        found = _renewed(directory, found if notes is not None else {}, wanted)
    return Certificates(
        ca_pem=found["ca.crt"],
        service_account_key_pem=found["sa.key"],
        server_certificate=directory / "server.crt",
        server_key=directory / "server.key",
        front_proxy_ca_pem=found["front-proxy-ca.crt"],
        front_proxy_certificate=directory / "front-proxy-client.crt",
        front_proxy_key=directory / "front-proxy-client.key",
    )


def server_context(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Clients of Kubernetes keep connections, not sessions: tickets would cost and never be used.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.load_cert_chain(certificates.server_certificate, certificates.server_key)
    # Clients may have a certificate of the cluster's authority. One of somebody else ends the
    # handshake.
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=certificates.ca_pem.decode())
    return context


def _is_good(
    written: bytes | None, found: Mapping[str, bytes], names: list[str], now_s: float
) -> bool:
    try:
        notes = msgspec.json.decode(written or b"null", type=_Notes)
    except msgspec.DecodeError:
        return False
    in_time = notes.not_before_s <= now_s < notes.not_after_s - _RENEW_S
    return in_time and len(found) == len(_FILES) and notes.digest == _digest(found, names)


def _renewed(directory: Path, found: Mapping[str, bytes], names: list[str]) -> dict[str, bytes]:
    from localkube.apiserver.security import certificate_making

    try:
        made = certificate_making.renew(found, names, renew_s=_RENEW_S)
    except ValueError as error:
        raise CertificateError(
            f"Cannot make certificates in {directory} for {', '.join(names)}: {error}. If ca.crt "
            "or ca.key is at fault, remove both to have new ones made; kubeconfigs that were "
            "handed out must then be fetched again."
        ) from error
    for name, data in made.files.items():
        if found.get(name) != data:
            write_private(directory / name, data)
    notes = _Notes(_digest(made.files, names), made.not_before_s, made.not_after_s)
    write_private(directory / _NOTES, msgspec.json.encode(notes))
    return made.files


def _digest(files: Mapping[str, bytes], names: list[str]) -> str:
    parts = [hashlib.sha256(files[name]).digest() for name in _FILES]
    return hashlib.sha256(b"".join(parts) + "\0".join(names).encode()).hexdigest()
