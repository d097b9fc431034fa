import asyncio
import contextlib
import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from gpupool.admission.authority import (
    AUTHORITY_LIFE,
    SERVER_LIFE,
    Authority,
    BadAuthority,
    is_due,
    load_certificate,
    new_authority,
    server_context,
    shared_authority,
)
from kubeclient.client import Kube
from kubeclient.resources import SECRETS
from tests.admission.server import api_server

NOW = datetime.datetime.now(datetime.UTC)
YEARS = datetime.timedelta(days=365)


async def handshake(context: ssl.SSLContext, bundle_pem: bytes, name: str) -> x509.Certificate:
    """The certificate that a client sees which trusts the bundle."""
    server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        trust = ssl.create_default_context(cadata=bundle_pem.decode())
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trust, server_hostname=name
        )
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
    return x509.load_der_x509_certificate(shown)


@pytest.mark.parametrize("name", ["127.0.0.1", "gpupool-admission.kube-system.svc"])
async def test_a_client_that_trusts_the_authority_trusts_the_server(name: str) -> None:
    authority, context = new_authority(NOW), server_context()
    made = load_certificate(context, authority, [name], NOW)
    assert await handshake(context, authority.bundle_pem, name) == made


async def test_a_new_certificate_is_shown_without_a_new_server() -> None:
    authority, context = new_authority(NOW), server_context()
    load_certificate(context, authority, ["127.0.0.1"], NOW)
    second = load_certificate(context, authority, ["127.0.0.1"], NOW)
    assert await handshake(context, authority.bundle_pem, "127.0.0.1") == second


async def test_a_predecessor_is_still_trusted() -> None:
    old, context = new_authority(NOW), server_context()
    new = new_authority(NOW, old.bundle_pem)
    made = load_certificate(context, old, ["127.0.0.1"], NOW)
    assert await handshake(context, new.bundle_pem, "127.0.0.1") == made


def test_certificates_are_due_with_a_third_of_their_life_left() -> None:
    made = load_certificate(server_context(), new_authority(NOW), ["127.0.0.1"], NOW)
    assert not is_due(made, NOW + SERVER_LIFE * 0.6)
    assert is_due(made, NOW + SERVER_LIFE * 0.7)


async def authority_at(kube: Kube, now: datetime.datetime) -> Authority:
    return await shared_authority(kube, "kube-system", "gpupool-admission", now)


async def test_replicas_that_start_together_share_one_authority(tmp_path: Path) -> None:
    async with api_server(tmp_path) as kube:
        first, second = await asyncio.gather(authority_at(kube, NOW), authority_at(kube, NOW))
        assert first.bundle_pem == second.bundle_pem


async def test_an_authority_is_replaced_in_time_and_stays_trusted(tmp_path: Path) -> None:
    async with api_server(tmp_path) as kube:
        old = await authority_at(kube, NOW)
        assert (await authority_at(kube, NOW + YEARS)).bundle_pem == old.bundle_pem
        later = NOW + AUTHORITY_LIFE * 0.7
        new, same = await asyncio.gather(authority_at(kube, later), authority_at(kube, later))
        assert new.bundle_pem == same.bundle_pem
        assert new.certificate != old.certificate
        assert old.bundle_pem in new.bundle_pem


async def test_a_secret_without_an_authority_is_named(tmp_path: Path) -> None:
    async with api_server(tmp_path) as kube:
        metadata = {"name": "gpupool-admission", "namespace": "kube-system"}
        await kube.create(SECRETS, {"metadata": metadata, "data": {"tls.key": "eA=="}})
        with pytest.raises(BadAuthority, match="secret kube-system/gpupool-admission does not"):
            await authority_at(kube, NOW)
