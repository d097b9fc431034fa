"""next_step: the next write for a pod with a resize request. Pure: computed from the pod alone.

    request, larger share    if there is room: share and limit in one write
    request, smaller share   1. write the lower limit and a token; the share stays held
                             2. wait for the agent's report on this token: the limit is in force,
                                and so much memory is in use
                             3. if the usage fits: write the smaller share
    no request, but a token  the user withdrew the request: restore the limit

A share shrinks only after its limit is in force. Otherwise the freed memory could go to another pod
while this one still uses it.

Every write carries the resourceVersion of the pod that was evaluated, and removes the request or
replaces the token. So each step happens once or not at all. There is no state outside of the pod:
a new leader continues from the annotations.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.names import (
    ANNOTATION_MEM_ASSUME_TIME,
    ANNOTATION_RESIZE,
    ANNOTATION_RESIZE_OUTCOME,
    ANNOTATION_SHRINKING,
    GROUP_LIMITS,
)
from gpupool.contract.resize import BadWish, ShrinkReport, wish_of
from gpupool.core.gpu import Allocation, ContainerGpus
from gpupool.core.quota import UnitsQuota
from gpupool.core.resize import larger, shrinking
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.resize import NoResize, room_for, wanted_allocation, within_quotas
from kubeclient.objects import Obj

Changes = dict[str, str | None]  # annotations; None: remove


@dataclass(frozen=True, slots=True)
class Resizable:
    """A bound pod with a resize request, or with a lowered limit."""

    uid: str
    namespace: str
    name: str
    version: str
    node: str
    allocation: Allocation
    limits: Mapping[str, str]  # by container
    wish: str | None
    token: str  # of a lowered limit; empty: the limit is not lowered

    @property
    def question(self) -> object:
        """Equal while nothing has changed that `next_step` depends on."""
        # Without the resourceVersion: other writers, such as the kubelet, change that all the time.
        return self.wish, self.token, self.allocation, self.limits

    @property
    def as_object(self) -> Obj:
        metadata = {"name": self.name, "namespace": self.namespace, "uid": self.uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Step:
    holds: Allocation  # until the watch shows the result of the write
    changes: Changes
    refusal: str = ""
    grant: str = ""


def resizable_of(pod: Obj, allocation: Allocation) -> Resizable | None:
    """`allocation`: by its annotations. None: nothing to do. Terminating pods keep their share."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    wish, token = annotations.get(ANNOTATION_RESIZE), annotations.get(ANNOTATION_SHRINKING, "")
    if (wish is None and not token) or "deletionTimestamp" in metadata:
        return None
    prefix = f"{GROUP_LIMITS}/"
    return Resizable(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=metadata.get("resourceVersion", ""),
        node=pod["spec"].get("nodeName", ""),
        allocation=allocation,
        limits={k.removeprefix(prefix): v for k, v in annotations.items() if k.startswith(prefix)},
        wish=wish,
        token=token,
    )


def most(cluster: ClusterModel, pod: Resizable) -> Allocation:
    """The largest allocation that the pod may have by now, if its request was just granted."""
    wanted = _wanted(cluster, pod)
    return larger(pod.allocation, wanted) if isinstance(wanted, Allocation) else pod.allocation


def next_step(
    cluster: ClusterModel,
    pod: Resizable,
    report: ShrinkReport | None,
    quotas: Iterable[UnitsQuota] = (),
) -> Step | None:
    """None: the agent's report is missing."""
    if pod.wish is None:
        return Step(pod.allocation, _settled(pod.allocation))
    wanted = _wanted(cluster, pod)
    if isinstance(wanted, NoResize):
        return _refused(pod, wanted.words)
    holds = larger(pod.allocation, wanted)
    if holds != pod.allocation:
        # For `holds`, not for `wanted`: if one container grows and another shrinks, what the latter
        # frees is free only after the agent's report.
        no = room_for(cluster, pod.uid, holds) or within_quotas(cluster, pod.uid, wanted, quotas)
        if no is not None:
            return _refused(pod, no.words)
    smaller = shrinking(pod.allocation, wanted)
    if smaller and not _is_lowered(pod, wanted):
        # The resourceVersion is the token: no two lowerings have the same one, so a report on an
        # earlier lowering confirms nothing.
        return Step(holds, _lowered(holds, wanted, pod.version))
    if smaller:
        if report is None or report.token != pod.token:
            return None
        words = _in_the_way(smaller, report)
        if words:
            return _refused(pod, words)
    return _granted(pod, wanted, holds)


def _wanted(cluster: ClusterModel, pod: Resizable) -> Allocation | NoResize:
    held, state = cluster.held(pod.uid), cluster.state(pod.node)
    if held is None or state is None:
        return NoResize("its node is not there")
    if pod.allocation.unread is not None:
        return NoResize(f"which cards it holds cannot be read: {pod.allocation.unread.why}")
    if not pod.allocation.containers:
        return NoResize("it has no share of a card")
    try:
        wish = wish_of(pod.wish or "")
    except BadWish as error:
        return NoResize(f"{ANNOTATION_RESIZE}: {error}")
    return wanted_allocation(state, held.pod, pod.allocation, wish)


def _is_lowered(pod: Resizable, wanted: Allocation) -> bool:
    # The limits are compared too: the user may have changed the request since they were lowered.
    return bool(pod.token) and all(
        pod.limits.get(gpus.container, "") == text for gpus, text in _limits(wanted)
    )


def _limits(allocation: Allocation) -> list[tuple[ContainerGpus, str]]:
    """Limit texts of the containers under the limiter. Other containers cannot be resized."""
    made = allocation_annotations(allocation, now_ns=0)
    texts = ((gpus, f"{GROUP_LIMITS}/{gpus.container}") for gpus in allocation.containers)
    return [(gpus, made[key]) for gpus, key in texts if key in made]


def _in_the_way(smaller: tuple[ContainerGpus, ...], report: ShrinkReport) -> str:
    if report.problem:
        return report.problem
    for gpus in smaller:
        used = report.used_mib.get(gpus.container, {})
        for share in gpus.shares:
            found = used.get(share.uuid, 0)
            if found > share.memory_mib:
                return (
                    f"container {gpus.container} uses {found} MiB of card {share.index}, more than "
                    f"the {share.memory_mib} MiB of its new share (if its programs have ended by "
                    "now, run nvidia-smi in it, and try again)"
                )
    return ""


def _settled(allocation: Allocation) -> Changes:
    """Share and limit agree, and no request or token is left."""
    made: Changes = dict(allocation_annotations(allocation, now_ns=0))
    made.pop(ANNOTATION_MEM_ASSUME_TIME, None)  # the time of the Binding stays
    return made | {ANNOTATION_RESIZE: None, ANNOTATION_SHRINKING: None}


def _lowered(holds: Allocation, wanted: Allocation, token: str) -> Changes:
    changes = _settled(holds)
    # The request stays on the pod: it is granted only after the report of the agent.
    del changes[ANNOTATION_RESIZE]
    limits: Changes = {f"{GROUP_LIMITS}/{gpus.container}": text for gpus, text in _limits(wanted)}
    return changes | limits | {ANNOTATION_SHRINKING: token}


def _refused(pod: Resizable, words: str) -> Step:
    text = f"refused: {words}"
    return Step(
        pod.allocation, _settled(pod.allocation) | {ANNOTATION_RESIZE_OUTCOME: text}, refusal=words
    )


def _granted(pod: Resizable, wanted: Allocation, holds: Allocation) -> Step:
    before = {gpus.container: gpus for gpus in pod.allocation.containers}
    changed = [gpus for gpus in wanted.containers if gpus != before[gpus.container]]
    words = "; ".join(
        f"container {gpus.container}: {_shown(before[gpus.container])} -> {_shown(gpus)}"
        for gpus in changed
    )
    words = words or "it has just that"
    outcome: Changes = {ANNOTATION_RESIZE_OUTCOME: f"done: {words}"}
    return Step(holds, _settled(wanted) | outcome, grant=words)


def _shown(gpus: ContainerGpus) -> str:
    mib = " + ".join(f"{share.memory_mib} MiB" for share in gpus.shares)
    return f"{sum(share.units for share in gpus.shares)} units ({mib})"
