"""follow keeps a ClusterState up to date with the API; read_cluster reads the API once.

read_objects(kube) ──> state_of(objects)      in two steps, with a snapshot in between
"""

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from gpupool.engine.policies import DEFAULT
from gpupool.scheduler.cluster_state import ClusterState
from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.lease import seconds_since_boot
from kubeclient.mirror import Changed, Mirror
from kubeclient.objects import Obj
from kubeclient.resources import (
    CSI_NODES,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)

log = logging.getLogger(__name__)

Broke = Callable[[Resource, Obj, Exception], None]

_LONGEST_PAUSE_S = 30.0  # of the garbage collector. 20,000 pods are read in five


def handlers_of(state: ClusterState) -> dict[Resource, Changed]:
    """In the order in which resources are read: pods last, because they refer to all the others."""
    return {
        NODES: state.node_changed,
        NAMESPACES: state.namespace_changed,
        DISRUPTION_BUDGETS: state.budget_changed,
        RESOURCE_QUOTAS: state.quota_changed,
        STORAGE_CLASSES: state.class_changed,
        CSI_NODES: state.volume_limits_changed,
        VOLUMES: state.volume_changed,
        VOLUME_CLAIMS: state.volume_claim_changed,
        PODS: state.pod_changed,
    }


async def follow(
    kube: Kube, state: ClusterState, tasks: asyncio.TaskGroup, *also_pods: Changed
) -> None:
    """Returns when everything has been read once. The watches go on in `tasks`.

    `also_pods`: more handlers for changes of pods.
    """
    # All lists run at the same time. A pod that is seen before its node is kept for that node
    # (`ClusterModel._lost`).
    mirrors = [_mirror(kube, state, resource) for resource in handlers_of(state)]
    with _first_read(state):
        for mirror in mirrors:
            for each in also_pods if mirror.resource == PODS else ():
                mirror.on_change(each)
            tasks.create_task(mirror.run(), name=f"mirror-{mirror.resource.plural}")
        # Before all are read, holds are missing in the ledger: a decision could give out a card
        # twice.
        for mirror in mirrors:
            await mirror.wait_synced()


@contextlib.contextmanager
def _first_read(state: ClusterState) -> Iterator[None]:
    """What is read now stays. While a large cluster is read, the garbage collector would look at
    all of it again and again, and later in the middle of a decision."""
    state.is_first_read = True
    gc.unfreeze()  # what an earlier term has read
    gc.disable()
    # A list that fails leaves behind what came of it. One that fails again and again would fill the
    # memory.
    enough = asyncio.get_running_loop().call_later(_LONGEST_PAUSE_S, gc.enable)
    try:
        yield
    finally:
        enough.cancel()
        gc.freeze()
        gc.enable()
        state.is_first_read = False


async def mirrors_to_show(kube: Kube, state: ClusterState) -> list[Mirror]:
    """For programs that show the cluster as it changes: who runs the mirrors keeps `state` up to
    date. Raises KubeError for what the user may not see; a mirror would ask for it for ever."""
    found = []
    for resource in handlers_of(state):
        if await _read(kube, resource, {"limit": "1"}) is not None:
            found.append(_mirror(kube, state, resource))
    return found


def _mirror(kube: Kube, state: ClusterState, resource: Resource) -> Mirror:
    mirror = Mirror(kube, resource, broke=state.findings.not_understood)
    mirror.on_change(handlers_of(state)[resource])
    return mirror


class _Everybody:
    def __contains__(self, _scheduler: object) -> bool:
        return True


EVERYBODY = _Everybody()  # all pods that wait count, whoever is to place them


def empty_state(policy: str = DEFAULT, schedulers: Container[str] = ()) -> ClusterState:
    """Of a cluster that is only shown: it schedules nothing."""
    return ClusterState(schedulers, policy, lambda: None, seconds_since_boot)


def _logged(_resource: Resource, obj: Obj, error: Exception) -> None:
    log.error("object not understood", extra={"object": obj["metadata"]["name"]}, exc_info=error)


async def read_cluster(
    kube: Kube, policy: str = DEFAULT, schedulers: Container[str] = ()
) -> ClusterState:
    """The state of the cluster now, for programs that only show it. Raises KubeError."""
    return state_of(await read_objects(kube), policy, schedulers)


async def read_objects(kube: Kube) -> dict[Resource, list[Obj]]:
    """All that a state of the cluster is made of. Raises KubeError."""
    return {resource: await _read(kube, resource) or [] for resource in handlers_of(empty_state())}


def state_of(
    objects: Mapping[Resource, Sequence[Obj]],
    policy: str = DEFAULT,
    schedulers: Container[str] = (),
    broke: Broke = _logged,
) -> ClusterState:
    """`schedulers`: pods that wait for one of these count as waiting. `broke`: as in a mirror, one
    object that is not understood does not hide all the others."""
    state = empty_state(policy, schedulers)
    for resource, handler in handlers_of(state).items():
        for obj in objects.get(resource, ()):
            try:
                handler(None, obj)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is told
                broke(resource, obj, error)
    return state


async def _read(
    kube: Kube, resource: Resource, query: Mapping[str, str] | None = None
) -> list[Obj] | None:
    """None: it is refused, and the rest is of use without it."""
    try:
        return (await kube.list(resource, query=query or {})).items
    except Refused as error:
        # People who look may have been given rights before limits of volumes were read.
        if resource == CSI_NODES and error.code in (403, 404):
            log.warning("limits of attached volumes are not known", extra={"error": str(error)})
            return None
        raise
