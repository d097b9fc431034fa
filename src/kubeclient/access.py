"""Access: where an API server is, whom to trust there, and as whom to speak.

Credentials grow old while a program runs: a service account's token is renewed in its file, a
plugin's has an end. So the authorization is asked for anew, and remembered for a minute.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_REMEMBERED_S = 60.0


class NoAccess(Exception):
    """There is no usable way to a cluster; the text says what was looked for and what to do."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Paths, as `ssl` wants them."""

    certificate: str
    key: str


# The value of the Authorization header; empty: there is none.
Authorization = Callable[[], Awaitable[str]]


async def nobody() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Access:
    url: str  # https://host:port, perhaps with a path; no slash at the end
    tls: ssl.SSLContext
    authorization: Authorization = nobody
    server_name: str = ""  # what the certificate is for, where that is not the host of the URL
    proxy: str = ""


def trust(
    ca_pem: str = "", *, ca_file: str = "", client: ClientCertificate | None = None
) -> ssl.SSLContext:
    """Trusts the given authority; without one, those of the machine. Raises NoAccess."""
    try:
        context = ssl.create_default_context(cafile=ca_file or None, cadata=ca_pem or None)
        if client is not None:
            context.load_cert_chain(client.certificate, client.key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise NoAccess(f"The certificates for the API server cannot be used: {error}") from error
    # From 3.13 on Python refuses authorities without every extension of RFC 5280. Many clusters
    # have such; Kubernetes' own client takes them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def trust_anyone(client: ClientCertificate | None = None) -> ssl.SSLContext:
    """For insecure-skip-tls-verify."""
    context = trust(client=client)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Remembered:
    """An authorization that is asked for at most once a minute, by one caller at a time."""

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
            if self._clock() >= self._until:
                self._known = await self._ask()
                self._until = self._clock() + _REMEMBERED_S
        return self._known
