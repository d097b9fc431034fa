"""The pods and volume claims of a StatefulSet: names, identity, and who owns a claim. Pure."""

import re
from collections.abc import Iterable

from kubeclient.objects import Obj
from kubeclient.resources import PODS, STATEFUL_SETS
from localkube.controllers import revisions
from localkube.controllers.pods import controller_reference, label, pod_from_template

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
_MEMBER = re.compile(r"(.*)-([0-9]+)", re.ASCII)
_LARGEST = 2**31 - 1


def ordinal_of(pod: Obj, stateful_set: Obj) -> int | None:
    """None: the name of the pod is not that of a member of the set."""
    found = _MEMBER.fullmatch(pod["metadata"]["name"])
    if found is None or found[1] != stateful_set["metadata"]["name"]:
        return None
    ordinal = int(found[2])
    return ordinal if ordinal <= _LARGEST else None


def ordinals(stateful_set: Obj) -> range:
    spec = stateful_set["spec"]
    start = (spec.get("ordinals") or {}).get("start", 0)
    return range(start, start + spec["replicas"])


def pod_name(stateful_set: Obj, ordinal: int) -> str:
    return f"{stateful_set['metadata']['name']}-{ordinal}"


def new_pod(stateful_set: Obj, revision: Obj, ordinal: int) -> Obj:
    template = revisions.template_of(revision, stateful_set)
    pod = pod_from_template(stateful_set, STATEFUL_SETS, template)
    name = pod_name(stateful_set, ordinal)
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] = {
        **(pod["metadata"].get("labels") or {}),
        **_identity(stateful_set, ordinal),
        revisions.POD_LABEL: revision["metadata"]["name"],
    }
    spec = {**pod["spec"], "hostname": name}
    if stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = stateful_set["spec"]["serviceName"]
    else:
        spec.pop("subdomain", None)
    pod["spec"] = _with_volumes(spec, stateful_set, ordinal)
    return pod


def repaired(pod: Obj, stateful_set: Obj, ordinal: int) -> Obj:
    metadata = pod["metadata"]
    labels = {**(metadata.get("labels") or {}), **_identity(stateful_set, ordinal)}
    spec = pod["spec"]
    if not has_volumes(pod, stateful_set, ordinal):
        spec = _with_volumes(spec, stateful_set, ordinal)
    return {**pod, "metadata": {**metadata, "labels": labels}, "spec": spec}


def has_identity(pod: Obj) -> bool:
    return bool(label(pod, NAME_LABEL) == pod["metadata"]["name"])


def _identity(stateful_set: Obj, ordinal: int) -> dict[str, str]:
    return {NAME_LABEL: pod_name(stateful_set, ordinal), INDEX_LABEL: str(ordinal)}


# -- volumes and claims ------------------------------------------------------------------------


def _templates(stateful_set: Obj) -> list[Obj]:
    templates: list[Obj] = stateful_set["spec"].get("volumeClaimTemplates") or []
    return templates


def claim_name(template: Obj, stateful_set: Obj, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{pod_name(stateful_set, ordinal)}"


def claim_names(stateful_set: Obj, ordinal: int) -> list[str]:
    return [claim_name(template, stateful_set, ordinal) for template in _templates(stateful_set)]


def claims(stateful_set: Obj, ordinal: int) -> Iterable[Obj]:
    """The claims to create. They also carry the labels of the set's selector."""
    selected = stateful_set["spec"]["selector"].get("matchLabels") or {}
    for template in _templates(stateful_set):
        metadata = {
            **template["metadata"],
            "name": claim_name(template, stateful_set, ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
            "labels": {**(template["metadata"].get("labels") or {}), **selected},
        }
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": template["spec"],
        }


def _with_volumes(spec: Obj, stateful_set: Obj, ordinal: int) -> Obj:
    """A claim template takes the place of a volume of the same name."""
    ours = {
        template["metadata"]["name"]: {
            "name": template["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(template, stateful_set, ordinal)},
        }
        for template in _templates(stateful_set)
    }
    if not ours:
        return spec
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in ours]
    return {**spec, "volumes": [*ours.values(), *others]}


def has_volumes(pod: Obj, stateful_set: Obj, ordinal: int) -> bool:
    mounted = {
        volume["name"]: (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in pod["spec"].get("volumes") or ()
    }
    return all(
        mounted.get(template["metadata"]["name"]) == claim_name(template, stateful_set, ordinal)
        for template in _templates(stateful_set)
    )


def _refers(reference: Obj, owner: Obj, kind: str) -> bool:
    """Compares names, not uids: the reference may be to an earlier owner of the same name."""
    return bool(reference["kind"] == kind and reference["name"] == owner["metadata"]["name"])


def is_stale(claim: Obj, pod_name: str, pod_uid: str = "") -> bool:
    """Whether an earlier pod of this name owns the claim, which will be deleted with that pod."""
    return any(
        owner["kind"] == "Pod" and owner["name"] == pod_name and owner["uid"] != pod_uid
        for owner in claim["metadata"].get("ownerReferences") or ()
    )


def claims_may_go(stateful_set: Obj) -> bool:
    return "Delete" in _policy(stateful_set)


def deletes_when_scaled(stateful_set: Obj) -> bool:
    return _policy(stateful_set)[1] == "Delete"


def _policy(stateful_set: Obj) -> tuple[str, str]:
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", "Retain"), policy.get("whenScaled", "Retain")


def has_other_controller(claim: Obj, stateful_set: Obj, pod: Obj) -> bool:
    """Whether another controller owns the claim. The retention policy does not apply then."""
    if not claims_may_go(stateful_set):
        return False
    return any(
        owner.get("controller")
        and not _refers(owner, stateful_set, "StatefulSet")
        and not _refers(owner, pod, "Pod")
        for owner in claim["metadata"].get("ownerReferences") or ()
    )


def owners_of_claim(claim: Obj, stateful_set: Obj, pod: Obj) -> list[Obj]:
    """The owner references that the retention policy asks for. The set owns the claim
    (whenDeleted), or the pod does once its ordinal is beyond the set (whenScaled), and garbage
    collection deletes the claim with its owner. If a reference is to an earlier set or pod of the
    same name, nothing changes: that owner is about to be collected."""
    owners: list[Obj] = claim["metadata"].get("ownerReferences") or []
    ours = [o for o in owners if _refers(o, stateful_set, "StatefulSet") or _refers(o, pod, "Pod")]
    alive = {stateful_set["metadata"]["uid"], pod["metadata"]["uid"]}
    if any(owner["uid"] not in alive for owner in ours):
        return owners
    others = [owner for owner in owners if owner not in ours]
    if has_other_controller(claim, stateful_set, pod):
        return others
    when_deleted, when_scaled = _policy(stateful_set)
    beyond = ordinal_of(pod, stateful_set) not in ordinals(stateful_set)
    if when_scaled == "Delete" and beyond:
        return [*others, controller_reference(pod, PODS)]
    if when_deleted == "Delete":
        return [*others, controller_reference(stateful_set, STATEFUL_SETS)]
    return others
