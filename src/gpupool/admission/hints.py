"""Hints: what a user probably meant who wrote a name that is nearly one of ours.

Kubernetes takes any resource name, and a pod that asks for a resource that no node has waits for
ever. A hint is a warning of the API server, which kubectl prints; nothing is refused or changed.
"""

import copy
import difflib
import re
from collections.abc import Iterator, Set

from gpupool.admission.asked import GPU_RESOURCES, containers, gpu_containers, is_shared
from gpupool.admission.cards import ClusterCards
from gpupool.admission.foreign.systems import System
from gpupool.admission.foreign.translate import Translation
from gpupool.admission.refusal import put_into_our_words
from gpupool.contract.manifests import pod_templates
from gpupool.contract.names import (
    ENV_VISIBLE_DEVICES,
    LABEL_GPU_COUNT,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.contract.visible_devices import sees_cards
from kubeclient.objects import Obj

# Names without their domain, and with letters and digits only.
_MEANT = {
    **dict.fromkeys(("gpu", "gpus", "nvidiagpu", "gpucard", "gpucards"), RESOURCE_GPU),
    **dict.fromkeys(("gpumem", "gpumems", "gpumemory"), RESOURCE_GPU_MEM),
    **dict.fromkeys(
        ("gpucore", "gpucores", "gpupercentage", "gpucorepercentage"), RESOURCE_GPU_PERCENT
    ),
}
_DOMAINS = tuple(sorted({name.partition("/")[0] for name in GPU_RESOURCES}))
_ALIKE = 0.85  # two letters of eleven may differ
_LONGEST = 250  # the API server cuts longer warnings, in the middle of a word


def hints(obj: Obj, offered: Set[str]) -> list[str]:
    """For a pod, or a workload that makes pods. `offered`: resources that some node has."""
    found = (
        hint for template in pod_templates([obj], "") for hint in _of_pod(template.pod, offered)
    )
    return list(dict.fromkeys(found))  # each one once


def of_pods(obj: Obj, cards: ClusterCards, systems: Set[System]) -> list[str]:
    """Why the pods of a workload will be refused, or what becomes of words of other systems in
    them: said once, not of each pod. Pods themselves were looked at before."""
    found: list[str] = []
    for template in pod_templates([obj], ""):
        pod = copy.deepcopy(template.pod)
        wrong, done = put_into_our_words(pod, cards, systems)
        # As with pods themselves: those that ask for no GPU are left alone.
        if wrong and (done.wrong or gpu_containers(pod)) and obj.get("kind") != "Pod":
            found += [f"its pods will be refused: {words}" for words in wrong]
        elif done.notes and not wrong:
            found.append(understood_words(done))
    return [words[:_LONGEST] for words in dict.fromkeys(found)]


def understood_words(done: Translation) -> str:
    return f"words of another system were understood: {'; '.join(done.notes)}"[:_LONGEST]


def _of_pod(pod: Obj, offered: Set[str]) -> Iterator[str]:
    for container in containers(pod):
        for name in {**container.amounts("requests"), **container.amounts("limits")}:
            if name in GPU_RESOURCES or name in offered:
                continue
            if name == LABEL_GPU_COUNT:
                yield (
                    f"{container.field}.resources: {name} is no resource; write it as a label of "
                    f"the pod, beside {RESOURCE_GPU_MEM}"
                )
            elif meant := _meant(name):
                yield (
                    f"{container.field}.resources: no node has {name}, so the pod would wait; did "
                    f"you mean {meant}?"
                )
    if not gpu_containers(pod) and sees_cards(pod):
        yield (
            f"{ENV_VISIBLE_DEVICES} without a request for GPUs: where NVIDIA's runtime accepts it, "
            f"the pod sees cards of others; ask for {RESOURCE_GPU} or {RESOURCE_GPU_MEM} instead"
        )
    labels = pod["metadata"].get("labels") or {}
    if LABEL_GPU_COUNT in labels and not any(map(is_shared, gpu_containers(pod))):
        yield (
            f"metadata.labels[{LABEL_GPU_COUNT}]: has no effect without {RESOURCE_GPU_MEM}; for "
            f"whole cards, write their number as {RESOURCE_GPU}"
        )


def _meant(name: str) -> str:
    """The resource of ours that was meant; empty: none."""
    domain, _, word = name.partition("/")
    if not difflib.get_close_matches(domain, _DOMAINS, 1, _ALIKE):
        return ""
    plain = re.sub(r"[^a-z0-9]", "", word.lower())
    close = difflib.get_close_matches(plain, _MEANT, 1, _ALIKE)
    return _MEANT[close[0]] if close else ""
