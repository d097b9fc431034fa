"""Draining a node: the question, the page that shows how far it is, and the way to stop it."""

from collections.abc import Awaitable, Callable, Mapping

from gpupool.console.drain import Drain, Fate, Phase, cordoned, drain_topic, fate_of, pods_on
from gpupool.console.pages.node_actions import known_node
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.cells import Level, State
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

RIGHTS = (
    Right("patch", NODES),
    Right("list", PODS),
    Right("create", PODS, subresource="eviction"),
)
_MOST_NAMED = 5
_PHASES = {
    Phase.RUNNING: (Level.WAITS, word("Draining")),
    Phase.DONE: (Level.GOOD, word("Drained")),
    Phase.STOPPED: (Level.PLAIN, word("Stopped")),
    Phase.FAILED: (Level.BAD, word("Failed")),
}


async def drain_action(visit: Visit, name: str) -> RowAction:
    """Leads to the drain that runs, or asks whether to begin one."""
    t, drain = visit.t, visit.drain_of(name)
    if drain is not None and drain.phase is Phase.RUNNING:
        href = visit.link("nodes", name, "draining")
        return RowAction(t("Progress of the drain"), href, is_page=True)
    return RowAction(t("Drain"), visit.link("nodes", name, "drain"), await visit.lacks(*RIGHTS))


async def _ask(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    await known_node(visit)
    pods = await pods_on(visit.kube, name)
    return Question(
        title=t("Drain node {name}", name=name),
        sentence=drain_words(t, pods),
        button=t("Drain"),
        fields=consents(t, pods),
        is_dangerous=True,
        command=_command(name, pods),
    )


def drain_words(t: Translate, pods: list[Obj]) -> str:
    fates = [fate_of(pod) for pod in pods]
    stays = fates.count(Fate.STAYS)
    return t(
        "The node gets no new pods. Pods to evict, as their disruption budgets allow: {go}. "
        "Pods that stay, because they belong to DaemonSets or to the node: {stay}. This goes on if "
        "you close the page, and stops when you sign out or the console ends; then the node stays "
        "unschedulable.",
        go=len(fates) - stays,
        stay=stays,
    )


def consents(t: Translate, pods: list[Obj]) -> tuple[Field, ...]:
    """What `kubectl drain` wants to be told as well before it takes something away for ever."""
    asked = (
        (Fate.LOST, t("End pods that nobody makes again")),
        (Fate.LOSES_DATA, t("Delete the data that pods have in an emptyDir")),
    )
    return tuple(
        Field(_field(fate), label, FieldKind.CHECK, ", ".join(found))
        for fate, label in asked
        if (found := _named(pods, fate))
    )


def check_consents(t: Translate, pods: list[Obj], values: Mapping[str, str]) -> None:
    """Raises Invalid. Looks again: there may be other pods than in the form."""
    for fate in (Fate.LOST, Fate.LOSES_DATA):
        if (found := _named(pods, fate)) and not values.get(_field(fate)):
            words = t("Wanted your consent, because of: {pods}", pods=", ".join(found))
            # A field that the form did not have yet has no place for the words.
            raise Invalid({_field(fate) if _field(fate) in values else "": words})


def _field(fate: Fate) -> str:
    return "lost" if fate is Fate.LOST else "data"


def _named(pods: list[Obj], fate: Fate) -> list[str]:
    metas = [pod["metadata"] for pod in pods if fate_of(pod) is fate]
    names = [f"{meta['namespace']}/{meta['name']}" for meta in metas]
    more = [f"+{len(names) - _MOST_NAMED}"] if len(names) > _MOST_NAMED else []
    return names[:_MOST_NAMED] + more


def _command(name: str, pods: list[Obj]) -> str:
    fates = {fate_of(pod) for pod in pods}
    flags = ["--ignore-daemonsets"]
    flags += ["--force"] if Fate.LOST in fates else []
    flags += ["--delete-emptydir-data"] if Fate.LOSES_DATA in fates else []
    return f"kubectl drain {name} {' '.join(flags)}"


async def _begin(visit: Visit, values: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["node"]
    check_consents(t, await pods_on(visit.kube, name), values)
    await begin_drain(visit, name)
    words = t("Node {name} is being drained.", name=name)
    return Done(visit.link("nodes", name, "draining"), words)


async def begin_drain(
    visit: Visit, name: str, then: Callable[[], Awaitable[None]] | None = None
) -> None:
    """`then` is called when it is drained. Raises Invalid, KubeError."""
    sight = visit.session.sight
    known = sight.drains.of(name)
    if known is not None and known.phase is Phase.RUNNING:
        raise Invalid({"": visit.t("This node is being drained already.")})
    if sight.drains.is_full():
        raise Invalid({"": visit.t("Too many nodes are being drained. Wait for one of them.")})
    node = await cordoned(visit.kube, name)
    topic = drain_topic(name)
    drain = Drain(name, node["metadata"]["uid"], lambda: sight.watches.say(topic))
    sight.drains.begin(visit.kube, drain, then)
    drain.changed()


async def _ask_stop(visit: Visit) -> Question:
    t, name = visit.t, visit.names["node"]
    return Question(
        title=t("Stop draining node {name}", name=name),
        sentence=t("Pods that were evicted do not come back. The node stays unschedulable."),
        button=t("Stop the drain"),
    )


async def _stop(visit: Visit, _: Mapping[str, str]) -> Done:
    t, name = visit.t, visit.names["node"]
    await visit.session.sight.drains.stop(name, word("You have stopped it."))
    words = t("The drain of node {name} has stopped.", name=name)
    return Done(visit.link("nodes", name, "draining"), words)


async def _show(visit: Visit) -> Shown:
    t, name = visit.t, visit.names["node"]
    drain = visit.drain_of(name)
    is_there = (await visit.watch(NODES)).mirror.get(name) is not None
    crumbs = [(t("Nodes"), visit.link("nodes"))]
    if is_there:
        crumbs.append((name, visit.link("nodes", name)))
    return Shown(
        title=t("Drain of node {name}", name=name),
        sentence=_sentence(t, drain),
        crumbs=tuple(crumbs),
        actions=await _actions(visit, name, drain, is_there=is_there),
        command=f"kubectl drain {name} --ignore-daemonsets",
        values={"drain": drain, "state": _state(t, drain)},
    )


def _state(t: Translate, drain: Drain | None) -> State:
    level, words = _PHASES[drain.phase] if drain is not None else (Level.PLAIN, word("Not running"))
    return State(level, t(words))


def _sentence(t: Translate, drain: Drain | None) -> str:
    if drain is None:
        return t("This console is not draining the node; it may have been started again since.")
    gone = drain.total - len(drain.left)
    words = t("{gone} of {all} pods have left the node.", gone=gone, all=drain.total)
    if drain.is_removed:
        return words + " " + t("The node is removed.")
    if drain.phase is Phase.DONE:
        return words + " " + t("It can be worked on, and takes no pods until it is schedulable.")
    if drain.why:
        return f"{words} {t(drain.why)}"
    return (
        words + " " + t("You may close this page; it stops when you sign out or the console ends.")
    )


async def _actions(
    visit: Visit, name: str, drain: Drain | None, *, is_there: bool
) -> tuple[RowAction, ...]:
    t = visit.t
    if drain is not None and drain.phase is Phase.RUNNING:
        href = visit.link("nodes", name, "drain", "stop")
        return (RowAction(t("Stop the drain"), href),)
    if not is_there:
        return ()
    lacks = await visit.lacks(Right("patch", NODES))
    uncordon = visit.link("nodes", name, "uncordon")
    again = RowAction(t("Drain"), visit.link("nodes", name, "drain"), await visit.lacks(*RIGHTS))
    back = RowAction(t("Set schedulable"), uncordon, lacks)
    # The first one is what a reader wants next.
    return (back, again) if drain is not None and drain.phase is Phase.DONE else (again, back)


def _rights(_: Visit) -> tuple[Right, ...]:
    return RIGHTS


PAGE = Page("nodes/{node}/draining", "nodes", _show, template="node_drain.html")
ACTIONS = (
    Action("nodes/{node}/drain", "nodes", _rights, _ask, _begin),
    Action("nodes/{node}/drain/stop", "nodes", _rights, _ask_stop, _stop),
)
