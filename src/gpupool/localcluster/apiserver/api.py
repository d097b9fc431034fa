"""Api: what every handler works with. Built once, by `server.py`; passed, never global."""

import datetime
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gpupool.contract.node_streams import NodeStreams
from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.admission.chain import Admission
from gpupool.localcluster.apiserver.custom import CustomKinds
from gpupool.localcluster.apiserver.discovery import Discovery
from gpupool.localcluster.apiserver.kinds import Kind, Kinds
from gpupool.localcluster.apiserver.openapi import OpenApi
from gpupool.localcluster.apiserver.schema.load import schema_of
from gpupool.localcluster.apiserver.schema.node import Schema
from gpupool.localcluster.apiserver.security.access import Security
from gpupool.localcluster.apiserver.security.limits import Limits
from gpupool.localcluster.apiserver.store.store import Store


class Nodes(Protocol):
    """Where a node's kubelet can be asked for logs and streams, and what its pods use."""

    def streams(self, node: str) -> NodeStreams | None: ...

    def node_usage(self) -> dict[str, Obj]: ...

    def pod_usage(self) -> dict[tuple[str, str], Obj]: ...


@dataclass(frozen=True, slots=True)
class Api:
    kinds: Kinds
    store: Store
    custom: CustomKinds
    admission: Admission
    security: Security
    discovery: Discovery
    openapi: OpenApi
    limits: Limits
    nodes: Nodes
    clock: Callable[[], float] = time.time

    def schema(self, kind: Kind) -> Schema:
        if kind.custom:
            return self.custom.version(kind).schema
        return schema_of(kind.group, kind.version, kind.kind)

    def stamp(self) -> str:
        """The time now, as metav1.Time writes it."""
        now = datetime.datetime.fromtimestamp(int(self.clock()), datetime.UTC)
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")
