"""What `whatif` and `defrag` both need: the whole cluster, and the pods that they ask about."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kubeclient.objects import Obj
from kubeclient.resources import PODS, Resource

if TYPE_CHECKING:
    from gpupool.contract.manifests import PodTemplate
    from gpupool.scheduler.cluster_state import ClusterState
    from gpupool.scheduler.what_if import Workload

Objects = Mapping[Resource, Sequence[Obj]]
_MIRROR = "kubernetes.io/config.mirror"


def whole_state(objects: Objects, policy: str) -> "ClusterState":
    """With all pods that wait, whoever is to place them: they compete for the same cards."""
    from gpupool.scheduler.follow import EVERYBODY, state_of

    state = state_of(objects, policy, EVERYBODY, _not_read)
    _know_volumes(state, objects)
    return state


def _know_volumes(state: "ClusterState", objects: Objects) -> None:
    """Of pods that run: those that move need a node that reaches their volumes, too. A scheduler
    moves nobody, and knows them of waiting pods alone."""
    from gpupool.contract.volumes import claim_uses, with_volumes

    cluster = state.cluster
    for pod in objects[PODS]:
        held = cluster.held(uid_of(pod))
        if held is not None and any(True for _ in claim_uses(pod)):
            request = with_volumes(held.pod, pod, state.storage)
            cluster.hold(request, held.node, held.allocation)


def _not_read(resource: Resource, obj: Obj, error: Exception) -> None:
    """What is answered without it may be wrong, and whoever asks has to know."""
    name = f"{resource.kind} {shown(obj)}"
    click.echo(f"Warning: {name} is left out, it cannot be read: {error!r}", err=True)


def shown(obj: Obj) -> str:
    metadata = obj["metadata"]
    space = metadata.get("namespace")
    return f"{space}/{metadata['name']}" if isinstance(space, str) and space else metadata["name"]


def uid_of(pod: Obj) -> str:
    return str(pod["metadata"].get("uid"))


def controller_of(pod: Obj) -> str:
    """The kind of what makes it again; empty: nobody does."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner.get("kind")) for owner in owners if owner.get("controller")), "")


def lives_with_its_node(pod: Obj) -> bool:
    is_static = _MIRROR in (pod["metadata"].get("annotations") or {})
    return is_static or controller_of(pod) == "DaemonSet"


def ends_with_its_node(pod: Obj) -> bool:
    """Nobody makes it again for that. One that terminates has its successor already, which counts
    itself; only a StatefulSet waits until it is gone."""
    is_going = "deletionTimestamp" in pod["metadata"] and controller_of(pod) != "StatefulSet"
    return is_going or lives_with_its_node(pod)


def workload_of(
    state: "ClusterState", template: "PodTemplate", pod: Obj, replicas: int | None, at: int
) -> "Workload":
    """`at`: its place in the manifest."""
    from gpupool.scheduler.groups import Group, group_of
    from gpupool.scheduler.pending import request_with_volumes
    from gpupool.scheduler.what_if import MOST_COPIES, Workload

    metadata = template.pod["metadata"]
    copies = replicas or template.copies
    if copies > MOST_COPIES:
        raise click.ClickException(
            f"{template.kind} {metadata['namespace']}/{metadata['name']}: at most {MOST_COPIES} "
            f"pods of one workload are tried, and it has {copies}. Ask about fewer."
        )
    named = {**pod["metadata"], **{key: metadata[key] for key in ("name", "namespace")}, "uid": ""}
    group = group_of(named)
    return Workload(
        template.kind,
        metadata["namespace"],
        metadata["name"],
        request_with_volumes({**pod, "metadata": named}, state.storage),
        copies,
        group if isinstance(group, Group) else None,
        at,
    )
