"""Chooses how cards get into the containers of this node, from what was found there. Pure.

Each way is known by a fact that shows that it works, not by a setting that says so:

    runtime         the agent's own container asked by NVIDIA_VISIBLE_DEVICES, has no runtime class
                    and no privilege, and has NVIDIA's control device: the default runtime did that
    runtime-class   the same with the agent's own class; or the kubelet lists the class's handler
    nvidia-nri      the pod on this node that runs NVIDIA's plugin is ready, and CDI files name the
                    cards; or the agent's own container got its devices by the annotation
    nri             the container runtime has accepted the agent as a plugin
    mounts          the agent was told what to mount

The order prefers what changes least: nothing at all, then what somebody has set up for us on
purpose (the NRI socket, mounts), then what the pod must be changed for. NVIDIA's plugin comes last,
because containers start without cards while it is away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpupool.core.gpu import CardHealth, Inventory
from gpupool.core.ways import OTHERS_PUT_IN, Way, Ways

ORDER = (Way.RUNTIME, Way.NRI, Way.MOUNTS, Way.RUNTIME_CLASS, Way.NVIDIA_NRI)

# Ways that a person may know of although nothing that the agent sees shows them.
_TRUSTED = (Way.RUNTIME, Way.NVIDIA_NRI)
_MISSING = {
    Way.NRI: "the agent was given no NRI socket (agent.nri.enabled, --nri)",
    Way.MOUNTS: "the agent was given no mounts (agent.mounts, --mount)",
    Way.RUNTIME_CLASS: "the cluster has no runtime class with a handler of NVIDIA",
}
NOTHING_FOUND = (
    "the default runtime does not add cards, no runtime class of NVIDIA works on this node, "
    "NVIDIA's NRI plugin does not run here, and the agent has neither an NRI socket nor mounts"
)
DEFAULT_CDI_KIND = "nvidia.com/gpu"


def choose(
    found: Mapping[Way, str],
    *,
    pinned: Way | None = None,
    runtime_class: str = "",
    cdi_kind: str = "",
) -> Ways:
    """`found`: the ways that the node has, each with what keeps it from working now (empty: it
    works). Of these the first in order is chosen, even if it does not work now: a way that is away
    for a minute must not send the next pods another way."""
    known = tuple(way for way in ORDER if way in found)
    if pinned is not None:
        chosen, problem = pinned, found.get(pinned, _not_found(pinned, runtime_class))
    elif known:
        chosen, problem = known[0], found[known[0]]
    else:
        return Ways(problem=NOTHING_FOUND)
    if Way.RUNTIME_CLASS not in (*known, chosen):
        runtime_class = ""  # there is one, and nothing shows that it works on this node
    kind = (cdi_kind or DEFAULT_CDI_KIND) if chosen is Way.NVIDIA_NRI else ""
    return Ways(chosen, problem, known, runtime_class, kind, pinned is not None)


def _not_found(way: Way, runtime_class: str) -> str:
    # Older container runtimes do not tell the kubelet which handlers they have.
    if way in _TRUSTED or (way is Way.RUNTIME_CLASS and runtime_class):
        return ""
    return f"the way is pinned to {way}, and {_MISSING[way]}"


def way_of(text: str) -> Way | None:
    """Of a label or an option; None: of any other text, `auto` among them."""
    return Way(text) if text in list(Way) else None


def without_closed_cards(inventory: Inventory) -> Inventory:
    """Where cards do not get into containers, none of them takes pods: whoever reads the inventory
    must not give out what never arrives. What is wrong with a card itself stays its reason, from
    which the next agent learns of XIDs."""
    ways = inventory.ways
    if ways is None or ways.is_open:
        return inventory
    closed = {"health": CardHealth.UNHEALTHY, "reason": no_way_words(ways)}
    cards = (replace(c, **closed) if c.takes_pods else c for c in inventory.cards)  # type: ignore[arg-type]
    return replace(inventory, cards=tuple(cards))


def refusal_of(node: str, ways: Ways) -> str:
    """What Allocate says to pods that come although no card takes any; empty: it gives devices. Our
    own plugin holds containers back by itself, and lets them start when it is back."""
    if ways.is_open or ways.chosen is Way.NRI:
        return ""
    return f"node {node}: {no_way_words(ways)}"


def card_check(node: str, ways: Ways, devices: Sequence[str]) -> str:
    """What the limiter checks in containers that are made now; empty: nothing. By these ways,
    others put the card in, and the runtime goes on without them. `devices`: one of them is in every
    container with a card."""
    if not devices or ways.chosen not in OTHERS_PUT_IN:
        return ""
    return f"{':'.join(devices)} node {node}, way {ways.words}"


def no_way_words(ways: Ways) -> str:
    by = f" by {ways.chosen.words}" if ways.chosen is not None else ""
    return f"cards do not get into containers{by}: {ways.problem}"
