"""Clusters: those of this machine, and those that the kubeconfig names."""

import asyncio
from dataclasses import dataclass

from gpupool.console.cluster_jobs import Job, Verb
from gpupool.console.own_clusters import Figures, OwnClusters
from gpupool.console.parts.cells import Bar, Level, Link, Several, State, Text
from gpupool.console.parts.missing import NoSuchThing
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Column, RowAction, Table, view
from gpupool.console.platform import RUNNING, STOPPED, Known
from gpupool.console.render import cluster_address
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word

_STATES = {
    RUNNING: (Level.GOOD, word("Running")),
    "Starting": (Level.WAITS, word("Starting")),
    "Stopping": (Level.WAITS, word("Stopping")),
    STOPPED: (Level.PLAIN, word("Stopped")),
}
_JOBS = {
    Verb.CREATE: word("Creating"),
    Verb.START: word("Starting"),
    Verb.STOP: word("Stopping"),
    Verb.DELETE: word("Deleting"),
}


@dataclass(frozen=True, slots=True)
class _Row:
    cluster: Known
    figures: Figures | None
    job: Job | None  # that runs, or has failed


async def _show(visit: Visit) -> Shown:
    t, own = visit.t, needed(visit)
    rows = await _rows(visit, own)
    running = sum(row.figures is not None for row in rows)
    create = RowAction(
        t("Create cluster"),
        visit.link("create", "cluster"),
        "" if own.platform.program else t("No clusters can be made on this machine."),
        is_page=True,
    )
    return Shown(
        title=t("Clusters"),
        sentence=t("{running} of {all} clusters run.", running=running, all=len(rows)),
        actions=(create, *_instances(visit, own)),
        command="gpupool clusters\nkubectl config get-contexts",
        table=view(_table(visit, create), rows, visit.query),
    )


def _instances(visit: Visit, own: OwnClusters) -> tuple[RowAction, ...]:
    if own.platform.desk is None:
        return ()
    link = visit.link("instances")
    return (RowAction(visit.t("Existing instances"), link, is_page=True),)


def needed(visit: Visit) -> OwnClusters:
    """Raises NoSuchThing: a console that serves others shows one cluster."""
    own = visit.own_clusters()
    if own is None:
        raise NoSuchThing(visit.t("Clusters: this console serves others, and shows one cluster."))
    return own


async def _rows(visit: Visit, own: OwnClusters) -> list[_Row]:
    await own.tidy(visit.session)
    known = list(await own.known())
    there = {each.name for each in known if each.is_local}
    # One that is being made may have no directory yet; one whose making failed never gets one.
    known += [
        Known(own.platform.local_key(job.name), job.name, is_local=True)
        for job in own.jobs.all()
        if job.name not in there and (job.is_running or job.code)
    ]
    figures = await asyncio.gather(*(own.figures(visit.session, each) for each in known))
    return [_Row(each, found, _job(own, each)) for each, found in zip(known, figures, strict=True)]


def _job(own: OwnClusters, cluster: Known) -> Job | None:
    job = own.jobs.of(cluster.name) if cluster.is_local else None
    return job if job is not None and (job.is_running or job.code) else None


def _table(visit: Visit, create: RowAction) -> Table[_Row]:
    t = visit.t
    return Table(
        columns=(
            Column("name", t("Name"), lambda row: _name(visit, row), lambda row: row.cluster.name),
            Column("state", t("State"), lambda row: _state(t, row)),
            Column(
                "version",
                t("Version"),
                lambda row: Text(row.figures.version if row.figures else "–"),
            ),
            Column(
                "nodes", t("Nodes"), _nodes, lambda row: row.figures.nodes if row.figures else -1
            ),
            Column(
                "cards",
                t("Cards"),
                _cards,
                lambda row: row.figures.gpus.cards if row.figures else -1,
            ),
            Column("allocated", t("Allocated"), _allocated),
        ),
        key=lambda row: row.cluster.key,
        words=lambda row: f"{row.cluster.name} {row.cluster.key} {row.cluster.server}",
        actions=lambda row: _actions(visit, row),
        order="name",
        empty=t("There are no clusters."),
        empty_action=create,
    )


def _name(visit: Visit, row: _Row) -> Several:
    t, cluster = visit.t, row.cluster
    is_open = row.figures is not None or not cluster.is_local
    href = f"{cluster_address(cluster.key)}/overview"
    name = Link(cluster.name, href) if is_open else Text(cluster.name)
    where = t("on this machine") if cluster.is_local else t("context of the kubeconfig")
    return Several((name, Text(where, cluster.server)))


def _state(t: Translate, row: _Row) -> Several:
    if row.job is not None and row.job.is_running:
        return Several((State(Level.WAITS, t(_JOBS[row.job.verb])), Text(row.job.last_line)))
    level, words = _STATES.get(row.cluster.state, (Level.PLAIN, word("Not asked yet")))
    if row.figures is not None:
        level, words = _STATES[RUNNING]
    elif row.cluster.state == RUNNING:
        level, words = Level.BAD, word("Does not answer")
    state = State(level, t(words))
    if row.job is not None:
        failed = State(Level.BAD, t("{what}: failed", what=t(_JOBS[row.job.verb])))
        return Several((failed, Text(row.job.last_line, row.job.text)))
    return Several((state,))


def _nodes(row: _Row) -> Text:
    return Text(f"{row.figures.ready}/{row.figures.nodes}" if row.figures else "–")


def _cards(row: _Row) -> Text:
    return Text(str(row.figures.gpus.cards) if row.figures else "–")


def _allocated(row: _Row) -> Bar | Text:
    if row.figures is None or not row.figures.gpus.units:
        return Text("–")
    gpus = row.figures.gpus
    return Bar(gpus.used, gpus.units, f"{gpus.used} / {gpus.units} GiB")


def _actions(visit: Visit, row: _Row) -> tuple[RowAction, ...]:
    own, t, cluster = visit.own, visit.t, row.cluster
    busy = row.job is not None and row.job.is_running
    if own is None or not own.platform.program or not cluster.is_local or busy:
        return ()
    if not cluster.state:  # making it has failed, and nothing is there
        return (RowAction(t("Forget"), visit.link("clusters", cluster.name, "forget")),)
    link = visit.link("clusters", cluster.name, "start")
    change = RowAction(t("Start"), link)
    if cluster.state != STOPPED:
        change = RowAction(t("Stop"), visit.link("clusters", cluster.name, "stop"))
    delete = visit.link("clusters", cluster.name, "delete")
    return (change, RowAction(t("Delete"), delete, is_dangerous=True))


PAGE = Page("clusters", "clusters", _show)
