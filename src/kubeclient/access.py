"""Access: the address of an API server, the CA to trust, and the credentials to use.

Credentials expire while a program runs: the token of a service account is renewed in its file, that
of a plugin expires. So the authorization is read again, at most once a minute.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

_REMEMBERED_S = 60.0


class NoAccess(Exception):
    """No usable access to a cluster; the text says what was looked for and what to do."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Paths of PEM files."""

    certificate: str
    key: str


# Returns the value of the Authorization header; empty: no header.
Authorization = Callable[[], Awaitable[str]]


async def nobody() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Access:
    url: str  # https://host:port, perhaps with a path; no slash at the end
    tls: ssl.SSLContext
    authorization: Authorization = nobody
    server_name: str = ""  # name in the certificate, if it is not the host of the URL
    proxy: str = ""  # http://host:port, as the kubeconfig or the environment says


def trust(
    ca_pem: str = "", *, ca_file: str = "", client: ClientCertificate | None = None
) -> ssl.SSLContext:
    """Trust the given CA; without one, those of the machine. Raises NoAccess."""
    what = f"certificate-authority {ca_file or 'data'}"
    try:
        context = ssl.create_default_context(cafile=ca_file or None, cadata=ca_pem or None)
        if client is not None:
            what = f"client-certificate {client.certificate} and its client-key"
            context.load_cert_chain(client.certificate, client.key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise NoAccess(
            f"The certificates for the API server cannot be used: {what}: wanted PEM, "
            f"found: {tls_words(error)}. Correct the kubeconfig, or name another."
        ) from error
    # Python 3.13 and later refuse CAs that lack an extension of RFC 5280. Many clusters have such
    # CAs, and client-go accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def tls_words(error: BaseException) -> str:
    """The cause, without the library's name and line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "").replace("_", " ").lower()
        return reason if reason and "lib" not in reason.split() else "something else"
    if isinstance(error, OSError):
        return error.strerror or "something else"
    return "something else"


def trust_anyone(client: ClientCertificate | None = None) -> ssl.SSLContext:
    """For insecure-skip-tls-verify."""
    context = trust(client=client)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Remembered:
    """Caches an authorization for a minute; only one caller at a time renews it."""

    def __init__(self, ask: Authorization, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._clock = clock
        self._known = ""
        self._until = float("-inf")
        self._asking = asyncio.Lock()

    async def __call__(self) -> str:
        if self._clock() < self._until:
            return self._known
        async with self._asking:
            # Asked again: another caller may have renewed it while this one waited for the lock.
            if self._clock() >= self._until:
                self._known = await self._ask()
                self._until = self._clock() + _REMEMBERED_S
        return self._known


def token_in(file: Path) -> Authorization:
    """A token that is renewed in its file by others."""

    def read() -> str:
        try:
            return f"Bearer {file.read_text(encoding='ascii').strip()}"
        except OSError as error:
            words = f"The token in {file} cannot be read: {error.strerror}."
            raise NoAccess(f"{words} The kubeconfig names the file as tokenFile.") from error
        except UnicodeDecodeError as error:
            raise NoAccess(f"The token in {file} cannot be read: it is not ASCII.") from error

    async def bearer() -> str:
        return read()

    return Remembered(bearer, time.monotonic)
