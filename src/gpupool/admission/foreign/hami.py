"""The words of HAMi and of volcano-vgpu: the same meaning under different names.

Amounts are for each card, memory is in MiB. Without an amount of memory a container gets all
memory of its cards. 100 percent of compute means a card alone, so it gets all memory of it, too.
Models are named by any part of their name.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from gpupool.admission.asked import PodContainer, containers, is_shared
from gpupool.admission.foreign.systems import System
from gpupool.admission.foreign.wishes import (
    WHOLE_CARD,
    Reading,
    Wish,
    amount,
    annotations_of,
    listed,
)
from gpupool.contract.gpu_asks import MAX_CARDS
from gpupool.contract.names import (
    ANNOTATION_AVOIDED_MODELS,
    ANNOTATION_AVOIDED_UUIDS,
    ANNOTATION_CARD_MODELS,
    ANNOTATION_CARD_UUIDS,
    RESOURCE_GPU,
)
from gpupool.core.gpu import WHOLE_CARD_PERCENT
from kubeclient.objects import Obj


class Names(NamedTuple):
    number: str  # of cards
    memory: str
    part: str
    cores: str


NAMES = {
    System.HAMI: Names(
        RESOURCE_GPU, "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
    ),
    System.VOLCANO: Names(
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores",
    ),
}
PRIORITY = "nvidia.com/priority"


def _any_part(names: str) -> str:
    """HAMi finds its names anywhere in the name of a model, ours are whole words."""
    return ",".join(f"*{name.strip()}*" for name in names.split(",") if name.strip())


_CHOICES: dict[str, tuple[str, Callable[[str], str]]] = {
    "nvidia.com/use-gputype": (ANNOTATION_CARD_MODELS, _any_part),
    "nvidia.com/nouse-gputype": (ANNOTATION_AVOIDED_MODELS, _any_part),
    "nvidia.com/use-gpuuuid": (ANNOTATION_CARD_UUIDS, str),
    "nvidia.com/nouse-gpuuuid": (ANNOTATION_AVOIDED_UUIDS, str),
}
# Values that ask for nothing beside what we do anyway; all others ask for what we have not.
_HARMLESS = {
    "nvidia.com/vgpu-mode": ("hami-core", ""),
    "nvidia.com/numa-bind": ("false", ""),
}
# Which of several good places is taken: preferences, so nothing is lost without them.
_PREFERENCES = ("hami.io/node-scheduler-policy", "hami.io/gpu-scheduler-policy")


def resources_of(system: System) -> tuple[str, ...]:
    """Resources that no pod asks for but in the words of this system."""
    names = NAMES[system]
    own = tuple(name for name in names if name != RESOURCE_GPU)
    return (*own, PRIORITY) if system is System.HAMI else own


def read(pod: Obj, system: System) -> Reading:
    found = Reading()
    for container in containers(pod):
        wish = _wish(container, system)
        if isinstance(wish, Wish):
            found.wishes.append(wish)
        elif wish:
            found.wrong.append(wish)
    # Whole cards are asked for in the same words by everybody.
    if found.wishes or (system is System.HAMI and _asks_for_cards(pod)):
        _read_annotations(pod, found)
    return found


def _asks_for_cards(pod: Obj) -> bool:
    return any(each.asks(RESOURCE_GPU) or is_shared(each) for each in containers(pod))


def _wish(container: PodContainer, system: System) -> Wish | str | None:
    names = NAMES[system]
    amounts = {**container.amounts("requests"), **container.amounts("limits")}
    field = f"{container.field}.resources.limits"
    if system is System.HAMI and str(amounts.get(PRIORITY, "0")) != "0":
        return (
            f"{field}[{PRIORITY}]: wanted none, because pods of one card have no order here, "
            f"found {amounts[PRIORITY]}"
        )
    own = [name for name in resources_of(system) if name in amounts]
    if all(str(amounts[name]) == "0" for name in own):
        return None
    memory = amount(amounts.get(names.memory, 0), f"{field}[{names.memory}]", 0, unit=" of MiB")
    part = amount(amounts.get(names.part, 0), f"{field}[{names.part}]", 0, WHOLE_CARD_PERCENT)
    cores = amount(amounts.get(names.cores, 0), f"{field}[{names.cores}]", 0, WHOLE_CARD_PERCENT)
    count = amount(amounts.get(names.number, 1), f"{field}[{names.number}]", 1, MAX_CARDS)
    if isinstance(memory, str) or isinstance(part, str):
        return memory if isinstance(memory, str) else str(part)
    if isinstance(cores, str) or isinstance(count, str):
        return cores if isinstance(cores, str) else str(count)
    if memory and part:
        return f"{field}: wanted {names.memory} or {names.part}, found both"
    used = tuple(dict.fromkeys([*([names.number] if names.number in amounts else []), *own]))
    said = listed((name, amounts[name]) for name in used)
    wish = Wish(container, f"{field}[{used[0]}]", said, cards=count, resources=used)
    if not memory and not part and not cores:
        return wish._replace(whole=True)
    wish = wish._replace(percent=cores)
    if memory and cores != WHOLE_CARD_PERCENT:
        return wish._replace(field=f"{field}[{names.memory}]", mib=memory)
    if part and cores != WHOLE_CARD_PERCENT:
        return wish._replace(field=f"{field}[{names.part}]", part=Fraction(part, 100))
    return wish._replace(field=f"{field}[{names.cores}]", part=WHOLE_CARD)


def _read_annotations(pod: Obj, found: Reading) -> None:
    annotations = annotations_of(pod)
    for key, (ours, rewritten) in _CHOICES.items():
        if key in annotations:
            found.annotations.append(key)
            found.choices[key] = (ours, rewritten(annotations[key]))
    for key, harmless in _HARMLESS.items():
        if annotations.get(key, "") not in harmless:
            found.wrong.append(
                f"metadata.annotations[{key}]: wanted none or {harmless[0]}, because gpupool has "
                f"nothing like it, found {annotations[key]}"
            )
        elif key in annotations:
            found.annotations.append(key)
    for key in _PREFERENCES:
        if key in annotations:
            found.annotations.append(key)
            found.notes.append(f"{key}={annotations[key]} has no effect")
