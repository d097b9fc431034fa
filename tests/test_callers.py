"""Servers that answer callers with a certificate of one authority, whose files change meanwhile."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gpupool.callers import BadTls, ServerTls, TlsFiles
from gpupool.health import Address, health_routes, serving
from kubeclient import certificates
from kubeclient.certificates import Issued, Validity, certificate_pem, key_pem

_NOW = datetime.now(UTC)
_VALID = Validity(_NOW - timedelta(hours=1), _NOW + timedelta(hours=1))
_PAST = Validity(_NOW - timedelta(hours=2), _NOW - timedelta(hours=1))


class Folder:
    """The files of a server and of its callers. `now` is the clock by which it looks at them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.now = 0.0
        self.server = certificates.new_authority("server", _VALID, key_usage=True)
        self.callers = certificates.new_authority("callers", _VALID, key_usage=True)
        self.serve_with(self.server)
        self.trust(self.callers)

    def file(self, name: str, content: bytes) -> str:
        """Replaced as the kubelet replaces the files of a Secret: never half written."""
        path = self._folder / name
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.replace(path)
        return str(path)

    def serve_with(self, authority: Issued) -> None:
        made = certificates.server_certificate(
            authority, "extender", ["127.0.0.1"], _VALID, key_usage=True
        )
        self.file("tls.crt", certificate_pem(made.certificate) + key_pem(made.key))

    def trust(self, *authorities: Issued) -> None:
        pem = b"".join(certificate_pem(each.certificate) for each in authorities)
        self.file("ca.crt", pem)

    def tls(self, client_ca: str = "ca.crt") -> ServerTls:
        files = TlsFiles(
            str(self._folder / "tls.crt"),
            client_ca=str(self._folder / client_ca if client_ca else ""),
        )
        return ServerTls(files, lambda: self.now)

    def caller(
        self, authority: Issued | None, validity: Validity = _VALID, server: Issued | None = None
    ) -> ssl.SSLContext:
        trusted = certificate_pem((server or self.server).certificate).decode()
        context = ssl.create_default_context(cadata=trusted)
        if authority is not None:
            made = certificates.client_certificate(authority, "kube-scheduler", validity)
            pem = certificate_pem(made.certificate) + key_pem(made.key)
            context.load_cert_chain(self.file("caller.pem", pem))
        return context


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@contextlib.asynccontextmanager
async def served(tls: ServerTls) -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="the ledger")

    app = web.Application()
    app.add_routes([web.get("/inspect", answer), *health_routes()])
    app.middlewares.append(tls.guard(lambda path: path == "/healthz"))
    async with serving(app, Address("127.0.0.1", 0), tls.context) as address:
        yield f"https://127.0.0.1:{address.port}"


async def asked(url: str, context: ssl.SSLContext) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(url) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_caller_with_a_certificate_of_the_authority_is_answered(folder: Folder) -> None:
    async with served(folder.tls()) as url:
        assert await asked(f"{url}/inspect", folder.caller(folder.callers)) == (200, "the ledger")


async def test_who_shows_none_reads_nothing_and_is_told_what_is_wanted(folder: Folder) -> None:
    async with served(folder.tls()) as url:
        status, text = await asked(f"{url}/inspect", folder.caller(None))
        assert status == 401
        assert "wanted a client certificate of the authority in --client-ca" in text


async def test_a_probe_needs_no_certificate(folder: Folder) -> None:
    async with served(folder.tls()) as url:
        assert (await asked(f"{url}/healthz", folder.caller(None)))[0] == 200


def _of_another(folder: Folder) -> ssl.SSLContext:
    return folder.caller(certificates.new_authority("callers", _VALID, key_usage=True))


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param(_of_another, id="another authority of the same name"),
        pytest.param(lambda folder: folder.caller(folder.server), id="the server's authority"),
        pytest.param(lambda folder: folder.caller(folder.callers, _PAST), id="one that has ended"),
    ],
)
async def test_other_certificates_get_no_connection_and_the_log_says_why(
    folder: Folder,
    caller: Callable[[Folder], ssl.SSLContext],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(folder.tls()) as url:
        with pytest.raises(aiohttp.ClientError):
            await asked(f"{url}/healthz", caller(folder))
    [told] = [each for each in caplog.records if each.msg == "caller not known"]
    assert str(vars(told)["error"]).startswith("its certificate is not accepted: ")


async def test_an_authority_that_is_taken_away_is_trusted_no_more(folder: Folder) -> None:
    """At once for new connections; an open one is answered once more, and closed."""
    successor = certificates.new_authority("callers", _VALID, key_usage=True)
    old, new = folder.caller(folder.callers), folder.caller(successor)
    connector = aiohttp.TCPConnector(ssl=old)
    async with served(folder.tls()) as url, aiohttp.ClientSession(connector=connector) as session:

        async def status() -> int:
            async with session.get(f"{url}/inspect") as answer:
                return answer.status

        assert await status() == 200
        folder.trust(successor, folder.callers)
        folder.now += 60
        assert (await asked(f"{url}/inspect", old))[0] == 200
        assert (await asked(f"{url}/inspect", new))[0] == 200
        folder.trust(successor)
        folder.now += 60
        assert (await asked(f"{url}/inspect", new))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await asked(f"{url}/healthz", old)
        assert await status() == 200
        with pytest.raises(aiohttp.ClientError):
            await status()


async def test_a_new_certificate_of_the_server_is_shown_without_a_restart(folder: Folder) -> None:
    successor = certificates.new_authority("server", _VALID, key_usage=True)
    async with served(folder.tls()) as url:
        folder.serve_with(successor)
        folder.now += 60
        caller = folder.caller(folder.callers, server=successor)
        assert (await asked(f"{url}/inspect", caller))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await asked(f"{url}/inspect", folder.caller(folder.callers))


@pytest.mark.parametrize("content", [b"", b"nonsense"])
async def test_files_that_cannot_be_used_change_nothing(
    folder: Folder, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(folder.tls()) as url:
        folder.file("ca.crt", content)
        folder.now += 60
        assert (await asked(f"{url}/inspect", folder.caller(folder.callers)))[0] == 200
        assert (await asked(f"{url}/inspect", folder.caller(None)))[0] == 401
    assert "TLS stays as it was" in caplog.text


async def test_a_flood_of_unknown_callers_is_logged_now_and_then(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    tls = folder.tls()
    async with served(tls) as url:
        for _ in range(5):
            await asked(f"{url}/inspect", folder.caller(None))
        assert caplog.text.count("caller not known") == 1
        folder.now += 60
        await asked(f"{url}/inspect", folder.caller(None))
        assert caplog.text.count("caller not known") == 2


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_an_authority_that_cannot_be_read_is_refused_by_name(
    folder: Folder, content: bytes
) -> None:
    file = folder.file("bad.crt", content)
    with pytest.raises(BadTls, match=f"--client-ca {file} cannot be used: wanted certificates"):
        folder.tls("bad.crt")


def test_without_an_authority_nobody_is_asked_for_a_certificate(folder: Folder) -> None:
    assert not folder.tls("").knows_callers
