"""Series: what history is kept of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    CLUSTER = "cluster"  # the name is empty
    POOL = "pool"
    NODE = "node"
    CARD = "card"  # by uuid
    NAMESPACE = "namespace"
    USER = "user"
    WORKLOAD = "workload"  # NAMESPACE/KIND/NAME, such as research/Deployment/trainer
    CONTAINER = "container"  # NAMESPACE/POD/CONTAINER


# How many of each kind have a history. The ones that ended longest ago fall out first; what they
# did is still in the sums of their workload, user, namespace and so on.
MOST = {
    Kind.CLUSTER: 1,
    Kind.POOL: 1_000,
    Kind.NODE: 10_000,
    Kind.CARD: 80_000,
    Kind.NAMESPACE: 5_000,
    Kind.USER: 5_000,
    Kind.WORKLOAD: 20_000,
    Kind.CONTAINER: 60_000,
}

Info = Mapping[str, str | int]


class Key(NamedTuple):
    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Series:
    kind: Kind
    name: str
    first_s: int  # since when it is known, in seconds since 1970
    last_s: int  # when something was last written about it; of those that go on, up to an hour old
    active_s: int | None = None  # when it last used a card, as far as somebody told
    info: Info = field(default_factory=dict)  # what is known beside: node, owner, what it asks for
