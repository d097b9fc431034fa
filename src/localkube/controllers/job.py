"""The Job controller: pods that run to their end, until enough of them have succeeded or too many
have failed. And the controller that deletes finished Jobs after their ttlSecondsAfterFinished.
"""

import contextlib
from collections.abc import Iterable
from functools import partial

from kubeclient.client import STRATEGIC_PATCH
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key, controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import JOBS, PODS
from localkube.controllers import job_plan, job_tracking, ownership
from localkube.controllers.expectations import Expectations
from localkube.controllers.job_plan import Failures, Outcome, Tally
from localkube.controllers.job_pods import (
    CONTROLLER_NAME,
    FINALIZER,
    JobPod,
    job_pod_of,
    new_indexed_pod,
    new_pod,
    task_of,
)
from localkube.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from localkube.controllers.pods import controller_of, is_terminating, label, parse_time, stamp
from localkube.controllers.pods import is_finished as is_over
from localkube.controllers.run import Context, Controller, KeysOf, Watch

_LATE_S = 1.0  # until the next look, while the mirrors do not show our own writes yet
_TRACKED, _OPEN = "tracked by job", "open"  # names of indexes of pods
_NAME_LABEL = "batch.kubernetes.io/job-name"


def controller() -> Controller:
    expectations, adopters = Expectations(), ownership.Adopters("Job")
    failures: dict[str, Failures] = {}  # by the Job's uid; lost at a restart, as in Kubernetes

    async def reconcile(key: Key, context: Context) -> float | None:
        job = context.of(JOBS).get(key[1], key[0])
        await _release_orphans(key, job, context)
        if job is None:
            expectations.forget(key)
            return None
        uid = job["metadata"]["uid"]
        if job["spec"].get("managedBy", CONTROLLER_NAME) != CONTROLLER_NAME:
            return None
        if job_tracking.finished_condition(job) is not None:
            failures.pop(uid, None)
            return None
        return await _Job(job, key, context, expectations, failures).step()

    def add_indexes(context: Context) -> None:
        ownership.add_indexes(context.of(PODS))
        context.of(PODS).add_index(_TRACKED, _tracked_keys)
        context.of(PODS).add_index(_OPEN, _open_keys)
        adopters.follow(context.of(JOBS))

    return Controller(
        "job-controller",
        (Watch(JOBS), Watch(PODS, _pod_keys(adopters))),
        reconcile,
        add_indexes=add_indexes,
    )


def _is_tracked(pod: Obj) -> bool:
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def _job_name(pod: Obj) -> str:
    """The name of the Job that the pod belongs to, or belonged to before it was orphaned."""
    owner = controller_of(pod)
    if owner is None:
        return label(pod, _NAME_LABEL)
    return str(owner["name"]) if owner["kind"] == "Job" else ""


def _tracked_keys(pod: Obj) -> list[str]:
    name = _job_name(pod) if _is_tracked(pod) else ""
    return [f"{pod['metadata']['namespace']}/{name}"] if name else []


def _open_keys(pod: Obj) -> list[str]:
    """Leaves out the pods that have ended and have been counted: a Job may have thousands of them,
    and none of its decisions needs them."""
    return [controller_uid(pod)] if _is_tracked(pod) or not is_over(pod) else []


def _pod_keys(adopters: ownership.Adopters) -> KeysOf:
    of_owners = adopters.keys()

    def keys(pod: Obj, context: Context) -> Iterable[Key]:
        yield from of_owners(pod, context)
        if _is_tracked(pod) and not controller_uid(pod) and _job_name(pod):
            yield pod["metadata"]["namespace"], _job_name(pod)

    return keys


async def _release_orphans(key: Key, job: Obj | None, context: Context) -> None:
    """Removes our finalizer from pods whose Job is gone. Nobody else would, and the API server
    keeps a deleted pod until its last finalizer is removed."""
    found = context.of(PODS).by(_TRACKED, "/".join(key))
    for pod in found if job is None else _strangers(job, found):
        metadata = pod["metadata"]
        await _untrack(context, metadata["name"], metadata["namespace"], metadata["uid"])


def _strangers(job: Obj, pods: Iterable[Obj]) -> Iterable[Obj]:
    """The pods that neither belong to the Job nor are about to be adopted by it."""
    is_selected = ownership.selected_by(job)
    for pod in pods:
        owner = controller_uid(pod)
        if owner == job["metadata"]["uid"]:
            continue
        if owner or is_terminating(pod) or is_terminating(job) or not is_selected(pod):
            yield pod


async def _untrack(context: Context, name: str, namespace: str, uid: str) -> None:
    # One value is taken out by the server, so that finalizers of others stay, whatever we know of.
    change = {"uid": uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    path = PODS.path(namespace, name)
    # A conflict: another pod has the name by now.
    with contextlib.suppress(NotFound, Conflict):
        await context.kube.patch(path, {"metadata": change}, content_type=STRATEGIC_PATCH)


class _Job:
    """One reconcile of one Job."""

    def __init__(
        self,
        job: Obj,
        key: Key,
        context: Context,
        expectations: Expectations,
        failures: dict[str, Failures],
    ) -> None:
        self.job = job
        self.task = task_of(job)
        self.key = key
        self.context = context
        self.expectations = expectations
        self.failures = failures
        self.now = context.now()
        self.objects: dict[str, Obj] = {}  # by uid
        self.wait_s: list[float] = []

    async def step(self) -> float | None:
        self.objects = {pod["metadata"]["uid"]: pod for pod in await self._claimed()}
        if not self._sees_own_writes():
            return _LATE_S
        pods = [job_pod_of(pod, self.job, self.now) for pod in self.objects.values()]
        status: Obj = {"uncountedTerminatedPods": {}, **self.job.get("status", {})}
        if not status.get("startTime") and not self.task.suspended:
            status["startTime"] = stamp(self.now)
        found = job_plan.tally(self.task, status, pods)
        uid = self.job["metadata"]["uid"]
        known = self.failures.get(uid, job_plan.NO_FAILURES)
        failures = job_plan.failures_after(known, found.new_succeeded, found.new_failed)
        ending = job_plan.outcome(self.task, status, pods, found, self.now)
        failure: KubeError | None = None
        if ending is not None:
            status, failure = await self._stop_all(status, found)
            if failure is not None:
                # A pod still runs that could not be deleted: an outcome now would let the Job
                # finish without it. The next reconcile decides again.
                ending = None
        else:
            status, ending, failure = await self._go_on(status, pods, found, failures)
        # Before a failure is raised: what has ended is counted even if creating pods fails.
        await self._track(status, pods, found, ending)
        # After the writes: if one of them fails, the next reconcile counts the same failures again.
        if failures != known:
            self.failures[uid] = failures
        if failure is not None and not namespace_is_going(failure):
            raise failure
        return self._next_look(ending)

    async def _claimed(self) -> list[Obj]:
        pods = self.context.of(PODS)
        own = pods.by(_OPEN, self.job["metadata"]["uid"])
        found = own + ownership.orphans(pods, self.job)
        judged = ownership.judge(self.job, found, ownership.selected_by(self.job))
        ties = ownership.Ties(JOBS, FINALIZER)
        return await ownership.claim(self.context, self.job, ties, PODS, judged)

    def _sees_own_writes(self) -> bool:
        # A removed finalizer is awaited like a deletion, under a name of its own: the mirror has
        # caught up when the pod is gone or no longer carries the finalizer.
        alive = {uid for uid, pod in self.objects.items() if not is_terminating(pod)}
        alive |= {f"finalizer of {uid}" for uid, pod in self.objects.items() if _is_tracked(pod)}
        return self.expectations.met(self.key, self.context.of, alive, self.now.timestamp())

    # -- pods ----------------------------------------------------------------------------------

    async def _stop_all(self, status: Obj, found: Tally) -> tuple[Obj, KubeError | None]:
        """The Job is over: deletes the pods that still run. They are counted once they have
        ended."""
        failure = await self._delete(found.active)
        stopped = 0 if failure else len(found.active)
        ready = sum(pod.ready for pod in found.active)
        counts = (
            len(found.active) - stopped,
            0 if stopped else ready,
            found.leaving + stopped,
        )
        return _with_counts(status, *counts), failure

    async def _go_on(
        self, status: Obj, pods: list[JobPod], found: Tally, failures: Failures
    ) -> tuple[Obj, Outcome | None, KubeError | None]:
        active, ready, leaving = len(found.active), sum(r.ready for r in found.active), 0
        failure: KubeError | None = None
        if not self.task.deleted:
            todo = job_plan.staffing(self.task, pods, found, failures, self.now)
            if todo.wait_s:
                self.wait_s.append(todo.wait_s)
            if todo.delete:
                failure = await self._release(todo.delete)
                if failure is None:
                    active, leaving = active - len(todo.delete), len(todo.delete)
                    ready -= sum(pod.ready for pod in todo.delete)
            elif todo.create:
                made, failure = await self._create(todo, found)
                active += made
        status = _with_counts(status, active, ready, found.leaving + leaving)
        if job_plan.is_complete(self.task, found, active):
            return status, job_plan.COMPLETIONS_REACHED, failure
        if not self.task.deleted:
            status = self._note_suspension(status)
        return status, None, failure

    def _note_suspension(self, status: Obj) -> Obj:
        noted = job_tracking.with_suspension(status, self.task.suspended, self.now)
        if noted is not status:
            reason = "Suspended" if self.task.suspended else "Resumed"
            self.context.events.event(self.job, NORMAL, reason, f"Job {reason.lower()}")
        return noted

    async def _create(self, todo: job_plan.Staffing, found: Tally) -> tuple[int, KubeError | None]:
        if self.task.indexed:
            pods = [new_indexed_pod(self.job, i, found.delayed.get(i)) for i in todo.indexes]
        else:
            pods = [new_pod(self.job)] * todo.create
        jobs = [partial(create_pod, self.context, self.job, pod) for pod in pods]
        made, failure = await slow_start(jobs)
        for created in made:
            self.expectations.wrote(self.key, PODS, created, self.now.timestamp())
        return len(made), failure

    async def _delete(self, pods: Iterable[JobPod]) -> KubeError | None:
        """The pods stay until they are counted, because they keep our finalizer."""
        chosen = list(pods)
        try:
            await all_at_once([delete_pod(self.context, self.job, r.name, r.uid) for r in chosen])
        except KubeError as error:
            return error
        for pod in chosen:
            self.expectations.deleted(self.key, pod.uid, self.now.timestamp())
        return None

    async def _release(self, pods: Iterable[JobPod]) -> KubeError | None:
        """Deletes surplus pods without counting them, so their finalizer goes first."""
        chosen = list(pods)
        try:
            await self._untrack_all([pod for pod in chosen if pod.tracked])
        except KubeError as error:
            return error
        return await self._delete(chosen)

    async def _untrack_all(self, pods: Iterable[JobPod]) -> None:
        namespace = self.job["metadata"]["namespace"]
        chosen = list(pods)
        await all_at_once([_untrack(self.context, pod.name, namespace, pod.uid) for pod in chosen])
        for pod in chosen:
            uid = f"finalizer of {pod.uid}"
            self.expectations.deleted(self.key, uid, self.now.timestamp())

    # -- counting ------------------------------------------------------------------------------

    async def _track(
        self, status: Obj, pods: list[JobPod], found: Tally, ending: Outcome | None
    ) -> None:
        # The order of these writes is what makes the counters exact: see job_tracking.py.
        tracking = job_tracking.track(self.task, status, pods, found, ending, self.now)
        await self._write(tracking.status)
        await self._untrack_all(tracking.untrack)
        gone = {pod.uid for pod in tracking.untrack}
        tracked = {pod.uid for pod in pods if pod.tracked} - gone
        status = job_tracking.counted(tracking.status, tracked)
        if ending is not None and tracking.complete:
            final = job_tracking.ended(status, ending, self.now)
            if final is not None:
                await self._write(final)
                self._say_ended(final, ending)
                return
        await self._write(status)

    async def _write(self, status: Obj) -> None:
        if status == self.job.get("status"):
            return
        # The next write of this reconcile needs the resourceVersion of the answer.
        self.job = await self.context.kube.update_status(JOBS, {**self.job, "status": status})
        self.expectations.wrote(self.key, JOBS, self.job, self.now.timestamp())

    def _say_ended(self, status: Obj, ending: Outcome) -> None:
        say = self.context.events.event
        if ending.kind == job_plan.FAILURE:
            say(self.job, WARNING, ending.reason, ending.message)
            return
        wanted = self.task.completions
        if wanted is not None and status.get("succeeded", 0) > wanted:
            text = "Too many succeeded pods running after completion count reached"
            say(self.job, WARNING, "TooManySucceededPods", text)
        say(self.job, NORMAL, "Completed", "Job completed")

    def _next_look(self, ending: Outcome | None) -> float | None:
        waits = list(self.wait_s)
        status = self.job.get("status", {})
        deadline_s = job_plan.seconds_to_deadline(self.task, status, self.now)
        if deadline_s is not None and ending is None:
            waits.append(deadline_s)
        return min(waits) if waits else None


def _with_counts(status: Obj, active: int, ready: int, terminating: int) -> Obj:
    found = {**status, "ready": ready, "terminating": terminating}
    found.pop("active", None)
    return found | ({"active": active} if active else {})


async def _delete_when_old(key: Key, context: Context) -> float | None:
    job = context.of(JOBS).get(key[1], key[0])
    if job is None or is_terminating(job):
        return None
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    finished = job_tracking.finished_condition(job)
    if ttl_s is None or finished is None:
        return None
    since = parse_time(finished.get("lastTransitionTime"))
    left_s: float = ttl_s - (context.now() - since).total_seconds()
    if left_s > 0:
        return left_s
    # With the resourceVersion as a precondition: if somebody has just raised the TTL, the deletion
    # fails with a conflict.
    metadata = job["metadata"]
    preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    options = {"propagationPolicy": "Foreground", "preconditions": preconditions}
    try:
        await context.kube.delete(JOBS, key[1], key[0], options=options)
    except (NotFound, Conflict):
        return None
    return None


TTL_CONTROLLER = Controller("ttl-after-finished-controller", (Watch(JOBS),), _delete_when_old)
