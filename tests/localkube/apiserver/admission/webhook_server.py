"""A webhook over HTTPS on the loopback, with a certificate of its own."""

import base64
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubeclient.objects import Obj

Behave = Callable[[Obj], Any]


@dataclass
class WebhookServer:
    port: int = 0
    ca_bundle: str = ""
    reviews: list[Obj] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@cache
def key_pair(host: str = "hook.ns.svc") -> tuple[bytes, bytes]:
    """A certificate for this name and the loopback, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    today = datetime.datetime.now(datetime.UTC)
    names = [
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.DNSName(host),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def server_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with TemporaryDirectory() as folder:
        for name, pem in zip(("certificate", "key"), key_pair(), strict=True):
            (Path(folder) / name).write_bytes(pem)
        context.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    return context


@asynccontextmanager
async def serving(**paths: Behave) -> AsyncIterator[WebhookServer]:
    """Each path answers with what its function makes of the request of a review.

    A dict is the review's response, merged over `allowed: true`; a web.Response goes out as it is.
    """
    server = WebhookServer(ca_bundle=base64.b64encode(key_pair()[0]).decode())

    async def answer(request: web.Request) -> web.Response:
        document = await request.json()
        server.reviews.append(document)
        server.requests.append(request)
        made = paths[request.path.strip("/")](document["request"])
        if hasattr(made, "__await__"):
            made = await made
        if isinstance(made, web.Response):
            return made
        response = {"uid": document["request"]["uid"], "allowed": True} | made
        reply = web.json_response(
            {"apiVersion": document["apiVersion"], "kind": "AdmissionReview", "response": response}
        )
        reply.force_close()  # a connection that is kept would outlive this server
        return reply

    app = web.Application()
    app.router.add_post("/{path}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context())
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def patching(*operations: Obj) -> Obj:
    return {
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(operations)).decode(),
    }
