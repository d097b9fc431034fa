"""translate: a pod that asks in the words of another system, made to ask in ours.

What was asked and what it became is said in an annotation of the pod. The words of the other system
are taken out: no node offers its resources, and the pod may pass admission again.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from gpupool.admission.asked import gpu_containers, is_shared
from gpupool.admission.cards import ClusterCards
from gpupool.admission.complaints import card_count
from gpupool.admission.foreign import ack, fractioning, hami, kai
from gpupool.admission.foreign.sizes import (
    described,
    given_mib,
    sizes_for,
    units_for_mib,
    units_for_part,
)
from gpupool.admission.foreign.systems import SCHEDULERS, System
from gpupool.admission.foreign.wishes import Reading, Wish, annotations_of, labels_of
from gpupool.contract.card_choice import card_choice
from gpupool.contract.names import (
    ANNOTATION_CARD_MODELS,
    ANNOTATION_TRANSLATED,
    LABEL_GPU_COUNT,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.core.gpu import Card
from gpupool.core.pods import PodRequest
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.objects import Obj
from kubeclient.placement import node_selector, required_nodes

_READERS: dict[System, Callable[[Obj], Reading]] = {
    System.HAMI: lambda pod: hami.read(pod, System.HAMI),
    System.VOLCANO: lambda pod: hami.read(pod, System.VOLCANO),
    System.KAI: kai.read,
    System.FRACTIONING: fractioning.read,
    System.ACK: ack.read,
}
# Resources that only this system has, so that a pod which asks for them asks in its words.
RESOURCES = {
    System.HAMI: hami.resources_of(System.HAMI),
    System.VOLCANO: hami.resources_of(System.VOLCANO),
    System.ACK: (ack.GPU, ack.TFLOPS),
}
_LONGEST_NOTE = 2000


@dataclass(slots=True)
class Translation:
    """`wrong` first: if there is any, the pod is only half changed and must be refused."""

    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # none: nothing was translated


def translate(pod: Obj, cards: ClusterCards, systems: Set[System]) -> Translation:
    """Changes the pod in place. `systems`: those whose words are understood."""
    done = Translation()
    wishes: list[tuple[System, Wish]] = []
    for system in sorted(systems):
        found = _READERS[system](pod)
        done.wrong += found.wrong or _choose(pod, found)
        done.notes += found.notes
        wishes += [(system, wish) for wish in found.wishes]
        for key in found.annotations:
            annotations_of(pod).pop(key, None)
    done.wrong += _collisions(wishes)
    if not done.wrong:
        done.wrong += _set_count(pod, [wish for _, wish in wishes if not wish.whole])
    if not done.wrong:
        sizes = _sizes(pod, cards)
        for _, wish in wishes:
            _apply(wish, sizes, done)
    if not done.wrong and gpu_containers(pod):
        done.notes += _set_scheduler(pod, systems)
        if done.notes:
            note = "; ".join(done.notes)[:_LONGEST_NOTE]
            pod["metadata"].setdefault("annotations", {})[ANNOTATION_TRANSLATED] = note
    return done


def _choose(pod: Obj, found: Reading) -> list[str]:
    """Sets our annotations for the choice of cards; returns complaints."""
    annotations = annotations_of(pod)
    wrong = []
    for theirs, (key, value) in found.choices.items():
        if annotations.get(key, value) != value:
            wrong.append(f"metadata.annotations[{theirs}]: wanted it or {key}, found both")
        found.notes.append(f"{theirs}={annotations[theirs]} -> {key}={value}")
        annotations[key] = value
    return wrong


def _collisions(wishes: Sequence[tuple[System, Wish]]) -> list[str]:
    """A container asks in one way only."""
    wrong = []
    for place, (system, wish) in enumerate(wishes):
        if is_shared(wish.container):
            wrong.append(f"{wish.field}: wanted it or {RESOURCE_GPU_MEM}, found both")
        for other, earlier in wishes[:place]:
            if earlier.container.spec is wish.container.spec:
                wrong.append(f"{wish.field}: wanted words of {other} or of {system}, found both")
    return wrong


def _set_count(pod: Obj, shares: Sequence[Wish]) -> list[str]:
    """The number of cards is a label of the pod: one number for all its shares."""
    if not shares:
        return []
    counts = {wish.cards for wish in shares}
    if LABEL_GPU_COUNT in labels_of(pod) or any(map(is_shared, gpu_containers(pod))):
        counts.add(card_count(pod))
    if len(counts) > 1:
        numbers = " and ".join(map(str, sorted(counts)))
        return [f"{shares[-1].field}: wanted one number of cards for all shares, found {numbers}"]
    if counts != {1}:
        pod["metadata"].setdefault("labels", {})[LABEL_GPU_COUNT] = str(counts.pop())
    return []


def _sizes(pod: Obj, cards: ClusterCards) -> list[Card]:
    choice = card_choice(annotations_of(pod)).choice
    try:
        wanted = PodRequest(
            *("", "", ""),  # uid, namespace and name do not matter here
            resources={},
            node_selector=node_selector(pod["spec"]),
            node_terms=required_nodes(pod["spec"]),
            card_choice=choice,
        )
    except (KeyError, ValueError):  # the API server's validation comes later and says what is wrong
        wanted = PodRequest("", "", "", resources={}, card_choice=choice)
    return sizes_for(cards, wanted)


def _apply(wish: Wish, sizes: Sequence[Card], done: Translation) -> None:
    name = wish.container.spec.get("name")
    if wish.whole:
        _replace(wish, {RESOURCE_GPU: wish.cards})
        done.notes.append(f"{name}: {wish.said} -> {RESOURCE_GPU}={wish.cards}")
        return
    units = _units(wish, sizes)
    if isinstance(units, str):
        done.wrong.append(units)
        return
    amounts = {RESOURCE_GPU_MEM: units * wish.cards}
    if wish.percent:
        amounts[RESOURCE_GPU_PERCENT] = wish.percent
    _replace(wish, amounts)
    became = ", ".join(f"{key}={value}" for key, value in amounts.items())
    each = f"{units} units on each of {wish.cards} cards, " if wish.cards > 1 else ""
    rounded = f"{each}{given_mib(units, sizes)} MiB or more"
    done.notes.append(f"{name}: {wish.said} -> {became} ({rounded})")


def _units(wish: Wish, sizes: Sequence[Card]) -> int | str:
    """On each card; or why that cannot be said."""
    listed = ", ".join(dict.fromkeys(described(sizes))) or "no shared card that the pod may use"
    if wish.part is None:
        units = units_for_mib(wish.mib, sizes)
        return units or f"{wish.field}: wanted no more than a card has ({listed}), found {wish.mib}"
    answers = units_for_part(wish.part, sizes)
    if len(answers) == 1:
        return answers.pop()
    return (
        f"{wish.field}: wanted cards of one size to take a part of, found {listed}; name a model "
        f"(annotation {ANNOTATION_CARD_MODELS}) or an amount of memory ({RESOURCE_GPU_MEM})"
    )


def _replace(wish: Wish, ours: dict[str, int]) -> None:
    resources = wish.container.spec.setdefault("resources", {})
    for kind in ("limits", "requests"):
        amounts = resources.setdefault(kind, {})
        for name in wish.resources:
            amounts.pop(name, None)
        amounts |= {name: str(value) for name, value in ours.items()}


def _set_scheduler(pod: Obj, systems: Set[System]) -> list[str]:
    """The scheduler of a system that does not run here would never look at the pod."""
    named = pod["spec"].get("schedulerName")
    if not any(named in SCHEDULERS.get(system, ()) for system in systems):
        return []
    # Which scheduler that is, `inject` decides.
    pod["spec"]["schedulerName"] = DEFAULT_SCHEDULER_NAME
    return [f"schedulerName={named} -> the scheduler of gpupool"]
