"""Job: pods that run to their end, until enough of them have succeeded or too many failed."""

from collections.abc import Iterable
from functools import partial

from kubeclient.client import STRATEGIC_PATCH
from kubeclient.errors import KubeError, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key, controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import JOBS, PODS
from localkube.controllers import job_backoff, job_plan, job_tracking, ownership
from localkube.controllers.expectations import Expectations
from localkube.controllers.job_backoff import Failures
from localkube.controllers.job_plan import Outcome, Tally
from localkube.controllers.job_pods import new_indexed_pod, new_pod
from localkube.controllers.job_runs import (
    CONTROLLER_NAME,
    FINALIZER,
    Run,
    run_of,
    task_of,
)
from localkube.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from localkube.controllers.pods import is_finished as is_over
from localkube.controllers.pods import is_terminating, label, stamp
from localkube.controllers.run import Context, Controller, KeysOf, Watch

_LATE_S = 1.0  # when the watch has not shown by then what we did
_TRACKED, _OPEN = "tracked by job", "open"  # indexes of pods
_NAME_LABEL = "batch.kubernetes.io/job-name"


def controller() -> Controller:
    expectations, adopters = Expectations(), ownership.Adopters("Job")
    failures: dict[str, Failures] = {}  # by uid; forgotten at a restart, as Kubernetes does

    async def reconcile(key: Key, context: Context) -> float | None:
        job = context.of(JOBS).get(key[1], key[0])
        await _free_lost_pods(key, job, context)
        if job is None:
            expectations.forget(key)
            return None
        uid = job["metadata"]["uid"]
        if job["spec"].get("managedBy", CONTROLLER_NAME) != CONTROLLER_NAME:
            return None
        if job_tracking.is_finished(job):
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
    """Of the job that it belongs to, or once belonged to."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["name"]) if owner["kind"] == "Job" else ""
    return label(pod, _NAME_LABEL)


def _tracked_keys(pod: Obj) -> list[str]:
    name = _job_name(pod) if _is_tracked(pod) else ""
    return [f"{pod['metadata']['namespace']}/{name}"] if name else []


def _open_keys(pod: Obj) -> list[str]:
    """A pod that has ended and been counted is none of the job's business any more; there may be
    thousands of them."""
    return [controller_uid(pod)] if _is_tracked(pod) or not is_over(pod) else []


def _pod_keys(adopters: ownership.Adopters) -> KeysOf:
    of_owners = adopters.keys()

    def keys(pod: Obj, context: Context) -> Iterable[Key]:
        yield from of_owners(pod, context)
        if _is_tracked(pod) and not controller_uid(pod) and _job_name(pod):
            yield pod["metadata"]["namespace"], _job_name(pod)

    return keys


async def _free_lost_pods(key: Key, job: Obj | None, context: Context) -> None:
    """Pods whose job has gone: nobody else would ever let them go."""
    found = context.of(PODS).by(_TRACKED, "/".join(key))
    for pod in found if job is None else _strangers(job, found):
        await _untrack(context, pod["metadata"]["name"], pod["metadata"]["namespace"])


def _strangers(job: Obj, pods: Iterable[Obj]) -> Iterable[Obj]:
    """Neither the job's own, nor about to be adopted by it."""
    selector = ownership.selector_of(job)
    for pod in pods:
        owner = controller_uid(pod)
        if owner == job["metadata"]["uid"]:
            continue
        fits = selector.matches(pod["metadata"].get("labels") or {})
        if owner or is_terminating(pod) or is_terminating(job) or not fits:
            yield pod


async def _untrack(context: Context, name: str, namespace: str) -> Obj | None:
    change = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    path = PODS.path(namespace, name)
    try:
        return await context.kube.patch(path, change, content_type=STRATEGIC_PATCH)
    except NotFound:
        return None


class _Job:
    """One look at one job."""

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
        self.pods: dict[str, Obj] = {}  # by uid
        self.wait_s: list[float] = []

    async def step(self) -> float | None:
        self.pods = {pod["metadata"]["uid"]: pod for pod in await self._claimed()}
        if not self._has_seen_its_doings():
            return _LATE_S
        runs = [run_of(pod, self.job, self.now) for pod in self.pods.values()]
        status: Obj = {"uncountedTerminatedPods": {}, **self.job.get("status", {})}
        if not status.get("startTime") and not self.task.suspended:
            status["startTime"] = stamp(self.now)
        found = job_plan.tally(self.task, status, runs)
        uid = self.job["metadata"]["uid"]
        known = self.failures.get(uid, job_backoff.NONE)
        failures = job_backoff.after(known, found.new_succeeded, found.new_failed)
        ending = job_plan.outcome(self.task, status, runs, found, self.now)
        failure: KubeError | None = None
        if ending is not None:
            status, failure = await self._stop_all(status, found)
            if failure is not None:
                ending = None
        else:
            status, ending, failure = await self._go_on(status, runs, found, failures)
        await self._track(status, runs, found, ending)
        if failures != known:
            self.failures[uid] = failures
        if failure is not None and not namespace_is_going(failure):
            raise failure
        return self._next_look(ending)

    async def _claimed(self) -> list[Obj]:
        selector = ownership.selector_of(self.job)

        def fits(pod: Obj) -> bool:
            return selector.matches(pod["metadata"].get("labels") or {})

        pods = self.context.of(PODS)
        own = pods.by(_OPEN, self.job["metadata"]["uid"])
        found = own + ownership.orphans(pods, self.job)
        judged = ownership.judge(self.job, found, fits)
        ties = ownership.Ties(JOBS, FINALIZER)
        return await ownership.claim(self.context, self.job, ties, PODS, judged)

    def _has_seen_its_doings(self) -> bool:
        alive = {uid for uid, pod in self.pods.items() if not is_terminating(pod)}
        alive |= {f"finalizer of {uid}" for uid, pod in self.pods.items() if _is_tracked(pod)}
        return self.expectations.met(self.key, self.context.of, alive, self.now.timestamp())

    # -- pods ----------------------------------------------------------------------------------

    async def _stop_all(self, status: Obj, found: Tally) -> tuple[Obj, KubeError | None]:
        """It is over: those that still run are stopped, and counted afterwards."""
        failure = await self._delete(found.active)
        stopped = 0 if failure else len(found.active)
        ready = sum(run.ready for run in found.active)
        counts = (
            len(found.active) - stopped,
            0 if stopped else ready,
            found.leaving + stopped,
        )
        return _with_counts(status, *counts), failure

    async def _go_on(
        self, status: Obj, runs: list[Run], found: Tally, failures: Failures
    ) -> tuple[Obj, Outcome | None, KubeError | None]:
        active, ready, leaving = len(found.active), sum(r.ready for r in found.active), 0
        failure: KubeError | None = None
        if not self.task.deleted:
            todo = job_plan.staffing(self.task, runs, found, failures, self.now)
            if todo.wait_s:
                self.wait_s.append(todo.wait_s)
            if todo.end:
                failure = await self._release(todo.end)
                if failure is None:
                    active, leaving = active - len(todo.end), len(todo.end)
                    ready -= sum(run.ready for run in todo.end)
            elif todo.begin:
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
            pods = [new_pod(self.job)] * todo.begin
        jobs = [partial(create_pod, self.context, self.job, pod) for pod in pods]
        made, failure = await slow_start(jobs)
        for created in made:
            self.expectations.wrote(self.key, PODS, created, self.now.timestamp())
        return len(made), failure

    async def _delete(self, runs: Iterable[Run]) -> KubeError | None:
        """Deleted pods stay until they are counted: they keep the finalizer."""
        chosen = list(runs)
        try:
            await all_at_once([delete_pod(self.context, self.job, r.name, r.uid) for r in chosen])
        except KubeError as error:
            return error
        for run in chosen:
            self.expectations.deleted(self.key, run.uid, self.now.timestamp())
        return None

    async def _release(self, runs: Iterable[Run]) -> KubeError | None:
        """Pods too many: deleted without being counted."""
        chosen = list(runs)
        try:
            await self._untrack_all([run for run in chosen if run.tracked])
        except KubeError as error:
            return error
        return await self._delete(chosen)

    async def _untrack_all(self, runs: Iterable[Run]) -> None:
        namespace = self.job["metadata"]["namespace"]
        chosen = list(runs)
        await all_at_once([_untrack(self.context, run.name, namespace) for run in chosen])
        for run in chosen:
            uid = f"finalizer of {run.uid}"
            self.expectations.deleted(self.key, uid, self.now.timestamp())

    # -- counting ------------------------------------------------------------------------------

    async def _track(
        self, status: Obj, runs: list[Run], found: Tally, ending: Outcome | None
    ) -> None:
        tracking = job_tracking.track(self.task, status, runs, found, ending, self.now)
        await self._write(tracking.status)
        await self._untrack_all(tracking.untrack)
        gone = {run.uid for run in tracking.untrack}
        tracked = {run.uid for run in runs if run.tracked} - gone
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
