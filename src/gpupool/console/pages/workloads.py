"""Workloads: Deployments, StatefulSets, DaemonSets, Jobs and CronJobs, each as one value."""

from collections.abc import Callable, Collection
from functools import partial

from gpupool.console.pages.create import create_action
from gpupool.console.pages.edit import edit
from gpupool.console.pages.objects import actions_of, object_table, pages_of
from gpupool.console.pages.pods import pod_table
from gpupool.console.pages.rollouts import history, undo
from gpupool.console.pages.workload_actions import delete, restart, resume, run_now, scale, suspend
from gpupool.console.parts.cells import Age, Level, Several, State, Text
from gpupool.console.parts.kinds import Kind, Section
from gpupool.console.parts.table import Column, RowAction, view
from gpupool.console.rights import Denied
from gpupool.console.rows.pods import pod_row
from gpupool.console.rows.workloads import (
    WorkloadRow,
    cron_job_row,
    daemon_set_row,
    job_row,
    owner_of,
    workload_row,
)
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.console.words import word
from kubeclient.objects import Obj
from kubeclient.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

_WITH_PODS = word("It is deleted with all its pods.")


async def _creates(visit: Visit) -> tuple[RowAction, ...]:
    return (create_action(visit),)


def _images(row: WorkloadRow) -> Several:
    return Several(tuple(Text(each) for each in row.images))


def _image_words(row: WorkloadRow) -> str:
    return " ".join(row.images)


def _image_column(visit: Visit) -> Column[WorkloadRow]:
    return Column("image", visit.t("Image"), _images)


# -- Deployments, StatefulSets, DaemonSets -----------------------------------------------------


def _running_sentence(visit: Visit, rows: list[WorkloadRow]) -> str:
    ready = sum(row.ready >= row.wanted for row in rows)
    return visit.t("{ready} of {all} have all their pods.", ready=ready, all=len(rows))


def _running_state(visit: Visit, row: WorkloadRow) -> str:
    t = visit.t
    if row.is_ending:
        return t("It is being deleted.")
    if not row.wanted:
        return t("It wants no pods.")
    words = t("{ready} of {wanted} pods are ready.", ready=row.ready, wanted=row.wanted)
    if not row.why:
        return words
    return f"{words} {t('Pods cannot be made: {why}', why=said(t, row.why))}"


def _running_columns(visit: Visit) -> tuple[Column[WorkloadRow], ...]:
    def pods(row: WorkloadRow) -> State:
        return State(_level(row), f"{row.ready}/{row.wanted}", said(visit.t, row.why))

    return (
        Column("pods", visit.t("Pods"), pods, lambda row: row.wanted - row.ready),
        _image_column(visit),
    )


def _level(row: WorkloadRow) -> Level:
    if row.is_ending:
        return Level.PLAIN
    if row.why:
        return Level.BAD
    return Level.GOOD if row.ready >= row.wanted else Level.WAITS


# -- Jobs --------------------------------------------------------------------------------------


def _job_sentence(visit: Visit, rows: list[WorkloadRow]) -> str:
    done, failed = (sum(row.outcome == each for row in rows) for each in ("Complete", "Failed"))
    values = {"done": done, "all": len(rows), "failed": failed}
    return visit.t("{done} of {all} are complete, {failed} failed.", **values)


def _job_words(visit: Visit, row: WorkloadRow) -> tuple[Level, str]:
    t = visit.t
    if row.outcome == "Failed":
        return Level.BAD, t("Failed")
    if row.outcome:
        return Level.GOOD, t("Complete")
    if row.is_suspended:
        return Level.PLAIN, t("Suspended")
    return (Level.GOOD, t("Running")) if row.active else (Level.WAITS, t("Waiting"))


def _job_state(visit: Visit, row: WorkloadRow) -> str:
    _, words = _job_words(visit, row)
    words = visit.t(
        "{state}: {done} of {all} runs succeeded.", state=words, done=row.ready, all=row.wanted
    )
    return f"{words} {said(visit.t, row.why)}".strip()


def _job_columns(visit: Visit) -> tuple[Column[WorkloadRow], ...]:
    def state(row: WorkloadRow) -> State:
        level, words = _job_words(visit, row)
        return State(level, words, said(visit.t, row.why))

    return (
        Column("state", visit.t("State"), state, lambda row: (row.outcome, row.is_suspended)),
        Column("done", visit.t("Succeeded"), lambda row: Text(f"{row.ready}/{row.wanted}")),
        _image_column(visit),
    )


# -- CronJobs ----------------------------------------------------------------------------------


def _cron_sentence(visit: Visit, rows: list[WorkloadRow]) -> str:
    count = sum(row.is_suspended for row in rows)
    return visit.t("{all} CronJobs, {count} of them suspended.", all=len(rows), count=count)


def _cron_state(visit: Visit, row: WorkloadRow) -> str:
    t = visit.t
    if row.is_suspended:
        return t("Suspended: it makes no Jobs until it is resumed.")
    return t("It makes a Job at {schedule}. Running now: {count}.", **_cron_values(row))


def _cron_values(row: WorkloadRow) -> dict[str, object]:
    return {"schedule": row.schedule, "count": row.active}


def _cron_columns(visit: Visit) -> tuple[Column[WorkloadRow], ...]:
    t = visit.t

    def state(row: WorkloadRow) -> State:
        if row.is_suspended:
            return State(Level.PLAIN, t("Suspended"))
        return State(Level.GOOD, t("On schedule"))

    def last(row: WorkloadRow) -> Age | Text:
        return Age(row.last) if row.last else Text("–")

    return (
        Column("schedule", t("Schedule"), lambda row: Text(row.schedule)),
        Column("state", t("State"), state, lambda row: row.is_suspended),
        Column("active", t("Running"), lambda row: Text(str(row.active)), is_number=True),
        Column("last", t("Last run"), last, lambda row: row.last),
        _image_column(visit),
    )


# -- what belongs to a workload ----------------------------------------------------------------


async def _pods_of(visit: Visit, owners: Collection[str], namespace: str) -> Section:
    """`owners`: as in `PodRow.owner`."""
    t = visit.t
    try:
        rows = [row for row in await visit.rows(PODS, pod_row, namespace) if row.owner in owners]
    except Denied as denied:
        words = t("You do not have the right: {right}", right=denied.right.words)
        return Section("pods", t("Pods"), note=words)
    return Section("pods", t("Pods"), view(pod_table(visit), rows, {}))


async def _own_pods(resource: Resource, visit: Visit, _: Obj, row: WorkloadRow) -> tuple[Section]:
    return (await _pods_of(visit, {f"{resource.kind} {row.name}"}, row.namespace),)


async def _deployment_pods(visit: Visit, row: WorkloadRow) -> Section:
    """Its pods belong to ReplicaSets, which belong to it."""
    try:
        owned = (await visit.watch(REPLICA_SETS, row.namespace)).rows(owner_of)
    except Denied as denied:
        words = visit.t("You do not have the right: {right}", right=denied.right.words)
        return Section("pods", visit.t("Pods"), note=words)
    sets = {f"{REPLICA_SETS.kind} {key[1]}" for key, uid in owned.items() if uid == row.uid}
    return await _pods_of(visit, sets, row.namespace)


async def _running_parts(
    resource: Resource, visit: Visit, obj: Obj, row: WorkloadRow
) -> tuple[Section, ...]:
    if resource is DEPLOYMENTS:
        pods = await _deployment_pods(visit, row)
    else:
        pods = (await _own_pods(resource, visit, obj, row))[0]
    return (pods, await history(resource, visit, obj))


async def _cron_parts(visit: Visit, _: Obj, row: WorkloadRow) -> tuple[Section, ...]:
    t = visit.t
    try:
        watch = await visit.watch(JOBS, row.namespace)
    except Denied as denied:
        words = t("You do not have the right: {right}", right=denied.right.words)
        return (Section("jobs", t("Jobs"), note=words),)
    owners, rows = watch.rows(owner_of), watch.rows(job_row)
    mine = [rows[key] for key, uid in owners.items() if uid == row.uid]
    table = object_table(BY_NAME["jobs"], visit, {})
    return (Section("jobs", t("Jobs"), view(table, mine, {"sort": "-created"})),)


def _running(
    resource: Resource,
    title: str,
    row: Callable[[Obj], WorkloadRow] = workload_row,
    *,
    scales: bool = True,
) -> Kind[WorkloadRow]:
    first = (scale(resource),) if scales else ()
    return Kind(
        resource=resource,
        title=title,
        row=row,
        sentence=_running_sentence,
        state=_running_state,
        columns=_running_columns,
        words=_image_words,
        doings=(
            *first,
            restart(resource),
            undo(resource),
            edit(resource),
            delete(resource, _WITH_PODS),
        ),
        creates=_creates,
        sections=partial(_running_parts, resource),
    )


KINDS: tuple[Kind[WorkloadRow], ...] = (
    _running(DEPLOYMENTS, word("Deployments")),
    _running(STATEFUL_SETS, word("StatefulSets")),
    _running(DAEMON_SETS, word("DaemonSets"), daemon_set_row, scales=False),
    Kind(
        resource=JOBS,
        title=word("Jobs"),
        row=job_row,
        sentence=_job_sentence,
        state=_job_state,
        columns=_job_columns,
        words=_image_words,
        doings=(
            suspend(JOBS, word("Its pods end, and it makes no new ones until it is resumed.")),
            resume(JOBS, word("It makes its pods again.")),
            edit(JOBS),
            delete(JOBS, _WITH_PODS),
        ),
        creates=_creates,
        sections=partial(_own_pods, JOBS),
    ),
    Kind(
        resource=CRON_JOBS,
        title=word("CronJobs"),
        row=cron_job_row,
        sentence=_cron_sentence,
        state=_cron_state,
        columns=_cron_columns,
        words=lambda row: f"{row.schedule} {_image_words(row)}",
        doings=(
            run_now(),
            suspend(CRON_JOBS, word("It makes no new Jobs. Those that run stay.")),
            resume(CRON_JOBS, word("It makes Jobs by its schedule again.")),
            edit(CRON_JOBS),
            delete(CRON_JOBS, word("It is deleted with its Jobs and their pods.")),
        ),
        creates=_creates,
        sections=_cron_parts,
    ),
)
BY_NAME = {kind.path: kind for kind in KINDS}
PAGES = tuple(page for kind in KINDS for page in pages_of(kind))
ACTIONS = tuple(action for kind in KINDS for action in actions_of(kind))
