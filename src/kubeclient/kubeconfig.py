"""A plain kubeconfig -> Access: one file, and credentials that are in it or in files it names.

A kubeconfig with any unknown field is not read here: wrong credentials are worse than none. Those
(plugins, providers, several files) are read by `credentials.py` through kubernetes-asyncio, which
takes seconds to import.
"""

import base64
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

from kubeclient.access import (
    Access,
    Authorization,
    ClientCertificate,
    NoAccess,
    Remembered,
    nobody,
    trust,
    trust_anyone,
)
from kubeclient.objects import Obj

_MAX_BYTES = 4 * 1024**2


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


class _Named(msgspec.Struct, frozen=True):
    name: str
    cluster: Obj = {}
    user: Obj = {}
    context: Obj = {}


class _Config(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: tuple[_Named, ...]
    contexts: tuple[_Named, ...]
    current_context: str
    users: tuple[_Named, ...] = ()


def plain_access(file: Path, context: str = "") -> Access | None:
    """None: it has fields that are not supported here. Raises NoAccess."""
    config = _config(file)
    if config is None:
        return None
    chosen = _by_name(config.contexts, context or config.current_context)
    try:
        cluster = msgspec.convert(
            _by_name(config.clusters, chosen.context["cluster"]).cluster, _Cluster
        )
        user = _User()
        if chosen.context.get("user"):
            user = msgspec.convert(_by_name(config.users, chosen.context["user"]).user, _User)
    except (msgspec.ValidationError, KeyError):
        return None
    if not cluster.server.startswith("https://"):
        return None
    return _access(cluster, user, file.parent)


def _config(file: Path) -> _Config | None:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise NoAccess(f"The kubeconfig {file} cannot be read: {error.strerror}.") from error
    if len(text) > _MAX_BYTES:
        raise NoAccess(
            f"The kubeconfig {file} has {len(text)} bytes; at most {_MAX_BYTES} are read."
        )
    try:
        return msgspec.convert(yaml.load(text, yaml.CSafeLoader), _Config)
    except yaml.YAMLError as error:
        raise NoAccess(f"The kubeconfig {file} is not YAML: {error}") from error
    except msgspec.ValidationError:
        return None


def _by_name(entries: Sequence[_Named], name: str) -> _Named:
    for entry in entries:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in entries) or "nothing"
    raise NoAccess(f'The kubeconfig has no entry "{name}"; it has {known}.')


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
        raise NoAccess(f"A certificate in the kubeconfig is not base64: {error}") from error


def _authorization(user: _User, base: Path) -> Authorization:
    if user.token_file:
        return token_in(base / user.token_file)
    if not user.token:
        return nobody

    async def bearer() -> str:
        return f"Bearer {user.token}"

    return bearer


def token_in(file: Path) -> Authorization:
    """A token that is renewed in its file by others."""

    def read() -> str:
        try:
            return f"Bearer {file.read_text(encoding='ascii').strip()}"
        except (OSError, UnicodeDecodeError) as error:
            raise NoAccess(f"The token in {file} cannot be read: {error}") from error

    async def bearer() -> str:
        return read()

    return Remembered(bearer, time.monotonic)
