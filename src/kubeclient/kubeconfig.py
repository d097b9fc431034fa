"""A plain kubeconfig -> Access: one file, and credentials that are in it or in files it names.

A kubeconfig with any unknown field is not read here: wrong credentials are worse than none. Those
(plugins, providers, several files) are read by `credentials.py` through kubernetes-asyncio, which
takes seconds to import.
"""

import base64
import tempfile
from pathlib import Path

import msgspec

from kubeclient.access import (
    Access,
    Authorization,
    ClientCertificate,
    NoAccess,
    nobody,
    token_in,
    trust,
    trust_anyone,
)
from kubeclient.kubeconfig_parts import chosen_context, read_kubeconfig


class _Cluster(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    extensions: object = None


class _User(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    extensions: object = None


def plain_access(file: Path, context: str = "") -> Access | None:
    """None: it has fields that are not supported here. Raises NoAccess."""
    chosen = chosen_context([(str(file), read_kubeconfig(file))], context)
    try:
        cluster = msgspec.convert(chosen.cluster, _Cluster)
        user = msgspec.convert(chosen.user, _User)
    except msgspec.ValidationError:
        return None
    if not cluster.server.startswith("https://"):
        return None
    return _access(cluster, user, file.parent)


def _access(cluster: _Cluster, user: _User, base: Path) -> Access:
    # The files can be removed at once: the TLS context has read them.
    with tempfile.TemporaryDirectory(prefix="kubeclient-") as scratch:
        client = _client_certificate(user, base, Path(scratch))
        if cluster.insecure_skip_tls_verify:
            tls = trust_anyone(client)
        else:
            pem = _decoded(cluster.certificate_authority_data).decode("ascii", "replace")
            # Data goes before a file, as in client-go.
            named = cluster.certificate_authority
            tls = trust(pem, ca_file=str(base / named) if named and not pem else "", client=client)
    return Access(
        cluster.server.rstrip("/"), tls, _authorization(user, base), cluster.tls_server_name
    )


def _client_certificate(user: _User, base: Path, scratch: Path) -> ClientCertificate | None:
    """`ssl` reads certificates from files only."""
    paths = []
    for name, given, data in (
        ("certificate", user.client_certificate, user.client_certificate_data),
        ("key", user.client_key, user.client_key_data),
    ):
        path = base / given if given else scratch / name
        if data:
            path = scratch / name
            # Before the key is written: it must not be readable by others for a moment.
            path.touch(mode=0o600)
            path.write_bytes(_decoded(data))
        elif not given:
            return None
        paths.append(str(path))
    return ClientCertificate(*paths)


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        words = "wanted certificates and keys in base64, as kubectl writes them"
        raise NoAccess(f"A certificate in the kubeconfig cannot be read: {words}.") from error


def _authorization(user: _User, base: Path) -> Authorization:
    if user.token_file:
        return token_in(base / user.token_file)
    if not user.token:
        return nobody
    if not (user.token.isascii() and user.token.isprintable()):
        words = "wanted one line of letters, digits and signs, found other characters"
        raise NoAccess(f"The token in the kubeconfig cannot be sent: {words}. Copy it again.")

    async def bearer() -> str:
        return f"Bearer {user.token}"

    return bearer
