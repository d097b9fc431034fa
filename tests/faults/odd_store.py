"""A store with objects that no API server would take: every kind, without a spec, with a spec that
is none, with times before all times. Whoever reads them must not end because of them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from kubeclient.objects import Obj
from localkube.apiserver.security import certificates
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from localkube.names import Names
from tests.conformance.api_server import NoNodes
from tests.conformance.record.samples import SAMPLES

NAMESPACE = "odd"
# These are asked about each write of everybody: what is odd in them is everybody's matter.
_ASKED = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_YEAR_0 = "0000-01-01T00:00:00Z"
_STATUS: Obj = {
    "startTime": _YEAR_0,
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _YEAR_0}],
    "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": _YEAR_0}}}],
    "allocatable": {"cpu": "much", "memory": -1},
    "phase": 7,
}
_OWNERS = [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a", "controller": True}]


def odd_objects(label: str) -> Iterator[tuple[str, Obj]]:
    """Resource and object. `label`: of the nodes that get a kubelet."""
    uid = "00000000-0000-0000-0000-000000000000"
    space: Obj = {"metadata": {"name": NAMESPACE, "uid": uid, "creationTimestamp": _YEAR_0}}
    yield "namespaces", space | {"spec": {"finalizers": ["kubernetes"]}, "status": {}}
    seen = set[str]()
    for sample in SAMPLES:
        *_, plural = sample.path.split("/")
        group = sample.path.split("/")[2] if sample.path.startswith("/apis/") else ""
        resource = f"{plural}.{group}" if group else plural
        if plural in _ASKED or resource in seen:
            continue
        seen.add(resource)
        body = sample.body
        assert isinstance(body, dict)
        rest = {key: body[key] for key in body if key not in ("metadata", "status")}
        plain = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
        variants: list[Obj] = [
            plain,
            plain | {"spec": {}},
            plain | {"spec": "text", "status": []},
            plain | {"spec": {"nodeName": "node-0"}, "status": _STATUS},
            rest | {"status": _STATUS},
            rest | {"status": _STATUS, "ownerReferences": _OWNERS},
        ]
        for number, variant in enumerate(variants):
            metadata: Obj = {
                "name": f"odd-{number}",
                "uid": f"00000000-0000-0000-{len(seen):04}-{number:012}",
                "creationTimestamp": _YEAR_0,
                "labels": {"is": "odd"} | ({label: "nodes"} if plural == "nodes" else {}),
            }
            if "{ns}" in sample.path:
                metadata["namespace"] = NAMESPACE
            if owners := variant.pop("ownerReferences", None):
                metadata["ownerReferences"] = owners
            yield resource, variant | {"metadata": metadata}


def make_odd(directory: Path, names: Names) -> int:
    """Puts them into the store of a cluster that does not run; returns how many."""

    async def put() -> int:
        made = certificates.ensure(directory)
        server = build(directory, made, StaticTokens(), NoNodes())
        count = 0
        try:
            record = None
            for resource, obj in odd_objects(names.node_label):
                record = server.api.store.create(resource, obj)
                count += 1
            if record is not None:
                await server.api.store.durable(record)
        finally:
            server.close()
        return count

    return asyncio.run(put())
