"""What a thief of an agent's token would try on nodes, and what the agent itself has to do."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

MINE, OTHER = "mine", "other"
_OWN_NODE = "only the node that its pod runs on"
_READY = '{"type": "Ready", "status": "False"}'
_PROBLEM = '{"type": "GpuProblem", "status": "True", "reason": "r", "message": "m"}'


class Change(NamedTuple):
    node: str  # that of the token, or another one
    patch: str
    words: str = ""  # of the refusal; empty: it is allowed
    subresource: str = ""


_STATUS = "/status"

CHANGES = {
    "a label of the agent": Change(
        MINE, '{"metadata": {"labels": {"aliyun.accelerator/nvidia_count": "8"}}}'
    ),
    "a label of feature discovery": Change(
        MINE, '{"metadata": {"labels": {"nvidia.com/gpu.product": "T4"}}}'
    ),
    "the inventory": Change(MINE, '{"metadata": {"annotations": {"gpupool.io/inventory": "{}"}}}'),
    "the condition of the cards": Change(
        MINE, f'{{"status": {{"conditions": [{_PROBLEM}]}}}}', subresource=_STATUS
    ),
    "an order that was carried out": Change(
        MINE, '{"metadata": {"annotations": {"gpupool.io/cleared-cards": null}}}'
    ),
    "a label of the agent on another node": Change(
        OTHER, '{"metadata": {"labels": {"aliyun.accelerator/nvidia_count": "8"}}}', _OWN_NODE
    ),
    "the condition of another node": Change(
        OTHER, f'{{"status": {{"conditions": [{_PROBLEM}]}}}}', _OWN_NODE, _STATUS
    ),
    "unschedulable": Change(MINE, '{"spec": {"unschedulable": true}}', "spec of nodes"),
    "a taint": Change(
        MINE, '{"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}', "spec of nodes"
    ),
    "a label of the pool": Change(
        MINE, '{"metadata": {"labels": {"cgpu": "false"}}}', "these labels of nodes: cgpu"
    ),
    "a label of the pool that goes": Change(
        MINE, '{"metadata": {"labels": {"zone": null}}}', "these labels of nodes: zone"
    ),
    "a role": Change(
        MINE,
        '{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}',
        "node-role.kubernetes.io/control-plane",
    ),
    "a label through the status": Change(
        MINE, '{"metadata": {"labels": {"cgpu": "false"}}}', "these labels", _STATUS
    ),
    "all labels": Change(MINE, '[{"op": "remove", "path": "/metadata/labels"}]', "these labels"),
    "a new order": Change(
        MINE,
        '{"metadata": {"annotations": {"gpupool.io/cleared-cards": "{\\"GPU-1\\": \\"\\"}"}}}',
        "annotations of nodes: gpupool.io/cleared-cards",
    ),
    "cordoned cards": Change(
        MINE,
        '{"metadata": {"annotations": {"gpupool.io/cordoned-cards": "{}"}}}',
        "annotations of nodes: gpupool.io/cordoned-cards",
    ),
    "a finalizer": Change(
        MINE, '{"metadata": {"finalizers": ["a.b/c"]}}', "other than labels and annotations"
    ),
    "an owner": Change(
        MINE,
        '{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "other",'
        ' "uid": "5d0b7c6e-0000-0000-0000-000000000000"}]}}',
        "other than labels and annotations",
    ),
    "capacity": Change(
        MINE, '{"status": {"capacity": {"nvidia.com/gpu": "64"}}}', "capacity", _STATUS
    ),
    "an address": Change(
        MINE,
        '{"status": {"addresses": [{"type": "InternalDNS", "address": "evil.example"}]}}',
        "addresses",
        _STATUS,
    ),
    "readiness": Change(
        MINE, f'{{"status": {{"conditions": [{_READY}]}}}}', "conditions of nodes", _STATUS
    ),
}


class Thief(NamedTuple):
    """Somebody with a token. Not kubectl: it reads a subresource before it patches it, which an
    agent may not."""

    server: str
    authority: Path
    token: str

    def refusal(self, change: Change, mine: str, other: str) -> str:
        """The words of the API server; empty: it accepts the change. Nothing is really changed."""
        node = mine if change.node == MINE else other
        kind = "json-patch" if change.patch.startswith("[") else "strategic-merge-patch"
        request = urllib.request.Request(
            f"{self.server}/api/v1/nodes/{node}{change.subresource}?dryRun=All",
            data=change.patch.encode(),
            method="PATCH",
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": f"application/{kind}+json",
            },
        )
        trust = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(request, context=trust, timeout=60):
                return ""
        except urllib.error.HTTPError as error:
            with error:
                return str(json.load(error)["message"])


def unexpected(said: Mapping[str, str]) -> dict[str, str]:
    """Of the answers to all CHANGES, those that are not as the table says."""
    return {
        what: words
        for what, words in said.items()
        if CHANGES[what].words not in words
        or bool(CHANGES[what].words) != ("ValidatingAdmissionPolicy 'gpupool-agent'" in words)
    }
