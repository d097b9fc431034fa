"""Who sends a request: client certificates, bearer tokens, and whoever those impersonate.

There is no anonymous access, but for asking whether the server is up and of what version it is.
"""

import base64
import binascii
import time
from collections.abc import Callable, Sequence

from localkube.apiserver.request import Request, User
from localkube.apiserver.security.identities import ANONYMOUS
from localkube.apiserver.security.impersonation import impersonated, is_wanted
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.security.service_account_tokens import (
    ISSUER,
    Bearer,
    ServiceAccountTokens,
)
from localkube.apiserver.security.tokens import StaticTokens, token_digest

INVALID = "invalid bearer token"
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_PUBLIC_BELOW = tuple(f"{path}/" for path in _PUBLIC)


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

    def authenticate(self, request: Request) -> User | None:
        """The user that the request counts for; None if nobody may ask this unauthenticated.

        Raises ApiError: 400 and 403 for an impersonation that is not understood or not allowed.
        """
        user = self._certified(request)
        if user is None:
            token = bearer_token(request)
            if token is None:
                is_public = request.path in _PUBLIC or request.path.startswith(_PUBLIC_BELOW)
                return ANONYMOUS if is_public else None
            user = self._user_of(token)
        if user is not None and is_wanted(request.headers):
            request.requester = user.name
            return impersonated(request.headers, user, self._authorizer)
        return user

    def _certified(self, request: Request) -> User | None:
        found = request.certificate
        return found.user if found is not None and self._now_s() < found.ends_s else None

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

    def _user_of(self, token: str) -> User | None:
        """Whoever fails is not slowed down: all clients come from this machine, so that one of them
        could shut the others out. A wrong token costs a tenth of a millisecond, less than the
        request around it; and nobody guesses 256 bits."""
        digest = token_digest(token)
        user = self._static.find(digest)
        if user is not None:
            return user
        found = self._accounts.authenticate_digest(digest, token, self._now_s())
        return None if isinstance(found, str) else found.user


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
