"""TLS for servers that answer known callers only, and its files, which may change at any time.

A caller is known by a certificate of an authority that was made for this purpose. The certificate
is asked for and not demanded by TLS itself: on the same port the kubelet asks for health and
Prometheus for metrics, and neither has one. So `guard` decides by path.
"""

import contextlib
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from kubeclient.access import tls_words

log = logging.getLogger(__name__)

_LOOK_S = 1.0  # between two looks at the files
_TELL_S = 10.0  # between two lines of the log about callers that are not known
_UNKNOWN = (
    "wanted a client certificate of the authority in --client-ca; "
    "`gpupool scheduler config --client-cert FILE --client-key FILE` lets kube-scheduler show one"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class BadTls(Exception):
    """The files do not hold what TLS needs; the message names them."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    certificate: str
    key: str = ""  # empty: it is in the file of the certificate
    client_ca: str = ""  # empty: whoever connects is answered

    def stamps(self) -> tuple[tuple[int, ...], ...]:
        """Differ after each change. A mounted Secret changes by a link to another directory."""
        found = []
        for name in (self.certificate, self.key, self.client_ca):
            with contextlib.suppress(OSError):  # the loading says what is wrong
                state = Path(name).stat()
                found.append((state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns))
        return tuple(found)


class ServerTls:
    def __init__(self, files: TlsFiles, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises BadTls."""
        self._files = files
        self._clock = clock
        self._stamps = files.stamps()
        self._looked_s = self._told_s = clock()
        self._current = _context(files)
        # The server keeps the first context. Each handshake goes on with the newest: an authority
        # cannot be taken out of a context again.
        self.context = self._current
        self.context.sni_callback = self._take_newest
        self.context.sslobject_class = _telling(self._tell)

    @property
    def knows_callers(self) -> bool:
        return bool(self._files.client_ca)

    def guard(self, is_open: Callable[[str], bool]) -> Middleware:
        """A middleware that lets in callers with a certificate. `is_open`: of a path that anybody
        may ask."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if is_open(request.path):
                return await handler(request)
            if not request.get_extra_info("peercert"):
                # kube-scheduler shows its own log and events the status, and not the text.
                self._tell(_UNKNOWN, request.remote or "")
                return web.Response(status=401, text=f"{_UNKNOWN}\n")
            answer = await handler(request)
            if request.get_extra_info("ssl_object").context is not self._newest():
                # Its next request shows whether the authority of the caller is still trusted.
                answer.force_close()
            return answer

        return check

    def _tell(self, error: str, caller: str = "") -> None:
        if self._told_s <= (now := self._clock()):
            self._told_s = now + _TELL_S
            log.warning("caller not known", extra={"caller": caller, "error": error})

    def _take_newest(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._newest()

    def _newest(self) -> ssl.SSLContext:
        now = self._clock()
        if now < self._looked_s + _LOOK_S:
            return self._current
        self._looked_s = now
        stamps = self._files.stamps()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._current = _context(self._files)
            except BadTls as error:  # half written, perhaps: the next change is looked at again
                log.warning("TLS stays as it was", extra={"error": str(error)})
            else:
                log.info("TLS files read again")
        return self._current


def _telling(tell: Callable[[str], None]) -> type[ssl.SSLObject]:
    """Tells of certificates that are not accepted. asyncio closes such a connection without a word
    to either side, so that kube-scheduler sees no more than its end."""

    class Telling(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except ssl.SSLCertVerificationError as error:
                tell(f"its certificate is not accepted: {tls_words(error)}; {_UNKNOWN}")
                raise

    return Telling


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(files.certificate, files.key or None)
    except OSError as error:  # ssl.SSLError is an OSError: a bad certificate is reported here, too
        raise BadTls(
            f"--tls-cert {files.certificate} and --tls-key {files.key or files.certificate} cannot "
            f"be used: wanted a certificate and its key as PEM, found: {tls_words(error)}."
        ) from error
    if files.client_ca:
        try:
            context.load_verify_locations(files.client_ca)
        except OSError as error:
            raise BadTls(
                f"--client-ca {files.client_ca} cannot be used: wanted certificates of authorities "
                f"as PEM, found: {tls_words(error)}."
            ) from error
        context.verify_mode = ssl.CERT_OPTIONAL
        # No sessions are resumed: a resumed one would outlive the authority of its caller.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0
    return context
