"""The webhook's authority is replaced while it serves, and no call fails."""

import asyncio
import base64
import contextlib
import itertools
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
from cryptography import x509

from gpupool.admission import authority, run
from gpupool.admission.identity import Identity
from kubeclient.client import Headers, Kube, Query, Transport
from kubeclient.objects import Obj
from kubeclient.resources import MUTATING_WEBHOOKS, PODS, SECRETS
from localkube.apiserver.security.identities import ADMIN
from tests.admission.pods import container, pod
from tests.admission.server import webhook, whole_server
from tests.admission.test_authority import handshake

Action = Callable[[], Awaitable[None]]


class SlowToRegister:
    """A transport that delays registrations; `meanwhile`, the API server calls the webhook."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.meanwhile: Action | None = None

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        if self.meanwhile is not None and "webhookconfigurations" in path:
            await self.meanwhile()
        return await self._transport.call(method, path, query=query, headers=headers, body=body)

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(path, query=query, headers=headers)


async def trusted_bundle(kube: Kube) -> str:
    found = await kube.get(MUTATING_WEBHOOKS, "gpupool-admission")
    return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()


async def shown_certificate(kube: Kube, port: int) -> x509.Certificate:
    """The certificate that a client sees which trusts the registered bundle. Raises SSLError."""
    trust = ssl.create_default_context(cadata=await trusted_bundle(kube))
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return x509.load_der_x509_certificate(shown)


async def authority_in_secret(kube: Kube) -> x509.Certificate:
    secret: Obj = await kube.get(SECRETS, "gpupool-admission", "kube-system")
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


def gpu_pod(name: str) -> Obj:
    made = pod(container("main", gpu=1))
    made["metadata"] = {"name": name, "namespace": "default"}
    made["spec"]["containers"][0]["image"] = "pause"
    return made


def _is_of(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    named = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    return named.value.key_identifier == own.value.digest


async def test_no_call_fails_while_the_authority_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_CHECK_S", 0.05)
    numbers = itertools.count()
    async with whole_server(tmp_path) as server:
        kube = server.client(ADMIN)
        slow = SlowToRegister(kube._transport)
        async with webhook(server, Kube(slow)) as port:
            old = await authority_in_secret(kube)

            calling = asyncio.Lock()

            async def call() -> None:
                async with calling:
                    await shown_certificate(kube, port)
                    await kube.create(PODS, gpu_pod(f"p{next(numbers)}"))

            async def is_replaced() -> bool:
                await asyncio.sleep(0.05)
                new = await authority_in_secret(kube)
                with contextlib.suppress(ssl.SSLError):  # we may be slower than a new one's round
                    return new != old and _is_of(await shown_certificate(kube, port), new)
                return False

            slow.meanwhile = call
            monkeypatch.setattr(authority, "is_due", lambda found, _now: found == old)
            async with asyncio.timeout(60):
                while not await is_replaced():
                    pass
                slow.meanwhile = None
                async with calling:  # a call that has begun ends before the webhook does
                    pass
    assert next(numbers) > 1


async def test_an_authority_that_was_deleted_is_replaced_at_once(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as server:
        kube = server.client(ADMIN)
        identity = Identity(kube, "kube-system", "gpupool-admission", ["127.0.0.1"])
        identity.registered(await identity.refresh())
        await kube.delete(SECRETS, "gpupool-admission", "kube-system")
        bundle_pem = await identity.refresh()
        shown = await handshake(identity.context, bundle_pem, "127.0.0.1")
        assert _is_of(shown, await authority_in_secret(kube))
