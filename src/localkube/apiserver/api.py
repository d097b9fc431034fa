"""Api: what every handler works with. Built once, by `server.py`; passed, never global."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kubeclient.objects import Obj
from kubeclient.times import stamp
from localkube.apiserver.admission.chain import Admission
from localkube.apiserver.aggregation import Aggregation
from localkube.apiserver.conversion.convert import Conversions
from localkube.apiserver.custom import CustomKinds
from localkube.apiserver.discovery import Discovery
from localkube.apiserver.kinds import Kind, Kinds
from localkube.apiserver.large_writes import LargeWrites
from localkube.apiserver.long_work import LongWork
from localkube.apiserver.metrics import Metrics
from localkube.apiserver.openapi import OpenApi
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.schema.node import Schema
from localkube.apiserver.security.authentication import Authenticator
from localkube.apiserver.security.in_flight import InFlight
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.service_addresses import ServiceAddresses
from localkube.apiserver.store.store import Store
from localkube.health import Health
from localkube.node_streams import NodeStreams


class Nodes(Protocol):
    """Where a node's kubelet can be asked for logs and streams, and what its pods use."""

    def streams(self, node: str) -> NodeStreams | None: ...

    def node_usage(self) -> dict[str, Obj]: ...

    def pod_usage(self) -> dict[tuple[str, str], list[Obj]]: ...


class Stored:
    """The few questions that security asks of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def node_of_pod(self, namespace: str, name: str) -> str | None:
        record = self._store.get("pods", namespace, name)
        return None if record is None else record.fields[0]

    def uid(self, resource: str, namespace: str, name: str) -> str | None:
        record = self._store.get(resource, namespace, name)
        return None if record is None else record.uid

    def pods_on(self, node: str) -> Iterable[Obj]:
        return (record.obj() for record in self._store.pods_on(node))

    def spec_of(self, resource: str, name: str) -> Obj:
        record = self._store.get(resource, "", name)
        return {} if record is None else record.obj().get("spec") or {}


@dataclass(frozen=True, slots=True)
class Api:
    kinds: Kinds
    store: Store
    custom: CustomKinds
    conversions: Conversions
    addresses: ServiceAddresses
    admission: Admission
    aggregation: Aggregation
    authorizer: Authorizer
    authenticator: Authenticator
    account_tokens: ServiceAccountTokens
    stored: Stored
    discovery: Discovery
    openapi: OpenApi
    in_flight: InFlight
    metrics: Metrics
    nodes: Nodes
    long_work: LongWork
    large_writes: LargeWrites
    health: Health = field(default_factory=Health)  # of the programs around the server
    clock: Callable[[], float] = time.time

    def schema(self, kind: Kind) -> Schema:
        own = self.custom.schema(kind) if kind.custom else None
        return own or schema_of(kind.group, kind.version, kind.kind)

    def stamp(self) -> str:
        """The time now, as metav1.Time writes it."""
        return stamp(self.clock())
