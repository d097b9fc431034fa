"""Rights: what the visitor may do, asked of the API server by SelfSubjectAccessReview.

An answer is used for a minute: a page asks for the same few rights for every row, and a right that
was taken away ends within that time, also for what is in memory already.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.resources import Resource

SELF_REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
_GOOD_FOR_S = 60.0
_MOST_KNOWN = 2_000


class Right(NamedTuple):
    """`namespace`: empty: all of them, or a resource without namespaces."""

    verb: str
    resource: Resource
    namespace: str = ""
    subresource: str = ""

    @property
    def words(self) -> str:
        """As `kubectl auth can-i` takes it."""
        what = self.resource.plural
        if self.resource.group:
            what += f".{self.resource.group}"
        if self.subresource:
            what += f"/{self.subresource}"
        where = f" --namespace {self.namespace}" if self.namespace else ""
        if self.resource.namespaced and not self.namespace:
            where = " --all-namespaces"
        return f"{self.verb} {what}{where}"


class Denied(Exception):
    """The visitor lacks a right that a page cannot do without."""

    def __init__(self, right: Right) -> None:
        super().__init__(right.words)
        self.right = right


class SignedOut(Exception):
    """The API server does not know the visitor any more: the token has expired."""


@dataclass(slots=True)
class Rights:
    kube: Kube
    clock: Callable[[], float]
    _known: dict[Right, tuple[bool, float]] = field(default_factory=dict)

    async def has(self, right: Right) -> bool:
        """Raises KubeError, SignedOut."""
        known = self._known.get(right)
        if known is not None and known[1] > self.clock():
            return known[0]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        allowed = await self._ask(right)
        self._known[right] = (allowed, self.clock() + _GOOD_FOR_S)
        return allowed

    async def require(self, *rights: Right) -> None:
        """Raises Denied, KubeError, SignedOut."""
        for right in rights:
            if not await self.has(right):
                raise Denied(right)

    async def _ask(self, right: Right) -> bool:
        attributes = {
            "verb": right.verb,
            "group": right.resource.group,
            "version": right.resource.version,
            "resource": right.resource.plural,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }
        review = {
            "apiVersion": SELF_REVIEWS.api_version,
            "kind": SELF_REVIEWS.kind,
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = await self.kube.create(SELF_REVIEWS, review)
        except Refused as refused:
            if refused.code == 401:
                raise SignedOut from refused
            raise
        return bool((answer.get("status") or {}).get("allowed"))
