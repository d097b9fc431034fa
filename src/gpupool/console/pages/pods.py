"""Pods: the list."""

from functools import partial

from gpupool.console.glossary import WALLS
from gpupool.console.gpus import asked_words
from gpupool.console.pages.create import create_action
from gpupool.console.pages.pod_actions import pod_actions
from gpupool.console.parts.cells import Age, Level, Link, Several, State, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, Table, view
from gpupool.console.rights import Right
from gpupool.console.rows.pods import HeldShare, PodRow, pod_row
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from kubeclient.resources import PODS

_GOOD = ("Running", "Completed", "Succeeded")
_STATES = {
    "Running": word("Running"),
    "Pending": word("Waiting"),
    "Completed": word("Completed"),
    "Succeeded": word("Completed"),
    "Error": word("Error"),
    "Failed": word("Failed"),
    "Unknown": word("Unknown"),
    "Terminating": word("Terminating"),
}
_SOON = ("Pending", "ContainerCreating", "PodInitializing", "Terminating")


async def _show(visit: Visit) -> Shown:
    t = visit.t
    rows = await visit.rows(PODS, pod_row)
    lacks = await visit.lacks(Right("delete", PODS, visit.namespace))
    waiting = sum(row.waits for row in rows)
    with_gpus = sum(bool(row.shares) for row in rows)
    sentence = t("{all} pods, {gpus} of them hold cards.", all=len(rows), gpus=with_gpus)
    if waiting:
        sentence += " " + t("Waiting pods: {count}.", count=waiting)
    where = f"--namespace {visit.namespace}" if visit.namespace else "--all-namespaces"
    return Shown(
        title=t("Pods"),
        sentence=sentence,
        command=f"kubectl get pods {where} -o wide",
        table=view(pod_table(visit, lacks), rows, visit.query),
    )


def pod_table(visit: Visit, lacks: str | None = None) -> Table[PodRow]:
    """`lacks`: why the visitor may not delete pods; None: the table has no actions."""
    t = visit.t
    return Table(
        columns=(
            Column(
                "name",
                t("Name"),
                lambda row: Link(row.name, visit.link("pods", row.namespace, row.name)),
                lambda row: row.name,
            ),
            Column(
                "in", t("Namespace"), lambda row: Text(row.namespace), lambda row: row.namespace
            ),
            Column("state", t("State"), lambda row: pod_state(t, row), lambda row: row.state),
            Column(
                "gpu",
                t("Cards"),
                lambda row: _cards(t, row),
                lambda row: sum(share.memory_mib for share in row.shares),
            ),
            Column("node", t("Node"), lambda row: _node(visit, row), lambda row: row.node),
            Column("restarts", t("Restarts"), _restarts, lambda row: row.restarts, is_number=True),
            Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
        ),
        key=lambda row: f"{row.namespace}/{row.name}",
        words=lambda row: f"{row.namespace}/{row.name} {row.node} {row.owner} {row.state}",
        choices=(
            Choice("state", t("State"), lambda row: row.state, partial(state_word, t)),
            Choice("gpus", t("Cards"), _kind_of_cards, t),
        ),
        actions=lambda row: pod_actions(visit, row, lacks) if lacks is not None else (),
        order="name",
        empty=t("There are no pods here."),
        # A table inside of another page lists what belongs to that.
        empty_action=create_action(visit) if lacks is not None else None,
    )


def pod_state(t: Translate, row: PodRow) -> State:
    title = said(t, row.why)
    if row.state == "Running":
        level = Level.GOOD if row.is_ready else Level.WAITS
        return State(level, f"{t('Running')} {row.ready}/{row.containers}", title)
    if row.waits:
        return State(Level.WAITS, t("Waiting"), title)
    level = Level.PLAIN if row.state in (*_GOOD, *_SOON) else Level.BAD
    return State(level, state_word(t, row.state), title)


def state_word(t: Translate, state: str) -> str:
    """Reasons of Kubernetes that are no words (CrashLoopBackOff) stay as they are."""
    return t(_STATES.get(state, state))


def share_words(t: Translate, share: HeldShare) -> str:
    return t(
        "card {card}: {memory} MiB, {isolation}",
        card=share.card,
        memory=share.memory_mib,
        isolation=t(WALLS[share.wall]),
    )


def _cards(t: Translate, row: PodRow) -> Several | Text:
    if row.shares:
        return Several(tuple(Text(share_words(t, share)) for share in row.shares))
    if row.asks and not row.is_over:
        return Text(t("wants {asks}", asks=asked_words(t, row.asks)))
    return Text("–")


def _kind_of_cards(row: PodRow) -> str:
    return WALLS[row.shares[0].wall] if row.shares else ""


def _node(visit: Visit, row: PodRow) -> Link | Text:
    return Link(row.node, visit.link("nodes", row.node)) if row.node else Text("–")


def _restarts(row: PodRow) -> Text:
    return Text(str(row.restarts))


PAGE = Page(path="pods", menu="pods", show=_show)
