"""The runtime whose containers are processes of this machine.

A start has these steps: volumes, environment, program, process, hook. Each may fail in a way that
the status and the events of the pod report. Everything that waits is a task of its own. A task
changes the pod's record only between two awaits, and only while the record is about the same run.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVarTuple

from kubeclient.errors import KubeError
from kubeclient.objects import Obj
from localkube.kubelet.container_files import UID, pod_directory, volumes_directory
from localkube.kubelet.container_log import log_paths
from localkube.kubelet.container_run import ContainerRun, PodRuns
from localkube.kubelet.container_start import Starter
from localkube.kubelet.environment import BadConfig
from localkube.kubelet.exec_process import ExecProcesses
from localkube.kubelet.launches import Launches, LaunchFailed
from localkube.kubelet.lifecycle import mark_exited, mark_failed, mark_running
from localkube.kubelet.notices import Notices
from localkube.kubelet.probes import ActionFailed, act, is_probed, probe
from localkube.kubelet.settings import FleetSettings
from localkube.kubelet.state import Exit, Pod, Problem, Role, Stage
from localkube.kubelet.volume_files import BadVolume
from localkube.kubelet.volumes import Volumes
from localkube.new_tasks import add_task
from localkube.removal import remove_tree

_Given = TypeVarTuple("_Given")

# The kubelet's limits for messages that come from the log.
_LAST_BYTES = 2048
_LAST_LINES = 80


def termination_message(run: ContainerRun, code: int, log_files: int) -> str:
    """The container's termination message, or the end of its log, if it has failed and its spec
    says FallbackToLogsOnError."""
    own = run.files.termination_message()
    wants_log = run.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    if own or code == 0 or not wants_log:
        return own
    lines: list[bytes] = []
    for path in log_paths(run.output.log.path, log_files):
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 8 * _LAST_BYTES))
                lines += file.read().splitlines()
    texts = [line.split(b" ", 3)[-1] for line in lines[-_LAST_LINES:]]
    return b"\n".join(texts)[-_LAST_BYTES:].decode("utf-8", "replace")


log = logging.getLogger(__name__)

_RETRY_S = 2.0
_LEAST_GRACE_S = 2.0  # after a preStop hook that has used up the grace period
# containerd reports this code when nobody saw how the container ended.
_UNKNOWN_CODE = 255
_HOOK_LIMIT_S = 3600.0


@dataclass(slots=True)
class ProcessRuntime:
    settings: FleetSettings
    notices: Notices
    launches: Launches
    execs: ExecProcesses
    starter: Starter
    tasks: asyncio.TaskGroup
    look_at: Callable[[str], None]  # asks for another look at a pod, by its uid
    pods: dict[str, PodRuns]
    runs: dict[str, ContainerRun]

    def adopt(self, pod: Pod, obj: Obj, now: float) -> None:
        """The processes ended with the server, so the containers get the exit code for unknown."""
        pod.initialized = False
        for container in pod.containers:
            if container.stage is Stage.RUNNING:
                container.exit = Exit(
                    _UNKNOWN_CODE,
                    "Unknown",
                    "",
                    container.started_at,
                    now,
                    container.container_id,
                )
                container.stage = Stage.EXITED
                container.started = container.ready = False
            if container.role is Role.INIT and container.exit is not None:
                container.before, container.exit = container.exit, None
                container.stage = Stage.WAITING
                container.restart_count += 1

    def seen(self, pod: Pod, obj: Obj) -> None:
        runs = self.pods.get(pod.uid)
        if runs is not None and self.starter.is_outdated(runs, obj):
            self._spawn("pod-volumes", self._refresh, pod, runs)

    def look(self, pod: Pod, obj: Obj, now: float) -> float | None:
        return None

    def start(self, pod: Pod, index: int, obj: Obj, now: float) -> None:
        runs = self.runs_of(pod)
        runs.starting[index] = self._spawn("container-start", self._start, pod, index, obj)

    def stop(self, pod: Pod, index: int, obj: Obj, grace_s: float, now: float) -> None:
        runs = self.runs_of(pod)
        container = pod.containers[index]
        run = runs.runs.get(index)
        if run is not None:
            until = time.monotonic() + grace_s
            if run.stopper is not None:
                if until >= run.stop_until:
                    return
                # The grace period became shorter. `pre_stopped` keeps the new task from running the
                # hook again.
                run.stopper.cancel()
            run.stop_until = until
            run.stopper = self._spawn("container-stop", self._stop, run, obj, grace_s)
            return
        if index in runs.starting:
            runs.starting.pop(index).cancel()
        container.stage = Stage.WAITING
        container.stopping = False
        self.look_at(pod.uid)

    def remove(self, pod: Pod) -> None:
        runs = self.pods.pop(pod.uid, None)
        live: list[ContainerRun] = []
        if runs is not None:
            for task in runs.starting.values():
                task.cancel()
            live = list(runs.runs.values())
        for run in live:
            self._end_tasks(run)
            self.signal(run, signal.SIGKILL)
        self.execs.kill_all({container.container_id for container in pod.containers})
        self._spawn("pod-clear", self._clear, pod.uid, runs, live)

    def remove_traces(self, pod: Pod) -> None:
        """For a pod of timers: `kubectl exec` may have made files and volumes for it."""
        if pod.uid in self.pods:
            self.remove(pod)

    async def sweep(self, is_known: Callable[[str], bool]) -> None:
        """Deletes the files of pods that are gone."""
        for path in list(self.settings.directory.iterdir()):
            if UID.fullmatch(path.name) and not is_known(path.name):
                await asyncio.to_thread(remove_tree, path)

    def leaders(self) -> dict[int, str]:
        """The containers' own programs: pid -> id of the container."""
        return {run.pid: run.id for run in self.runs.values() if run.pid}

    def port_of(self, run: ContainerRun, port: int) -> int:
        runs = self.pods.get(run.pod.uid)
        return port if runs is None else runs.ports.get(port, port)

    def exited(self, run_id: str, code: int) -> None:
        """Called by the launcher when a process has ended."""
        if self.execs.ended(run_id, code):
            return
        run = self.runs.pop(run_id, None)
        if run is None:
            return
        self._end_tasks(run)
        message = ""
        try:
            run.close()
            message = termination_message(run, code, self.settings.log_files)
        except Exception:  # whatever fails here must not hide the end of the container
            log.exception("output of a container not finished", extra={"pod": run.pod.uid})
        if not run.exited.done():
            run.exited.set_result(code)
        runs = self.pods.get(run.pod.uid)
        if runs is not None and runs.runs.get(run.index) is run:
            del runs.runs[run.index]
        # Else a later run has begun, and the record is about that one.
        if run.container.container_id == run_id:
            mark_exited(run.container, code, time.time(), message, run.killed_for)
            self.look_at(run.pod.uid)

    async def refresh(self) -> None:
        """Updates volumes that show ConfigMaps, Secrets and tokens, periodically; until
        cancelled."""
        while True:
            await asyncio.sleep(self.settings.refresh_s)
            for runs in list(self.pods.values()):
                if runs.runs:
                    await self._refresh(next(iter(runs.runs.values())).pod, runs)

    async def _refresh(self, pod: Pod, runs: PodRuns) -> None:
        try:
            await self.starter.refresh(pod, runs)
        except Exception as error:  # the volumes of one pod must not stop those of all others
            if self.pods.get(pod.uid) is not runs:
                return  # the pod, or its node, was deleted meanwhile
            log.info("volumes not refreshed", extra={"pod": pod.uid, "why": str(error)})
            if not isinstance(error, (BadVolume, KubeError, OSError)):
                log.exception("volumes not refreshed", extra={"pod": pod.uid})

    def runs_of(self, pod: Pod) -> PodRuns:
        runs = self.pods.get(pod.uid)
        if runs is None:
            place = volumes_directory(self.settings.directory, pod.uid)
            runs = self.pods[pod.uid] = PodRuns(Volumes(place))
        return runs

    def _spawn(
        self, name: str, work: Callable[[*_Given], Awaitable[None]], *given: *_Given
    ) -> asyncio.Task[None]:
        """Takes a function, and not what it returns: a task that is cancelled before its first
        step would leave a coroutine that nobody awaits."""

        async def guarded() -> None:
            try:
                await work(*given)
            except Exception:  # a bug about one container must not stop all nodes
                log.exception("container not handled")

        return add_task(self.tasks, guarded(), name)

    async def _start(self, pod: Pod, index: int, obj: Obj) -> None:
        container = pod.containers[index]
        run_id = container.container_id
        runs = self.runs_of(pod)
        try:
            await self.starter.ensure_volumes(pod, runs, obj)
            pod.prepared = True
            run = await self.starter.launch(pod, index, runs, obj)
        except BadVolume as error:
            self.notices.warn(pod, obj, "FailedMount", str(error))
            self._failed(pod, index, Problem("ContainerCreating", ""))
        except BadConfig as error:
            self.notices.warn(pod, obj, "Failed", f"Error: {error}", container)
            self._failed(pod, index, Problem("CreateContainerConfigError", str(error)))
        except LaunchFailed as error:
            # As in Kubernetes, a program that cannot be executed is a run that has failed: with an
            # exit code, and with a backoff before the next one.
            mark_running(container, time.time())
            mark_exited(container, error.code, time.time(), error.text)
            self.notices.warn(pod, obj, "Failed", f"Error: {error.text}", container)
        except Exception as error:
            if not isinstance(error, (KubeError, OSError)):
                log.exception("container not started", extra={"pod": pod.uid})
            self.notices.warn(pod, obj, "Failed", f"Error: {error}", container)
            self._failed(pod, index, Problem("CreateContainerError", str(error)))
        else:
            self.runs[run_id] = runs.runs[index] = run
            await self._started(run, obj)
        finally:
            if runs.starting.get(index) is asyncio.current_task():
                del runs.starting[index]
            self.look_at(pod.uid)

    def _failed(self, pod: Pod, index: int, problem: Problem) -> None:
        mark_failed(pod.containers[index], problem, time.time() + _RETRY_S)

    async def _started(self, run: ContainerRun, obj: Obj) -> None:
        """The process runs; the container counts as running when its postStart hook is done."""
        container = run.container
        self.notices.note(run.pod, obj, "Started", "Container started", container)
        began_at = time.time()
        hook = (run.spec.get("lifecycle") or {}).get("postStart")
        if hook is not None:
            run.starter = asyncio.current_task()
            try:
                await act(hook, run, _HOOK_LIMIT_S, self.execs, self.port_of)
            except ActionFailed as error:
                text = f"PostStartHook failed: {error}"
                self.notices.warn(run.pod, obj, "FailedPostStartHook", text, container)
                self.signal(run, signal.SIGKILL)
            run.starter = None
        if run.exited.done():
            return
        mark_running(container, began_at, probed=is_probed(run.spec))
        if is_probed(run.spec):
            run.prober = self._spawn("container-probes", self._probe, run, obj)

    async def _probe(self, run: ContainerRun, obj: Obj) -> None:
        async def check(probe: Obj, run: ContainerRun) -> None:
            await act(probe, run, probe.get("timeoutSeconds") or 1, self.execs, self.port_of)

        def told(run: ContainerRun, reason: str, message: str) -> None:
            say = self.notices.note if reason == "Killing" else self.notices.warn
            say(run.pod, obj, reason, message, run.container)

        await probe(run, check, told, lambda run: self.look_at(run.pod.uid))

    async def _stop(self, run: ContainerRun, obj: Obj, grace_s: float) -> None:
        if not run.pre_stopped and not run.container.unhealthy:
            text = f"Stopping container {run.container.name}"
            self.notices.note(run.pod, obj, "Killing", text, run.container)
        hook = (run.spec.get("lifecycle") or {}).get("preStop")
        if hook is not None and not run.pre_stopped and grace_s > 0:
            run.pre_stopped = True
            try:
                await act(hook, run, grace_s, self.execs, self.port_of)
            except ActionFailed as error:
                text = f"PreStopHook failed: {error}"
                self.notices.warn(run.pod, obj, "FailedPreStopHook", text, run.container)
            run.stop_until = max(run.stop_until, time.monotonic() + _LEAST_GRACE_S)
        run.pre_stopped = True
        if grace_s > 0:
            self.signal(run, _stop_signal(run.spec))
            left_s = max(0.0, run.stop_until - time.monotonic())
            await asyncio.wait([run.exited], timeout=left_s)
        if not run.exited.done():
            self.signal(run, signal.SIGKILL)

    def signal(self, run: ContainerRun, number: int) -> None:
        if not self.starter.hosted.end(run.id):
            self.launches.signal(run.id, number)

    def _end_tasks(self, run: ContainerRun) -> None:
        for task in (run.stopper, run.prober, run.starter):
            if task is not None:
                task.cancel()

    async def _clear(self, uid: str, runs: PodRuns | None, live: list[ContainerRun]) -> None:
        if live:
            # Processes that still run could write into the directory while it is being deleted.
            await asyncio.wait([run.exited for run in live], timeout=10.0)
        if runs is not None:
            # A start or a refresh of volumes may be in the middle of writing, perhaps a Secret.
            async with runs.turn:
                runs.gone = True
        await asyncio.to_thread(remove_tree, pod_directory(self.settings.directory, uid))


def _stop_signal(spec: Obj) -> int:
    name = (spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
    found = getattr(signal, name, None)
    return int(found) if isinstance(found, signal.Signals) else int(signal.SIGTERM)
