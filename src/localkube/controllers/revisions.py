"""ControllerRevisions: the versions of a template that a StatefulSet or DaemonSet has had.

`data` is the strategic merge patch that `kubectl rollout undo` sends to restore a version. A
version that is restored keeps its revision object, which gets the next number."""

from collections.abc import Sequence, Set

from kubeclient.errors import AlreadyExists
from kubeclient.objects import Obj
from kubeclient.resources import CONTROLLER_REVISIONS, Resource
from localkube.controllers import ownership
from localkube.controllers.pods import content_hash, controller_reference
from localkube.controllers.run import Context

POD_LABEL = "controller-revision-hash"  # on pods: which revision they were made from
_HASH_LABELS = {"StatefulSet": "controller.kubernetes.io/hash", "DaemonSet": POD_LABEL}
_LONGEST_PREFIX = 223
_LARGEST = 2**63 - 1


def data_of(owner: Obj) -> Obj:
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def template_of(revision: Obj, owner: Obj) -> Obj:
    """The template in the revision; the owner's current one if the revision has none."""
    spec = (revision.get("data") or {}).get("spec") or {}
    template = spec.get("template") or owner["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def ordered(revisions: Sequence[Obj]) -> list[Obj]:
    """Oldest first."""

    def age(revision: Obj) -> tuple[int, str, str]:
        metadata = revision["metadata"]
        return _number(revision), metadata["creationTimestamp"], metadata["name"]

    return sorted(revisions, key=age)


def next_number(revisions: Sequence[Obj]) -> int:
    return max(map(_number, revisions), default=0) + 1


def _number(revision: Obj) -> int:
    """A number without successor, which an adopted revision may have, counts as none."""
    number = int(revision["revision"])
    return number if number < _LARGEST else 0


def new_revision(owner: Obj, resource: Resource, number: int, collisions: int) -> Obj:
    data, metadata = data_of(owner), owner["metadata"]
    suffix = content_hash(data, collisions)
    labels = owner["spec"]["template"].get("metadata", {}).get("labels") or {}
    revision_metadata: Obj = {
        "name": f"{metadata['name'][:_LONGEST_PREFIX]}-{suffix}",
        "namespace": metadata["namespace"],
        "labels": {**labels, _HASH_LABELS[resource.kind]: suffix},
        "ownerReferences": [controller_reference(owner, resource)],
    }
    if metadata.get("annotations"):
        revision_metadata["annotations"] = dict(metadata["annotations"])
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": revision_metadata,
        "data": data,
        "revision": number,
    }


def surplus(revisions: Sequence[Obj], live: Set[str], limit: int) -> list[Obj]:
    """The oldest revisions beyond the limit of the history. Revisions in use do not count."""
    history = [r for r in ordered(revisions) if r["metadata"]["name"] not in live]
    return history[: max(0, len(history) - limit)]


# -- acting ------------------------------------------------------------------------------------


async def claimed(context: Context, owner: Obj, resource: Resource) -> list[Obj]:
    """The owner's revisions, oldest first. Adopts orphans that match its selector."""
    found = ownership.candidates(context.of(CONTROLLER_REVISIONS), owner)
    judged = ownership.judge(owner, found, ownership.selected_by(owner))
    # A revision whose labels no longer match keeps its owner; it is just not part of the history.
    kept = ownership.Claim(judged.keep, judged.adopt, [])
    ties = ownership.Ties(resource)
    return ordered(await ownership.claim(context, owner, ties, CONTROLLER_REVISIONS, kept))


async def current(
    context: Context, owner: Obj, resource: Resource, known: Sequence[Obj], collisions: int
) -> tuple[Obj, int]:
    """The revision of the owner's current template, created or renumbered if necessary, and the new
    number of name collisions."""
    data = data_of(owner)
    equal = [revision for revision in known if revision.get("data") == data]
    if not equal:
        return await _create(context, owner, resource, next_number(known), collisions)
    found = equal[-1]
    if found is known[-1]:
        return found, collisions
    # A rollback: the old revision becomes the newest one, instead of getting an equal copy.
    renumbered = {**found, "revision": next_number(known)}
    return await context.kube.update(CONTROLLER_REVISIONS, renumbered), collisions


async def _create(
    context: Context, owner: Obj, resource: Resource, number: int, collisions: int
) -> tuple[Obj, int]:
    while True:
        wanted = new_revision(owner, resource, number, collisions)
        try:
            return await context.kube.create(CONTROLLER_REVISIONS, wanted), collisions
        except AlreadyExists:
            metadata = wanted["metadata"]
            found = await context.kube.get(
                CONTROLLER_REVISIONS, metadata["name"], metadata["namespace"]
            )
            if found.get("data") == wanted["data"]:
                return found, collisions  # created before: the mirror is late
            collisions += 1


async def forget(context: Context, resource: Resource, history: Sequence[Obj]) -> None:
    """Deletes old revisions, or the old replica sets that are a Deployment's revisions."""
    for old in history:
        await context.delete(resource, old)
