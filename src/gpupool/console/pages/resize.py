"""Resize: gives a running pod more or less of its card, without a restart."""

from collections.abc import Mapping

from gpupool.console.pages.pod_places import found_pod
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Denied, Right
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.core.gpu import Isolation
from gpupool.orders.shares import resize
from kubeclient.resources import PODS

_WAIT_S = 30.0  # a person looks at the dialogue meanwhile
_MOST_UNITS = 999_999


def resize_rights(namespace: str) -> tuple[Right, ...]:
    return (Right("get", PODS, namespace), Right("patch", PODS, namespace))


async def resize_action(visit: Visit, row: PodRow) -> tuple[RowAction, ...]:
    """Empty: the pod holds no card."""
    if not row.shares:
        return ()
    lacks = await visit.lacks(*resize_rights(row.namespace))
    if not _shared(row):
        lacks = visit.t("It has whole cards. Only a share of a card can be resized.")
    href = visit.link("pods", row.namespace, row.name, "resize")
    return (RowAction(visit.t("Resize"), href, lacks),)


def _shared(row: PodRow) -> dict[str, int]:
    """The units of each container that has shares, over all its cards."""
    found: dict[str, int] = {}
    for share in row.shares:
        if share.wall != Isolation.WHOLE:
            found[share.container] = found.get(share.container, 0) + share.units
    return found


async def _ask(visit: Visit) -> Question:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    row = pod_row(await found_pod(visit))
    shared = _shared(row)
    first = next(iter(shared), "")
    units = Field(
        "units",
        t("New share, in GiB"),
        FieldKind.NUMBER,
        help=t("The new total of the container, over all its cards."),
        value=str(shared.get(first, "")),
        is_required=True,
        least=1,
        most=_MOST_UNITS,
    )
    choices = tuple((each, f"{each} ({held} GiB)") for each, held in shared.items())
    container = Field("container", t("Container"), FieldKind.CHOICE, value=first, choices=choices)
    return Question(
        title=t("Resize pod {name}", name=name),
        sentence=await _sentence(visit, row, shared),
        button=t("Resize"),
        fields=(container, units) if len(shared) > 1 else (units,),
        command=f"gpupool resize {name} --namespace {namespace} --gpu-mem {shared.get(first, 1)}",
    )


async def _sentence(visit: Visit, row: PodRow, shared: Mapping[str, int]) -> str:
    t = visit.t
    if not shared:
        return t("It has no share of a card.")
    words = t(
        "It has {units} GiB. It keeps running, and never gets more than its card has left, nor "
        "less than it uses. A pod that replaces it has the share of its workload again.",
        units=sum(shared.values()),
    )
    free = await _free(visit, row)
    return words if free is None else f"{words} " + t("Its card has {free} GiB left.", free=free)


async def _free(visit: Visit, row: PodRow) -> int | None:
    """On the fullest of its cards. None: the visitor may not see who holds what."""
    try:
        found = await visit.gpus()
    except Denied:
        return None
    mine = {share.uuid for share in row.shares}
    cards = (card for node in found.nodes if node.name == row.node for card in node.cards)
    return min((card.free for card in cards if card.card.uuid in mine), default=None)


async def _resize(visit: Visit, values: Mapping[str, str]) -> Done:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    outcome = await resize(
        visit.kube, (namespace, name), values.get("container", ""), int(values["units"]), _WAIT_S
    )
    verdict, _, words = outcome.partition(": ")
    if verdict != "done":
        raise Invalid({"units": t("Not resized: {why}.", why=said(t, words or outcome))})
    href = visit.link("pods", namespace, name)
    return Done(href, t("Pod {name} is resized: {words}.", name=name, words=said(t, words)))


RESIZE = Action(
    "pods/{namespace}/{name}/resize",
    "pods",
    lambda visit: resize_rights(visit.names["namespace"]),
    _ask,
    _resize,
)
