"""Who sends a request: bearer tokens, and whoever the bearer impersonates.

There is no anonymous access, but for asking whether the server is up and of what version it is.
"""

import base64
import binascii
import time
from collections.abc import Callable, Sequence

from localkube.apiserver.request import Request, User
from localkube.apiserver.security.failed_logins import FailedLogins
from localkube.apiserver.security.identities import ANONYMOUS
from localkube.apiserver.security.impersonation import impersonated, is_wanted
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.security.service_account_tokens import (
    ISSUER,
    Bearer,
    ServiceAccountTokens,
)
from localkube.apiserver.security.tokens import StaticTokens, token_digest
from localkube.apiserver.status import too_many_requests

INVALID = "invalid bearer token"
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_PUBLIC_BELOW = tuple(f"{path}/" for path in _PUBLIC)
_TOO_OFTEN = "too many requests with bad credentials, please try again later"


class Authenticator:
    def __init__(
        self,
        static: StaticTokens,
        accounts: ServiceAccountTokens,
        authorizer: Authorizer,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._static = static
        self._accounts = accounts
        self._authorizer = authorizer
        self._now_s = now_s
        self._failed = FailedLogins()

    def authenticate(self, request: Request, peer: str = "") -> User | None:
        """The user that the request counts for; None if nobody may ask this unauthenticated.

        Raises ApiError: 429 for a peer that keeps failing, 400 and 403 for an impersonation that
        is not understood or not allowed.
        """
        token = bearer_token(request)
        if token is None:
            is_public = request.path in _PUBLIC or request.path.startswith(_PUBLIC_BELOW)
            return ANONYMOUS if is_public else None
        user = self._user_of(token, peer)
        if user is not None and is_wanted(request.headers):
            request.requester = user.name
            return impersonated(request.headers, user, self._authorizer)
        return user

    def review(self, token: str, audiences: Sequence[str]) -> Bearer | str:
        """For TokenReview: the user of a token, or why it has none."""
        user = self._static.find(token_digest(token))
        if user is not None:
            # Such a token is addressed to this server and to nobody else.
            if not audiences or ISSUER in audiences:
                return Bearer(user, (ISSUER,))
            return INVALID
        found = self._accounts.authenticate(token, self._now_s(), audiences or (ISSUER,))
        if isinstance(found, str):
            return f"[{INVALID}, {found}]" if found else INVALID
        return found

    def _user_of(self, token: str, peer: str) -> User | None:
        digest = token_digest(token)
        user = self._static.find(digest)
        if user is not None:
            return user
        now_s = self._now_s()
        # Known tokens are let in even then: whoever shares an address with a guesser goes on.
        if not self._accounts.is_known(digest) and self._failed.is_blocked(peer, now_s):
            raise too_many_requests(_TOO_OFTEN)
        found = self._accounts.authenticate_digest(digest, token, now_s)
        if isinstance(found, str):
            self._failed.record(peer, now_s)
            return None
        return found.user


def bearer_token(request: Request) -> str | None:
    """The token in the request; None if there is none."""
    words = request.headers.get("authorization", "").split(" ", 2)
    if len(words) > 1 and words[0].lower() == "bearer" and words[1]:
        return words[1]
    if request.headers.get("upgrade", "").lower() == "websocket":
        return _websocket_token(request.headers.get("sec-websocket-protocol", ""))
    return None


def _websocket_token(offered: str) -> str | None:
    """Browsers cannot set headers on a WebSocket; they offer the token as one of the protocols."""
    protocols = [each.strip() for each in offered.split(",")]
    shown = [each for each in protocols if each.startswith(_WEBSOCKET_TOKEN)]
    # Another protocol must be offered too: the server has to choose one, and not this.
    if len(shown) != 1 or len(protocols) == 1:
        return None
    encoded = shown[0].removeprefix(_WEBSOCKET_TOKEN)
    try:
        raw = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        return raw.decode() or None
    except (binascii.Error, ValueError):
        return None
