"""Lets scrapers of metrics in, as the components of Kubernetes do.

The scraper shows a token. The API server says whose it is (TokenReview), and whether its owner may
`get` the path (SubjectAccessReview of a non-resource URL). Answers are kept for some seconds, as
Kubernetes keeps them: a scraper that asks often does not make the API server work. Health can be
asked without a token.
"""

import asyncio
import hashlib
import logging
import os
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Middleware

from kubeclient import certificates
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

log = logging.getLogger(__name__)

KEPT_S = 10.0  # as the delegated authentication of Kubernetes
MOST_KEPT = 256
# Of reviews at a time. Somebody without a token that is any good must not keep the API server busy.
_AT_A_TIME = 4
_WAITING = 32
_REVIEW_LIMIT_S = 10.0
_LONGEST_TOKEN = 16 * 1024
_HEALTH = ("/healthz", "/livez", "/readyz")
_YEARS = timedelta(days=3650)


class Verdict(NamedTuple):
    status: int  # of HTTP; 200: let in
    words: str = ""


_ALLOWED = Verdict(200)
_NO_TOKEN = Verdict(401, "wanted a bearer token of this cluster in the header Authorization")
_BUSY = Verdict(429, "too many unknown tokens are being reviewed; try again")
_UNREVIEWED = Verdict(503, "the API server does not say whose this token is; try again")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Reviewer:
    def __init__(self, kube: Kube, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        # By digest of the token and path: the verdict, and until when it is good.
        self._kept: OrderedDict[tuple[bytes, str], tuple[Verdict, float]] = OrderedDict()
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._waiting = 0

    async def verdict(self, headers: Mapping[str, str], path: str) -> Verdict:
        kind, _, token = headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN:
            return _NO_TOKEN
        # The token itself is not kept in memory for longer than the request.
        key = hashlib.sha256(token.encode("utf-8", "replace")).digest(), path
        known = self._kept.get(key)
        if known is not None and known[1] > self._clock():
            return known[0]
        if self._waiting >= _WAITING:
            return _BUSY
        self._waiting += 1
        try:
            async with self._turns, asyncio.timeout(_REVIEW_LIMIT_S):
                found = await self._review(token, path)
        except (KubeError, TimeoutError) as error:
            log.warning("scraper not reviewed", extra={"error": str(error)})
            return _UNREVIEWED
        finally:
            self._waiting -= 1
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[bytes, str], verdict: Verdict) -> None:
        self._kept[key] = verdict, self._clock() + KEPT_S
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    async def _review(self, token: str, path: str) -> Verdict:
        """Raises KubeError."""
        status = await self._status(TOKEN_REVIEWS, {"token": token})
        if not status.get("authenticated"):
            return _NO_TOKEN
        user = status.get("user") or {}
        asked = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        if (await self._status(SUBJECT_ACCESS_REVIEWS, asked)).get("allowed"):
            return _ALLOWED
        who = user.get("username", "")
        return Verdict(403, f"{who} may not get {path}: bind it to the ClusterRole gpupool:metrics")

    async def _status(self, resource: Any, spec: dict[str, object]) -> Mapping[str, Any]:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        answer = await self._kube.create(resource, body)
        status: Mapping[str, Any] = answer.get("status") or {}
        return status


def is_health(path: str) -> bool:
    return path in _HEALTH


def guard(reviewer: Reviewer, is_open: Callable[[str], bool] = is_health) -> Middleware:
    """A middleware that lets in whom the cluster lets in. `is_open`: of a path that anybody may
    ask."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_open(request.path):
            verdict = await reviewer.verdict(request.headers, request.path)
            if verdict.status != 200:
                headers = {"WWW-Authenticate": "Bearer"} if verdict.status == 401 else {}
                text = f"{verdict.words}\n"
                return web.Response(status=verdict.status, text=text, headers=headers)
        return await handler(request)

    return check


def own_tls(name: str) -> ssl.SSLContext:
    """With a certificate that nobody has signed, as the components of Kubernetes make it when they
    are given none. It keeps others from listening; it does not prove to the scraper who we are."""
    now = datetime.now(UTC)
    validity = certificates.Validity(now - timedelta(hours=1), now + _YEARS)
    authority = certificates.new_authority(f"{name}-ca", validity, key_usage=True)
    made = certificates.server_certificate(authority, name, [name], validity, key_usage=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # Python reads certificates from files only. This one is in memory, and has no name.
    file = os.memfd_create("tls", os.MFD_CLOEXEC)
    try:
        pem = certificates.certificate_pem(made.certificate) + certificates.key_pem(made.key)
        os.write(file, pem)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context
