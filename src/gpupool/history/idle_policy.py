"""The idle policy: which workloads are warned, and which are scaled to zero. Pure.

It acts on what is known only. A workload is left alone if one of its pods works, waits, is missing
or is young, if nobody told what its pods did, if it was not warned for long enough, or if somebody
has said so by a label. So whoever turns the policy on ends nothing at once.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.names import ANNOTATION_IDLE_WARNED, LABEL_KEEP_IDLE
from gpupool.history.facts import Held
from gpupool.history.parking import Change, No, to_zero
from gpupool.history.usage import IdlePod
from kubeclient.objects import Obj

_JITTER_S = 60  # agents tell the last activity anew each time: it differs by seconds


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    warn_s: int
    scale_s: int | None = None  # None: it only warns
    except_namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class IdleWorkload:
    """Every container of it that asks for cards holds some, and does not use them."""

    namespace: str
    name: str  # KIND/NAME
    pods: tuple[Held, ...]  # one container of each
    cards: float
    since_s: int


@dataclass(frozen=True, slots=True)
class Step:
    """What is done about an idle workload."""

    change: Obj | None  # a patch; None: nothing is written
    event: str  # empty: nothing is said
    replicas: int = 0  # scaled to zero from so many; 0: it is not scaled


NOTHING = Step(None, "")


def idle_workloads(idle: Sequence[IdlePod], held: Iterable[Held]) -> list[IdleWorkload]:
    """`held`: all containers that ask for cards and have not ended."""
    known = {(each.namespace, each.pod, each.container): each for each in idle}
    groups: dict[tuple[str, str], list[Held]] = {}
    for each in held:
        groups.setdefault((each.namespace, each.workload), []).append(each)
    found = []
    for (namespace, name), members in groups.items():
        resting = [known.get((each.namespace, each.pod, each.container)) for each in members]
        sure = [each for each in resting if each is not None]
        if len(sure) == len(members):
            pods = {each.pod: each for each in members}
            cards = sum(each.held_cards for each in sure)
            since_s = max(each.since_s for each in sure)
            found.append(IdleWorkload(namespace, name, tuple(pods.values()), cards, since_s))
    return sorted(found, key=lambda each: (-each.cards, each.since_s, each.namespace, each.name))


def keeps_idle(*objects: Obj) -> bool:
    """Whether a label of one of them says that it is left alone."""
    labels = [(each.get("metadata") or {}).get("labels") or {} for each in objects]
    return any(each.get(LABEL_KEEP_IDLE, "false") != "false" for each in labels)


def step(
    workload: Obj, idle: IdleWorkload, policy: IdlePolicy, now_s: float, *, is_long: bool
) -> Step:
    """`is_long`: idle for as long as it takes to be scaled to zero."""
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    template = spec.get("template") or {}
    if metadata.get("deletionTimestamp") or keeps_idle(workload, template):
        return NOTHING
    # Anybody who may create pods can make one that looks like a pod of this workload.
    if not gpu_asks({"metadata": {}, **template}).asks:
        return NOTHING
    if spec.get("replicas", 1) != len(idle.pods):
        return NOTHING
    down = to_zero(workload)
    if policy.scale_s is None or isinstance(down, No):
        return Step(None, _warning(idle, None, down))
    warned_s = _warned(metadata, idle.since_s, now_s)
    if warned_s is None:
        return Step(_note(metadata, now_s), _warning(idle, _due(idle, policy, now_s), down))
    due_s = _due(idle, policy, warned_s)
    if not is_long or now_s < due_s:
        return Step(None, _warning(idle, due_s, down))
    return Step(down.patch, _scaled(idle, down), down.replicas)


def pod_warning(idle: IdleWorkload, pod: Held) -> str:
    """For pods of workloads that cannot be restored: a Job, or none at all."""
    words = f"{_holds(idle)} Nothing ends it by itself. If nobody needs it: "
    return words + f"kubectl -n {pod.namespace} delete pod {pod.pod}"


def _due(idle: IdleWorkload, policy: IdlePolicy, warned_s: float) -> float:
    """Between the first warning and the end there is always the same time."""
    assert policy.scale_s is not None
    return max(idle.since_s + policy.scale_s, warned_s + policy.scale_s - policy.warn_s)


def _warned(metadata: Obj, since_s: int, now_s: float) -> float | None:
    """When this idle time was first warned of; None: not yet. A warning of an earlier idle time, or
    of the future, is none."""
    text = (metadata.get("annotations") or {}).get(ANNOTATION_IDLE_WARNED, "")
    try:
        at = datetime.datetime.fromisoformat(str(text))
        found = at.timestamp() if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
    return found if found is not None and since_s - _JITTER_S <= found <= now_s else None


def _note(metadata: Obj, now_s: float) -> Obj:
    stamp = datetime.datetime.fromtimestamp(int(now_s), datetime.UTC).isoformat()
    notes = {ANNOTATION_IDLE_WARNED: stamp.replace("+00:00", "Z")}
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": notes}}


def _holds(idle: IdleWorkload) -> str:
    return f"It holds {idle.cards:.2g} GPUs and has not used them since {_time(idle.since_s)}."


def _warning(idle: IdleWorkload, due_s: float | None, down: Change | No) -> str:
    kind, _, name = idle.name.partition("/")
    if due_s is None:
        why = f": {down.why}" if isinstance(down, No) else ""
        return f"{_holds(idle)} Nothing scales it to zero by itself{why}."
    keep = f"kubectl -n {idle.namespace} label {kind.lower()}/{name} {LABEL_KEEP_IDLE}=true"
    return (
        f"{_holds(idle)} If it stays so, it is scaled to zero at {_time(due_s)}. To keep it: {keep}"
    )


def _scaled(idle: IdleWorkload, down: Change) -> str:
    kind, _, name = idle.name.partition("/")
    scale = f"scale {kind.lower()}/{name} --replicas={down.replicas}"
    return (
        f"Scaled from {down.replicas} to 0 replicas: it held {idle.cards:.2g} GPUs and had not "
        f"used them since {_time(idle.since_s)}. To restore it: gpupool idle --restore {idle.name} "
        f"-n {idle.namespace}, or kubectl -n {idle.namespace} {scale}"
    )


def _time(at_s: float) -> str:
    return f"{datetime.datetime.fromtimestamp(at_s, datetime.UTC):%Y-%m-%d %H:%M} UTC"
