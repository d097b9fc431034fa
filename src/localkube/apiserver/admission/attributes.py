"""Attributes: one write as admission sees it; ClusterView: what it may look up meanwhile."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import User
from localkube.apiserver.status import ApiError, forbidden

_SUFFIX_LENGTH = 5  # of a generated name


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Attributes(msgspec.Struct, frozen=True):
    """`obj` is changed in place by whoever mutates; `old` and all else is only read."""

    operation: Operation
    kind: Kind
    subresource: str
    namespace: str
    name: str
    user: User | None
    obj: Obj | None  # None for DELETE
    old: Obj | None  # None for CREATE
    dry_run: bool
    options: Obj  # CreateOptions, UpdateOptions, DeleteOptions
    warnings: list[str]
    is_long: bool = False  # so much of it that it is looked at in a thread

    @property
    def created(self) -> Obj | None:
        """What is new; None for other writes, like what is POSTed to a subresource."""
        if self.operation is not Operation.CREATE or self.subresource:
            return None
        return self.obj


class ClusterView(Protocol):
    """Stored objects, which must not be changed."""

    def get(self, resource: str, namespace: str, name: str) -> Obj | None: ...

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        """In order of namespace and name; None: of all namespaces."""


class PatientView(ClusterView, Protocol):
    """On the event loop, where a long list must let others go first."""

    async def listed(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        """The same list until one of them changes, with the same objects but for those."""

    def selected(
        self, resource: str, namespace: str | None, wanted: Callable[[Mapping[str, str]], bool]
    ) -> AsyncIterator[Obj]:
        """Those whose labels are wanted, in the same order. None is kept: they may be large."""


# Why a write is refused; empty: it is not.
WriteCheck: TypeAlias = Callable[[Attributes, ClusterView], str]


def refusal(attributes: Attributes, why: str) -> ApiError:
    return forbidden(attributes.kind, _shown_name(attributes), why)


def _shown_name(attributes: Attributes) -> str:
    """Admission comes before names are drawn, so a generated one is shown by its prefix."""
    metadata = (attributes.obj or {}).get("metadata") or {}
    prefix = metadata.get("generateName")
    if attributes.operation is not Operation.CREATE or attributes.subresource or not prefix:
        return attributes.name or "Unknown"
    drawn = attributes.name.startswith(prefix)
    if not attributes.name or (drawn and len(attributes.name) == len(prefix) + _SUFFIX_LENGTH):
        return str(prefix)
    return attributes.name
