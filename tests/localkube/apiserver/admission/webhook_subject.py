"""Webhooks of a small cluster, under test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes
from localkube.apiserver.admission.chain import Admission
from localkube.apiserver.admission.policies import Policies
from localkube.apiserver.admission.quota import QuotaLedger
from localkube.apiserver.admission.webhook_client import WebhookClient
from localkube.apiserver.admission.webhooks import Round, Webhooks
from localkube.apiserver.conversion.convert import Conversions
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.judges import Judges
from localkube.apiserver.kinds import Kind, Kinds, builtin_kinds
from localkube.apiserver.security.access import ALLOWED
from localkube.apiserver.status import bad_request
from localkube.node_streams import NodeStreams
from tests.localkube.apiserver.admission.small_cluster import SmallCluster, a_cluster
from tests.localkube.apiserver.admission.webhook_server import WebhookServer, patching

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
LABELLED = patching({"op": "add", "path": "/metadata/labels", "value": {"m": "1"}})


def hook(server: WebhookServer, path: str, name: str = "a.b.c", **more: Any) -> Obj:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"{server.url}/{path}", "caBundle": server.ca_bundle},
        "rules": [rule],
        "timeoutSeconds": 10,
    } | more


def configure(cluster: SmallCluster, resource: str, *hooks: Obj, name: str = "h") -> None:
    cluster.put(resource, name, webhooks=list(hooks))


def config_map(name: str = "c", **more: Any) -> Obj:
    metadata = {"name": name, "namespace": "ns"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"a": "b"},
    } | more


class Subject:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.nodes: dict[str, NodeStreams] = {}
        self.judges = Judges()
        client = WebhookClient(self.nodes.get, self.judges.long_work)
        convert = Conversions(cluster, client).between
        kinds = Kinds(builtin_kinds())
        self.webhooks = Webhooks(cluster, kinds, complete, client, convert, self.judges)
        policies = Policies(cluster, kinds, convert, lambda *_: ALLOWED, self.judges)
        ledger = QuotaLedger(cluster, lambda: 0.0)
        self.admission = Admission(cluster, ledger, policies, self.webhooks, self.judges, {})

    async def mutate(self, attributes: Attributes) -> Round:
        return await self.webhooks.mutate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self.webhooks.validate(attributes)


def complete(thing: Obj, kind: Kind) -> None:
    """As much checking of types as these tests need."""
    if not isinstance(thing.get("data", {}), dict):
        raise bad_request("json: cannot unmarshal number into Go struct field ConfigMap.data")
    apply_defaults(thing, kind)


@asynccontextmanager
async def a_subject() -> AsyncIterator[Subject]:
    found = Subject(a_cluster())
    yield found
    await found.admission.close()
