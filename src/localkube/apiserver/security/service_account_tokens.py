"""Tokens of service accounts: signed, expiring, and good only while all that they name exists.

A token's signature is checked once and the outcome kept; its time and the objects that it is
bound to are checked at every use.
"""

import re
import uuid
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from localkube.apiserver.request import User
from localkube.apiserver.security.access import quoted
from localkube.apiserver.security.identities import (
    SERVICE_ACCOUNT_PREFIX,
    service_account_user,
)
from localkube.apiserver.security.tokens import token_digest

if TYPE_CHECKING:
    from localkube.apiserver.security.jws import Signer

ISSUER = "https://kubernetes.default.svc.cluster.local"
# The tolerance for clocks of kube-apiserver's JWT library.
_LEEWAY_S = 60
_MAX_TOKEN_CHARACTERS = 16 * 1024
_MAX_REMEMBERED = 4096
_LOOKS_SIGNED = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)

EXPIRED = "service account token has expired"
EARLY = "service account token is not valid yet"
INVALIDATED = "service account token has been invalidated"
UNVERIFIED = "go-jose/go-jose: error in cryptographic primitive"


class Uids(Protocol):
    def uid(self, resource: str, namespace: str, name: str) -> str | None:
        """The uid of an object ("pods", "default", "p"); None if there is none."""


class Ref(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str = ""


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token belongs to: the claim `kubernetes.io`."""

    namespace: str
    serviceaccount: Ref
    pod: Ref | None = None
    secret: Ref | None = None
    node: Ref | None = None
    warnafter: int | None = None


class Claims(msgspec.Struct, frozen=True):
    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: Binding = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


class Lifetime(NamedTuple):
    from_s: int
    seconds: int


class Bearer(NamedTuple):
    """Whom a token speaks for, and to whom it is addressed."""

    user: User
    audiences: tuple[str, ...]


class _Known(NamedTuple):
    claims: Claims
    user: User


class ServiceAccountTokens:
    def __init__(self, key_pem: bytes, uids: Uids) -> None:
        self._key_pem = key_pem
        self._uids = uids
        self._known: dict[bytes, _Known] = {}

    def warm_up(self) -> None:
        """Loads the library that signs. Slow (0.1 s), so best done in a thread after the start."""
        self._signer  # noqa: B018

    @cached_property
    def _signer(self) -> "Signer":
        from localkube.apiserver.security.jws import Signer

        return Signer(self._key_pem)

    def sign(self, binding: Binding, audiences: Sequence[str], lifetime: Lifetime) -> str:
        claims = Claims(
            aud=tuple(audiences),
            exp=lifetime.from_s + lifetime.seconds,
            iat=lifetime.from_s,
            iss=ISSUER,
            jti=str(uuid.uuid4()),
            kubernetes=binding,
            nbf=lifetime.from_s,
            sub=_user_name(binding),
        )
        return self._signer.sign(msgspec.json.encode(claims))

    def authenticate(
        self, token: str, now_s: float, audiences: Sequence[str] = (ISSUER,)
    ) -> Bearer | str:
        """The user of the token, or why it has none ("" if it is not one of our tokens at all)."""
        return self.authenticate_digest(token_digest(token), token, now_s, audiences)

    def authenticate_digest(
        self, digest: bytes, token: str, now_s: float, audiences: Sequence[str] = (ISSUER,)
    ) -> Bearer | str:
        """The same, for whoever has the digest already."""
        known = self._known.get(digest) or self._verified(token)
        if isinstance(known, str):
            return known
        why = self._refusal(known.claims, now_s)
        if why:
            self._known.pop(digest, None)
            return why
        # Only tokens with a good signature get here: garbage cannot push real ones out of the
        # cache.
        self._remember(digest, known)
        addressed = tuple(a for a in known.claims.aud if a in audiences)
        if not addressed:
            meant, wanted = _listed(known.claims.aud), _listed(audiences)
            return f"token audiences {meant} is invalid for the target audiences {wanted}"
        return Bearer(known.user, addressed)

    def _verified(self, token: str) -> _Known | str:
        if len(token) > _MAX_TOKEN_CHARACTERS or not _LOOKS_SIGNED.fullmatch(token):
            return ""
        from localkube.apiserver.security.jws import BadSignature

        try:
            claims = msgspec.json.decode(self._signer.verify(token), type=Claims)
        except (BadSignature, msgspec.DecodeError):
            return UNVERIFIED
        if claims.iss != ISSUER or claims.sub != _user_name(claims.kubernetes):
            return UNVERIFIED
        return _Known(claims, _user(claims))

    def _remember(self, digest: bytes, known: _Known) -> None:
        if digest not in self._known and len(self._known) >= _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]  # the oldest
        self._known[digest] = known

    def _refusal(self, claims: Claims, now_s: float) -> str:
        if now_s > claims.exp + _LEEWAY_S:
            return EXPIRED
        if now_s < claims.nbf - _LEEWAY_S:
            return EARLY
        bound = claims.kubernetes
        namespace, account = bound.namespace, bound.serviceaccount
        uid = self._uids.uid("serviceaccounts", namespace, account.name)
        if uid is None:
            return f"serviceaccounts {quoted(account.name)} not found"
        if uid != account.uid:
            return f"service account UID ({uid}) does not match claim ({account.uid})"
        for resource, place, ref in (
            ("pods", namespace, bound.pod),
            ("secrets", namespace, bound.secret),
            # A pod's node is information; the pod itself is the bond.
            ("nodes", "", bound.node if bound.pod is None else None),
        ):
            if ref is not None and self._uids.uid(resource, place, ref.name) != ref.uid:
                return INVALIDATED
        return ""


def _user_name(binding: Binding) -> str:
    return f"{SERVICE_ACCOUNT_PREFIX}{binding.namespace}:{binding.serviceaccount.name}"


def _user(claims: Claims) -> User:
    bound = claims.kubernetes
    named = {"credential-id": f"JTI={claims.jti}"}
    for kind, ref in (("node", bound.node), ("pod", bound.pod)):
        if ref is not None:
            named |= {f"{kind}-name": ref.name, f"{kind}-uid": ref.uid}
    extra = {f"authentication.kubernetes.io/{key}": (value,) for key, value in named.items()}
    account = bound.serviceaccount
    return service_account_user(bound.namespace, account.name, account.uid, extra)


def _listed(values: Sequence[str]) -> str:
    return "[" + " ".join(quoted(value) for value in values) + "]"
