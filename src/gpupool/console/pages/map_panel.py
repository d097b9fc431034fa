"""The panel of the map: what it shows at the right of the card or pod that was clicked."""

from dataclasses import dataclass

from gpupool.console.card_cells import PodKey
from gpupool.console.glossary import HEALTH
from gpupool.console.gpus import CardView, NodeView, Overview
from gpupool.console.pages.card_actions import card_actions, card_rights
from gpupool.console.pages.pod import pod_sentence
from gpupool.console.pages.pod_actions import pod_looks
from gpupool.console.pages.pod_owner import owner_cell
from gpupool.console.pages.pods import pod_state
from gpupool.console.pages.resize import resize_action
from gpupool.console.parts.cells import Age, Cell, Level, Link, State, Text
from gpupool.console.parts.table import RowAction
from gpupool.console.past import Past, past_of_cards, past_of_pod
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from gpupool.core.gpu import CardHealth
from gpupool.core.readings import CardReading
from gpupool.history.series import Kind
from kubeclient.resources import PODS


@dataclass(frozen=True, slots=True)
class Panel:
    kind: str  # "card" or "pod"
    title: str
    href: str  # the thing's own page; empty: it has none
    close: str  # the address of the map without the panel
    sentence: str
    facts: tuple[tuple[str, Cell], ...] = ()
    actions: tuple[RowAction, ...] = ()
    past: Past | None = None


async def panel_of(visit: Visit, found: Overview) -> Panel | None:
    """None: nothing was clicked."""
    query = {k: v for k, v in visit.query.items() if k not in ("card", "pod")}
    close = visit.link("map", **query)
    if uuid := visit.query.get("card", ""):
        return await _card(visit, found, uuid, close)
    if key := visit.query.get("pod", ""):
        namespace, _, name = key.partition("/")
        return await _pod(visit, found, (namespace, name), close)
    return None


async def _card(visit: Visit, found: Overview, uuid: str, close: str) -> Panel:
    t = visit.t
    place = next(
        ((node, view) for node in found.nodes for view in node.cards if view.card.uuid == uuid),
        None,
    )
    if place is None:
        return Panel("card", uuid, "", close, t("There is no such card (any more)."))
    node, view = place
    read = (await visit.readings(frozenset({node.name}))).get(uuid)
    return Panel(
        kind="card",
        title=t("Card {card} of {node}", card=view.card.index, node=node.name),
        href=visit.link("nodes", node.name),
        close=close,
        sentence=_card_sentence(t, view),
        facts=_card_facts(visit, node, view, read),
        actions=card_actions(visit, node.name, view, await visit.lacks(*card_rights(visit))),
        past=await past_of_cards(visit, Kind.CARD, uuid, ("map",)),
    )


def _card_sentence(t: Translate, view: CardView) -> str:
    card = view.card
    held = t("{used} of {all} GiB are allocated.", used=view.used, all=card.units)
    if view.is_closed:
        words = t("It takes no new pods: nobody knows how much a pod on it holds.")
    elif not card.takes_pods:
        why = said(t, card.reason) or t(HEALTH[card.health])
        words = t("It takes no new pods: {why}.", why=why)
    elif view.is_whole:
        words = t("One pod has all of it.")
    else:
        words = t("A new pod could get {free} GiB of it.", free=view.offers)
    return f"{held} {words}"


def _card_facts(
    visit: Visit, node: NodeView, view: CardView, read: CardReading | None
) -> tuple[tuple[str, Cell], ...]:
    t, card = visit.t, view.card
    found: list[tuple[str, Cell]] = [
        (t("Health"), _health(t, view)),
        (t("Model"), Text(card.model)),
        (t("Memory"), Text(f"{card.memory_mib} MiB")),
        (t("UUID"), Text(card.uuid)),
        (t("Node"), Link(node.name, visit.link("nodes", node.name))),
        (t("Node pool"), Text(node.pool or "–")),
    ]
    found.extend(_now(t, read))
    if card.outside_mib:
        found.append((t("Outside of Kubernetes"), Text(f"{card.outside_mib} MiB")))
    for part in view.parts:
        name = f"{part.namespace}/{part.pod}"
        found.append((t("Pod"), Link(name, visit.link("pods", part.namespace, part.pod))))
    return tuple(found)


def _now(t: Translate, read: CardReading | None) -> list[tuple[str, Cell]]:
    """What the card's agent says; what it does not say is left out."""
    if read is None:
        return [(t("Used"), Text("–", t("The agent of its node does not answer.")))]
    used, power = read.memory_used_mib, read.power_mw
    figures = (
        (t("Used"), used, f"{used} MiB"),
        (t("Utilisation"), read.sm_percent, f"{read.sm_percent} %"),
        (t("Temperature"), read.temperature_c, f"{read.temperature_c} °C"),
        (t("Power"), power, f"{(power or 0) / 1000:.0f} W"),
    )
    return [(label, Text(words)) for label, value, words in figures if value is not None]


def _health(t: Translate, view: CardView) -> State:
    card = view.card
    level = Level.GOOD if card.takes_pods else Level.BAD
    if card.health is CardHealth.CORDONED:
        level = Level.WAITS
    return State(level, t(HEALTH[card.health]), said(t, card.reason))


async def _pod(visit: Visit, found: Overview, key: PodKey, close: str) -> Panel:
    t, (namespace, name) = visit.t, key
    row = (await visit.watch(PODS, "")).rows(pod_row).get(key)
    if row is None:
        return Panel("pod", name, "", close, t("There is no such pod (any more)."))
    return Panel(
        kind="pod",
        title=f"{namespace}/{name}",
        href=visit.link("pods", namespace, name),
        close=close,
        sentence=pod_sentence(t, row),
        facts=_pod_facts(visit, row, await owner_cell(visit, row)),
        actions=(*await resize_action(visit, row), *await pod_looks(visit, row)),
        past=await past_of_pod(visit, row, ("map",)),
    )


def _pod_facts(visit: Visit, row: PodRow, owner: Cell) -> tuple[tuple[str, Cell], ...]:
    t = visit.t
    found: list[tuple[str, Cell]] = [
        (t("State"), pod_state(t, row)),
        (t("Belongs to"), owner),
        (t("Age"), Age(row.created)),
    ]
    if row.node:
        found.append((t("Node"), Link(row.node, visit.link("nodes", row.node))))
    for share in row.shares:
        href = visit.link("map", node=row.node, card=share.uuid)
        words = t("{card}: {memory} MiB", card=share.card, memory=share.memory_mib)
        found.append((t("Card"), Link(words, href)))
    return tuple(found)
