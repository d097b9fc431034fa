"""Signing in: with the printed key, as the owner of the console; or with a token, as its user."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from urllib.parse import quote

from gpupool.console.rights import Right, Rights, SignedOut
from gpupool.console.sessions import Sessions, is_key
from gpupool.console.sight import HistoryOf, Sights
from gpupool.console.words import word
from gpupool.contract.names import AGENT_NAMESPACE
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.resources import PODS, Resource

_WHO_AM_I = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
# Makes a client that authenticates with the given token of the cluster.
AsUser = Callable[[str], AbstractAsyncContextManager[Kube]]


@dataclass(frozen=True, slots=True)
class SignInMethods:
    clock: Callable[[], float]
    key: str = ""
    owner: Kube | None = None
    as_user: AsUser | None = None
    history_of: HistoryOf | None = None  # the past, for whoever has signed in
    agents: str = AGENT_NAMESPACE  # where the agents are asked


class NotSignedIn(Exception):
    """The text says why; `status` is that of HTTP."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status = status


async def by_key(methods: SignInMethods, sights: Sights, sessions: Sessions, key: str) -> str:
    """The cookie of a new session. Raises NotSignedIn."""
    if methods.owner is None or not is_key(key, methods.key):
        raise NotSignedIn(word("That is not the key of this console."), 403)
    return await _begin(sights, sessions, "key", methods.owner, AsyncExitStack())


async def by_token(methods: SignInMethods, sights: Sights, sessions: Sessions, token: str) -> str:
    """The cookie of a new session. Raises NotSignedIn, KubeError."""
    # The token becomes part of an HTTP header, where a line break would begin another header.
    if methods.as_user is None or not token.isascii() or not token.isprintable() or not token:
        raise NotSignedIn(word("That is not a token."), 400)
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(methods.as_user(token))
        try:
            # Asked once before the session begins: the API server, not the console, knows whether
            # a token is good. What it may see, each page finds out.
            await Rights(kube, methods.clock).has(Right("list", PODS))
        except SignedOut as refused:
            raise NotSignedIn(word("The cluster does not accept this token."), 403) from refused
        whose = f"token {hashlib.sha256(token.encode()).hexdigest()}"
        user = await _user(kube)
        # From here on the sight closes the client; before, whatever happens does.
        return await _begin(sights, sessions, whose, kube, stack.pop_all(), user)
    raise AssertionError("not reached")


async def _user(kube: Kube) -> str:
    """Whose the token is: one user may have hundreds. Empty: the API server does not tell, as those
    before Kubernetes 1.28."""
    review = {"apiVersion": _WHO_AM_I.api_version, "kind": _WHO_AM_I.kind}
    try:
        status = (await kube.create(_WHO_AM_I, review)).get("status") or {}
    except KubeError:
        return ""
    return str((status.get("userInfo") or {}).get("username") or "")


async def _begin(
    sights: Sights,
    sessions: Sessions,
    whose: str,
    kube: Kube,
    closing: AsyncExitStack,
    user: str = "",
) -> str:
    """`whose`: who has the same rights shares a sight. `user`: who has too many sessions."""
    sight = await sights.open(whose, kube, closing)
    leaving = AsyncExitStack()
    leaving.push_async_callback(sights.close, whose)
    return await sessions.begin(f"user {user}" if user else whose, sight.kube, sight, leaving)


def safe_path(wanted: str) -> str:
    """Where to go after signing in: only to pages of the console itself."""
    is_own = wanted.startswith("/") and not wanted.startswith(("//", "/\\", "/sign-"))
    return wanted if is_own and wanted.isprintable() else "/"


def sign_in_address(path: str) -> str:
    return f"/sign-in?next={quote(safe_path(path), safe='')}"
