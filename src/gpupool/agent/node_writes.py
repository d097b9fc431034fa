"""What the agent writes to its node object: labels, the inventory, one condition.

Labels are written by server-side apply without force: a label that somebody else has set to another
value is not overwritten but reported. Server-side apply also removes labels that we applied earlier
and no longer want, even if an earlier process of ours applied them.
"""

import datetime
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpupool.agent.ways import no_way_words
from gpupool.contract.inventory import BadInventory, inventory_of
from gpupool.contract.names import (
    ANNOTATION_CLEARED_CARDS,
    ANNOTATION_INVENTORY,
    CONDITION_GPU_PROBLEM,
    MANAGER_INVENTORY,
    MANAGER_LABELS,
    MANAGER_SWITCHES,
)
from gpupool.core.gpu import Inventory
from kubeclient.client import APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Kube
from kubeclient.errors import Conflict
from kubeclient.objects import Obj
from kubeclient.resources import NODES

log = logging.getLogger(__name__)

_LABEL_FIELD = ".metadata.labels."
_LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that we write to the node. The default: the node has no cards, nothing of ours stays."""

    labels: Mapping[str, str] = field(default_factory=dict)
    inventory: str = ""
    problem: str | None = None  # None: there are no cards; empty: all cards are healthy
    switches: Mapping[str, str] = field(default_factory=dict)  # labels of others, by force
    cleared: str = ""  # the annotation with orders to clear that was carried out


class NodeWriter:
    """Writes the node, and remembers which labels belong to somebody else."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        # Labels of somebody else, with the value they had. When that changes, we try again.
        self._theirs: dict[str, str | None] = {}

    @property
    def theirs(self) -> tuple[str, ...]:
        """Labels that we would set, but somebody else has set to another value."""
        return tuple(sorted(self._theirs))

    async def write(self, node: Obj, wanted: Wanted) -> bool:
        """Writes only what differs; returns whether anything did. Raises KubeError."""
        changed = [
            # First, because the scheduler depends on it: a failure of the other writes must not
            # delay it.
            await self._write_inventory(node, wanted.inventory),
            await self._write_labels(node, wanted.labels),
            await self._write_condition(node, wanted.problem),
            await self._write_switches(node, wanted.switches),
        ]
        # Last: an order may go only when the inventory shows its effect. If the agent dies in
        # between, the next agent finds the order and carries it out again.
        if wanted.cleared:
            await self._remove_order(node, wanted.cleared)
        return any(changed)

    async def _write_inventory(self, node: Obj, text: str) -> bool:
        found = (node["metadata"].get("annotations") or {}).get(ANNOTATION_INVENTORY, "")
        if found == text:
            return False
        annotations = {ANNOTATION_INVENTORY: text} if text else {}
        # A field manager of its own: server-side apply removes what its manager applied before and
        # omits now, so that one manager for both would delete the labels here. Forced: only agents
        # write it.
        await self._apply(node, {"annotations": annotations}, MANAGER_INVENTORY, force=True)
        return True

    async def _write_labels(self, node: Obj, wanted: Mapping[str, str]) -> bool:
        found = node["metadata"].get("labels") or {}
        self._theirs = {
            key: value
            for key, value in self._theirs.items()
            if key in wanted and found.get(key) == value
        }
        ours = {key: value for key, value in wanted.items() if key not in self._theirs}
        # Equal values are not enough: labels that we applied earlier and no longer want are found
        # only among the fields that we own.
        applied = _applied_labels(node)
        is_so = all(found.get(key) == value for key, value in ours.items())
        if applied == set(ours) and is_so:
            return False
        # This ends: each conflict takes at least one label out of `ours`.
        while True:
            try:
                await self._apply(node, {"labels": ours}, MANAGER_LABELS, force=False)
            except Conflict as error:
                others = [key for key in _in_conflict(error) if key in ours]
                # Not about labels, for example because the node now has another uid: a retry would
                # not help.
                if not others:
                    raise
                for key in others:
                    self._theirs[key] = found.get(key)
                    del ours[key]
            else:
                return True

    async def _write_switches(self, node: Obj, wanted: Mapping[str, str]) -> bool:
        """Labels that belong to another program, which honours what it finds. When we no longer
        want them they are removed, and that program sets them again as it likes."""
        found = node["metadata"].get("labels") or {}
        is_so = all(found.get(key) == value for key, value in wanted.items())
        if _applied_labels(node, MANAGER_SWITCHES) == set(wanted) and is_so:
            return False
        await self._apply(node, {"labels": dict(wanted)}, MANAGER_SWITCHES, force=True)
        return True

    async def _apply(self, node: Obj, metadata: Obj, manager: str, *, force: bool) -> None:
        """The uid is part of the patch. Without it, server-side apply would create the node again
        if it was deleted meanwhile."""
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": uid, **metadata},
        }
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        await self._kube.patch(NODES.path(name=name), body, content_type=APPLY_PATCH, query=query)

    async def _write_condition(self, node: Obj, problem: str | None) -> bool:
        conditions = (node.get("status") or {}).get("conditions") or ()
        before = next((c for c in conditions if c["type"] == CONDITION_GPU_PROBLEM), None)
        change = condition_change(before, problem, _stamp())
        if change is None:
            return False
        path = NODES.path(name=node["metadata"]["name"], subresource="status")
        body = {"status": {"conditions": [change]}}
        # A strategic patch merges conditions by type, so that those of the kubelet stay.
        await self._kube.patch(path, body, content_type=STRATEGIC_PATCH)
        return True

    async def _remove_order(self, node: Obj, cleared: str) -> None:
        """Removes the annotation with orders to clear, but only if it still is the one that was
        carried out: a person may have written a new one meanwhile."""
        metadata = node["metadata"]
        if (metadata.get("annotations") or {}).get(ANNOTATION_CLEARED_CARDS) != cleared:
            return
        # Read again, because our own writes have just changed the resourceVersion.
        fresh = await self._kube.get(NODES, metadata["name"])
        if fresh["metadata"].get("annotations", {}).get(ANNOTATION_CLEARED_CARDS) != cleared:
            return
        body = {
            "metadata": {
                "resourceVersion": fresh["metadata"]["resourceVersion"],
                "annotations": {ANNOTATION_CLEARED_CARDS: None},
            }
        }
        path = NODES.path(name=metadata["name"])
        await self._kube.patch(path, body, content_type=MERGE_PATCH)


def condition_change(before: Obj | None, problem: str | None, now: str) -> Obj | None:
    """What to patch into the node's conditions; None: it is right already."""
    if problem is None:
        return {"type": CONDITION_GPU_PROBLEM, "$patch": "delete"} if before else None
    status, reason = ("True", "CardsNotHealthy") if problem else ("False", "CardsHealthy")
    message = problem[:_LONGEST_MESSAGE] or "all cards are healthy"
    if before and (before["status"], before.get("message")) == (status, message):
        return None
    # By the conventions of Kubernetes this changes with the status, not with the message.
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    return {
        "type": CONDITION_GPU_PROBLEM,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": since,
    }


def problem_text(inventory: Inventory) -> str | None:
    """Which cards take no pods, and why, for people to read; None: there are no cards."""
    if not inventory.cards:
        return None
    bad = [
        f"card {card.index} ({card.model}, {card.uuid}) is {card.health}: {card.reason}"
        for card in inventory.cards
        if not card.takes_pods
    ]
    ways = inventory.ways
    return "; ".join(bad if ways is None or ways.is_open else [no_way_words(ways), *bad])


def published_inventory(node: Obj) -> Inventory:
    """The inventory that the agent before this one has published."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_INVENTORY, "")
    try:
        return inventory_of(text) if text else Inventory()
    # The agent starts without what was remembered, rather than not at all.
    except BadInventory:
        return Inventory()


def _applied_labels(node: Obj, manager: str = MANAGER_LABELS) -> set[str]:
    """The labels that the API server records as applied by us (managedFields)."""
    for entry in node["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply":
            labels = entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {})
            return {key.removeprefix("f:") for key in labels if key.startswith("f:")}
    return set()


def _in_conflict(error: Conflict) -> list[str]:
    causes = (error.status.get("details") or {}).get("causes") or ()
    fields = [str(cause.get("field", "")) for cause in causes]
    return [name.removeprefix(_LABEL_FIELD) for name in fields if name.startswith(_LABEL_FIELD)]


def _stamp() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
