"""Match conditions, in CEL: which pods the API server asks us about.

They are sieves, made from the same names as the functions that look closely.
"""

from collections.abc import Iterable, Set

from gpupool.admission.asked import GPU_RESOURCES
from gpupool.admission.foreign import fractioning, kai
from gpupool.admission.foreign.systems import SCHEDULERS, System
from gpupool.admission.foreign.translate import RESOURCES
from gpupool.contract.names import (
    ENV_VISIBLE_DEVICES,
    LABEL_GPU_COUNT,
    PREFIX_NVIDIA_CONTAINER,
)
from gpupool.contract.visible_devices import NO_CARD


def asks_for_gpus(resources: Iterable[str] = GPU_RESOURCES) -> str:
    """Checking the requests is enough: the API server has copied limits into requests by now."""
    some = " || ".join(f"'{name}' in c.resources.requests" for name in resources)
    exists = f"exists(c, has(c.resources) && has(c.resources.requests) && ({some}))"
    # A pod without containers passes here, and the API server refuses it later.
    return " || ".join(
        f"(has(object.spec.{some}) && object.spec.{some}.{exists})"
        for some in ("containers", "initContainers")
    )


def asks_in_any_words(systems: Set[System]) -> str:
    """Our words, or those of these systems."""
    theirs = [name for system in sorted(systems) for name in RESOURCES.get(system, ())]
    return " || ".join([asks_for_gpus((*GPU_RESOURCES, *theirs)), *_annotated("object", systems)])


def sees_unrequested_cards() -> str:
    """Pods that make cards visible to a container, and ask for none."""
    values = ", ".join(map(repr, NO_CARD))
    exists = (
        f"exists(c, has(c.env) && c.env.exists(e, e.name == '{ENV_VISIBLE_DEVICES}' && "
        f"!(has(e.value) ? e.value in [{values}] : !has(e.valueFrom))))"
    )
    sees = " || ".join(
        f"(has(object.spec.{some}) && object.spec.{some}.{exists})"
        for some in ("containers", "initContainers", "ephemeralContainers")
    )
    return f"!({asks_for_gpus()}) && ({sees})"


def nearly_ours(systems: Set[System]) -> str:
    """For pods, and for objects with a template of pods: of those in our own words, too, for the
    pods of a workload are refused where its owner does not look."""
    ours = ", ".join(map(repr, GPU_RESOURCES))
    return (
        "[has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec.template : "
        "has(object.spec.template) ? object.spec.template : object].exists(t, "
        "(has(t.metadata) && has(t.metadata.labels) && "
        f"'{LABEL_GPU_COUNT}' in t.metadata.labels) || "
        "t.spec.containers.exists(c, (has(c.resources) && has(c.resources.limits) && "
        "c.resources.limits.exists(k, k.contains('gpu') && "
        f"(has(object.spec.template) || has(object.spec.jobTemplate) || !(k in [{ours}])))) || "
        f"(has(c.env) && c.env.exists(e, e.name == '{ENV_VISIBLE_DEVICES}')))"
        + "".join(f" || (has(t.metadata) && {each})" for each in _annotated("t", systems))
        + ")"
    )


def _annotated(what: str, systems: Set[System]) -> list[str]:
    """Conditions on the pod, or template of pods, `what`."""
    found = []
    has = f"has({what}.metadata.annotations) && {what}.metadata.annotations.exists(k, "
    if System.KAI in systems:
        schedulers = ", ".join(map(repr, SCHEDULERS[System.KAI]))
        queues = ", ".join(map(repr, kai.QUEUES))
        # Without these the names may mean anything; see kai.py.
        named = (
            f"(has({what}.spec.schedulerName) && {what}.spec.schedulerName in [{schedulers}]) || "
            f"(has({what}.metadata.labels) && {what}.metadata.labels.exists(k, k in [{queues}]))"
        )
        found.append(f"({has}k in ['{kai.FRACTION}', '{kai.MEMORY}']) && ({named}))")
    if System.FRACTIONING in systems:
        ends = " || ".join(
            f"k.endsWith('{end}')" for end in (fractioning.LIMIT, fractioning.REQUEST)
        )
        found.append(f"({has}k.startsWith('{PREFIX_NVIDIA_CONTAINER}') && ({ends})))")
    return found
