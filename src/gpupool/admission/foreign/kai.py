"""The words of KAI Scheduler and Run:ai: annotations of the pod, for one of its containers.

The names have no domain, and anybody may have used `gpu-memory` for notes of his own. So they
count only where the pod also names KAI's scheduler or one of its queues: without a queue KAI
schedules nothing.
"""

import re
from fractions import Fraction

from gpupool.admission.asked import PodContainer, containers
from gpupool.admission.foreign.systems import SCHEDULERS, System
from gpupool.admission.foreign.wishes import (
    Reading,
    Wish,
    amount,
    annotations_of,
    labels_of,
    listed,
)
from gpupool.contract.gpu_asks import MAX_CARDS
from gpupool.contract.names import RESOURCE_GPU
from kubeclient.objects import Obj

FRACTION, MEMORY = "gpu-fraction", "gpu-memory"
_COUNT, _CONTAINER = "gpu-fraction-num-devices", "gpu-fraction-container-name"
# More than the share while others leave it free.
_BURST = ("gpu-memory.limit", "gpu-fraction.limit")
_BETWEEN_0_AND_1 = re.compile(r"0?\.[0-9]{1,9}")
QUEUES = ("kai.scheduler/queue", "runai/queue")


def read(pod: Obj) -> Reading:
    found = Reading()
    annotations, labels = annotations_of(pod), labels_of(pod)
    queue = next((key for key in QUEUES if key in labels), "")
    if not queue and pod["spec"].get("schedulerName") not in SCHEDULERS[System.KAI]:
        return found
    if FRACTION not in annotations and MEMORY not in annotations:
        return found
    wish = _wish(pod, annotations)
    if isinstance(wish, str):
        found.wrong.append(wish)
        return found
    found.wishes.append(wish)
    found.annotations = [
        key for key in (FRACTION, MEMORY, _COUNT, _CONTAINER) if key in annotations
    ]
    if queue:
        found.notes.append(f"{queue}={labels[queue]} has no effect")
    return found


def _wish(pod: Obj, annotations: Obj) -> Wish | str:
    if FRACTION in annotations and MEMORY in annotations:
        return f"metadata.annotations: wanted {FRACTION} or {MEMORY}, found both"
    for key in _BURST:
        if key in annotations:
            return (
                f"metadata.annotations[{key}]: wanted none, because a share does not grow by "
                f"itself here (see gpupool resize), found {annotations[key]}"
            )
    container = _container(pod, annotations)
    if isinstance(container, str):
        return container
    if container.asks(RESOURCE_GPU):
        return (
            f"{container.field}.resources.limits: wanted whole cards ({RESOURCE_GPU}) or a share "
            "by annotation of the pod, found both"
        )
    cards = amount(annotations.get(_COUNT, 1), f"metadata.annotations[{_COUNT}]", 1, MAX_CARDS)
    if isinstance(cards, str):
        return cards
    key = FRACTION if FRACTION in annotations else MEMORY
    field = f"metadata.annotations[{key}]"
    used = [name for name in (key, _COUNT) if name in annotations]
    said = listed((name, annotations[name]) for name in used)
    wish = Wish(container, field, said, cards=cards)
    if key == MEMORY:
        mib = amount(annotations[key], field, 1, unit=" of MiB")
        return mib if isinstance(mib, str) else wish._replace(mib=mib)
    part = _part(annotations[key])
    if part is None:
        return f"{field}: wanted a number between 0 and 1, found {annotations[key]}"
    return wish._replace(part=part)


def _container(pod: Obj, annotations: Obj) -> PodContainer | str:
    """The first one, unless the pod names another."""
    listed_ones = list(containers(pod))
    name = annotations.get(_CONTAINER)
    if name is None:
        main = pod["spec"]["containers"][0]
        return next(each for each in listed_ones if each.spec is main)
    for each in listed_ones:
        if each.spec.get("name") == name:
            return each
    return f"metadata.annotations[{_CONTAINER}]: wanted a container of the pod, found {name}"


def _part(text: str) -> Fraction | None:
    """Written with digits only: a number such as 1e-999999 would take minutes to calculate with."""
    if not _BETWEEN_0_AND_1.fullmatch(text) or not Fraction(text):
        return None
    return Fraction(text)
